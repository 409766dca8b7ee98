//! Rules that the embedding program adds to writes of chosen resources, inside the process.
//!
//! They run after the kind's own strategy, on create, update and delete; writes of status are not theirs. A program that
//! uses another API server reaches the same rules by webhook.

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::resource::Resource;
use crate::strategy::Write;

/// A set of added rules.
pub trait Plugin: Send + Sync + 'static {
    /// Whether the rules apply to a resource at all.
    fn handles(&self, resource: &Resource) -> bool;

    /// Fills in and marks an object before it is validated. Idempotent.
    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    );

    /// Every violation. Pure.
    fn validate(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause>;

    /// Rules that need other objects or the asker. `object` is absent on delete. Must not write.
    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
