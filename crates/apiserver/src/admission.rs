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
pub mod switches;
pub mod webhooks;

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::reinvocation::Reinvocation;
use crate::admission::request::Request;
use crate::admission::switches::Switchable;
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

    /// Takes out of an object what is not stored with it, and leaves in its place what is. For every write of an
    /// object and every configuration that is applied, before owners of fields are compared and before policies
    /// and webhooks see it; then once more. Writes nothing. `taken`: what was taken so far.
    fn take_out<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a mut Value,
        old: Option<&'a Value>,
        taken: &'a mut Taken,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(())))
    }

    /// Stores what was taken out of the object, which is written next. The result is dropped when that write has
    /// ended, whether or not the object was stored.
    fn store_taken<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
        taken: &'a Taken,
    ) -> BoxFuture<'a, Result<Option<Held>, Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(None)))
    }

    /// The object was deleted from the storage.
    fn deleted(&self, resource: &Resource, object: &Value) {
        let _ = (resource, object);
    }
}

/// What plugins took out of one object, by names of theirs. Printed without the values.
#[derive(Clone, Default)]
pub struct Taken(pub BTreeMap<String, String>);

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken({} [redacted])", self.0.len())
    }
}

/// Ends with the write that it is about.
pub type Held = Box<dyn Send>;

impl Registry {
    /// Lets plugins take out what is not stored with the object.
    pub(crate) async fn take_out(
        &self,
        resource: &Resource,
        object: &mut Value,
        old: Option<&Value>,
        taken: &mut Taken,
    ) -> Result<(), Status> {
        for plugin in self.plugins(resource) {
            plugin.take_out(resource, object, old, taken).await?;
        }
        Ok(())
    }

    /// Stores what was taken out. Holds until the object's own write has ended.
    pub(crate) async fn store_taken(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        taken: &Taken,
    ) -> Result<Vec<Held>, Status> {
        let mut held = Vec::new();
        for plugin in self.plugins(resource) {
            held.extend(plugin.store_taken(resource, object, old, taken).await?);
        }
        Ok(held)
    }

    /// Tells plugins that the object is no longer stored.
    pub(crate) fn note_deleted(&self, resource: &Resource, object: &Value) {
        self.plugins(resource).for_each(|plugin| plugin.deleted(resource, object));
    }

    fn mutating_policies(&self) -> Option<Arc<policies::Table>> {
        self.policies().filter(|_| self.has(Switchable::MutatingAdmissionPolicy))
    }

    fn mutating_webhooks(&self) -> Option<Arc<webhooks::Table>> {
        self.webhooks().filter(|_| self.has(Switchable::MutatingAdmissionWebhook))
    }

    /// Whether the first stage has anything to do for the write.
    pub(crate) fn mutates(&self, request: &Request<'_>) -> bool {
        self.mutating_webhooks().is_some()
            || self.mutating_policies().is_some_and(|policies| policies.mutates())
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
        let (policies, webhooks) = (self.mutating_policies(), self.mutating_webhooks());
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
        if let Some(policies) = self.policies()
            && self.has(Switchable::ValidatingAdmissionPolicy)
        {
            policies.validate(self, request, object, old).await?;
        }
        if let Some(webhooks) = self.webhooks()
            && self.has(Switchable::ValidatingAdmissionWebhook)
        {
            webhooks.validate(self, request, object, old).await?;
        }
        Ok(())
    }
}
