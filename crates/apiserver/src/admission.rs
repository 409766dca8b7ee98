//! What stands between a write and the storage beside the rules of its kind.
//!
//! [`policies`] judges a write by expressions, [`limits`] holds it within the bounds of its namespace,
//! [`webhooks`] asks the servers that the cluster's own objects name. A [`Plugin`] is a set of rules
//! that the embedding program adds to chosen resources, inside the process: they run after the kind's
//! own strategy, on create, update and delete; writes of status are not theirs. A program that uses
//! another API server reaches the same rules by webhook.
//!
//! The registry has two stages, for whatever is to be added: [`Registry::mutate`] before the kind
//! prepares and validates an object, [`Registry::review`] once it is ready to be written.

pub mod expressions;
mod limits;
pub mod match_conditions;
pub mod policies;
pub mod request;
pub mod rules;
pub mod webhooks;

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::request::Request;
use crate::registry::Registry;
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

impl Registry {
    /// Whether the first stage has anything to do for the write.
    pub(crate) fn mutates(&self, request: &Request<'_>) -> bool {
        self.webhooks().is_some() || limits::may_preset(request)
    }

    /// The first stage: lets `object` be changed. Absent on delete.
    pub(crate) async fn mutate(
        &self,
        request: &Request<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if request.options.admitted {
            return Ok(());
        }
        if let Some(object) = object.as_deref_mut() {
            limits::preset(self, request, object).await?;
        }
        match self.webhooks() {
            Some(webhooks) => webhooks.mutate(self, request, object, old).await,
            None => Ok(()),
        }
    }

    /// The last stage: lets the write be refused. `object` is as it will be stored; absent on delete.
    pub(crate) async fn review(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if request.options.admitted {
            return Ok(());
        }
        limits::check(self, request, object, old).await?;
        if let Some(policies) = self.policies() {
            policies.validate(self, request, object, old).await?;
        }
        match self.webhooks() {
            Some(webhooks) => webhooks.validate(self, request, object, old).await,
            None => Ok(()),
        }
    }
}
