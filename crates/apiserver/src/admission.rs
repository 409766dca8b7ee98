//! What stands between a write and the storage beside the rules of its kind.
//!
//! [`limits`] holds a write within the bounds of its namespace, [`built_in`] are the other plugins that
//! kube-apiserver has of itself, [`policies`] judges it by expressions, [`webhooks`] asks the servers that the cluster's own objects name. A [`Plugin`] is a set of rules
//! that the embedding program adds to chosen resources, inside the process: they run after the kind's
//! own strategy, on create, update and delete; writes of status are not theirs. A program that uses
//! another API server reaches the same rules by webhook.
//!
//! The registry has two stages, for whatever is to be added: [`Registry::mutate`] before the kind
//! prepares and validates an object, [`Registry::review`] once it is ready to be written.

pub(crate) mod built_in;
pub mod expressions;
mod forms;
mod limits;
pub mod match_conditions;
pub mod policies;
mod reinvocation;
pub mod request;
pub mod rules;
pub mod webhooks;

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::reinvocation::Reinvocation;
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

    /// Rules that need other objects or the asker. `object` is absent on delete. The write may still be refused, so
    /// this must not write anything that stays in force without it.
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
        self.webhooks().is_some()
            || self.policies().is_some_and(|policies| policies.mutates())
            || built_in::may_preset(request)
    }

    /// The first stage: lets `object` be changed, by limits, then policies, then webhooks; and again
    /// when a policy or webhook did. Absent on delete.
    pub(crate) async fn mutate(
        &self,
        request: &Request<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if request.options.admitted {
            return Ok(());
        }
        let (policies, webhooks) = (self.policies(), self.webhooks());
        let (mut of_policies, mut of_webhooks) = (Reinvocation::default(), Reinvocation::default());
        for is_second in [false, true] {
            if let Some(object) = object.as_deref_mut() {
                limits::preset(self, request, object).await?;
                built_in::preset(self, request, object, old).await?;
            }
            let mut changed = false;
            if let (Some(policies), Some(object)) = (&policies, object.as_deref_mut()) {
                if is_second {
                    of_policies.begin_second(Some(object));
                }
                changed |= policies.mutate(self, request, object, old, &mut of_policies).await?;
                of_policies.end(Some(object));
            }
            if let Some(webhooks) = &webhooks {
                if is_second {
                    of_webhooks.begin_second(object.as_deref());
                }
                let shown = object.as_deref_mut();
                changed |= webhooks.mutate(self, request, shown, old, &mut of_webhooks).await?;
                of_webhooks.end(object.as_deref());
            }
            if !changed {
                break;
            }
        }
        Ok(())
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
        built_in::check(self, request, object, old).await?;
        if let Some(policies) = self.policies() {
            policies.validate(self, request, object, old).await?;
        }
        match self.webhooks() {
            Some(webhooks) => webhooks.validate(self, request, object, old).await,
            None => Ok(()),
        }
    }
}
