//! Charts that are installed in a project. This version installs none: the list is empty and
//! nothing can be created. The type exists because Rancher's CLI searches the apps for every name
//! that it waits for, and fails when the type is missing.

use feature_kit::downstream::ProjectHome;
use futures::future::BoxFuture;
use rest_view::{ApiError, Context, Key, ListScope, Store};
use serde_json::Value;

pub const TYPE: &str = "app";

/// The apps of a project that the caller may see.
pub struct NoApps;

impl Store for NoApps {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            ProjectHome::enter(context).await?;
            Ok(Vec::new())
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            ProjectHome::enter(context).await?;
            Err(ApiError::no_such_id())
        })
    }
}
