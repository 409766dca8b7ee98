//! What stands between a write and the storage beside the rules of its kind.
//!
//! [`limits`] holds a write within the bounds of its namespace, [`built_in`] are the other plugins that
//! kube-apiserver has of itself, [`policies`] evaluates expressions, [`webhooks`] calls the servers that
//! the cluster's own objects name, [`crate::quota`] counts.
//!
//! [`AdmissionChain`] is all of them, in order. The registry calls it through
//! [`crate::registry::admission`], which also has the rules that an embedding program adds.

pub mod built_in;
pub mod expressions;
mod forms;
mod limits;
pub mod match_conditions;
pub mod policies;
mod reinvocation;
pub mod rules;
pub mod webhooks;

use std::sync::Arc;

use api_meta::status::Status;
use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::admission::reinvocation::Reinvocation;
use crate::built_in_plugins::Switchable;
use crate::quota;
use crate::registry::Registry;
use crate::registry::admission::{Admission, Request};
use crate::resource::Resource;
use crate::strategy::Write;

/// Limits, built-in plugins, policies, webhooks and quotas, in the order of kube-apiserver.
#[derive(Default)]
pub struct AdmissionChain {
    /// Absent while none is configured.
    webhooks: ArcSwapOption<webhooks::Table>,
    /// Absent while none is in force.
    policies: ArcSwapOption<policies::Table>,
}

impl AdmissionChain {
    /// The webhooks that writes from now on are shown to.
    fn set_webhooks(&self, table: Option<webhooks::Table>) {
        self.webhooks.store(table.map(Arc::new));
    }

    /// The policies that writes from now on must meet.
    fn set_policies(&self, table: Option<policies::Table>) {
        self.policies.store(table.map(Arc::new));
    }

    fn mutating_policies(&self, registry: &Registry) -> Option<Arc<policies::Table>> {
        let is_on = registry.has(Switchable::MutatingAdmissionPolicy);
        self.policies.load_full().filter(|_| is_on)
    }

    fn mutating_webhooks(&self, registry: &Registry) -> Option<Arc<webhooks::Table>> {
        let is_on = registry.has(Switchable::MutatingAdmissionWebhook);
        self.webhooks.load_full().filter(|_| is_on)
    }

    async fn mutate(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let policies = self.mutating_policies(registry);
        let webhooks = self.mutating_webhooks(registry);
        let (mut of_policies, mut of_webhooks) = (Reinvocation::default(), Reinvocation::default());
        for is_second in [false, true] {
            if let Some(object) = object.as_deref_mut() {
                limits::preset(registry, request, object).await?;
                built_in::preset(registry, request, object, old).await?;
            }
            let mut changed = false;
            if let (Some(policies), Some(object)) = (&policies, object.as_deref_mut()) {
                if is_second {
                    of_policies.begin_second(Some(object));
                }
                changed |=
                    policies.mutate(registry, request, object, old, &mut of_policies).await?;
                of_policies.end(Some(object));
            }
            if let Some(webhooks) = &webhooks {
                if is_second {
                    of_webhooks.begin_second(object.as_deref());
                }
                let shown = object.as_deref_mut();
                changed |= webhooks.mutate(registry, request, shown, old, &mut of_webhooks).await?;
                of_webhooks.end(object.as_deref());
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    async fn review(
        &self,
        registry: &Registry,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        limits::check(registry, request, object, old).await?;
        built_in::check(registry, request, object, old).await?;
        if let Some(policies) = self.policies.load_full()
            && registry.has(Switchable::ValidatingAdmissionPolicy)
        {
            policies.validate(registry, request, object, old).await?;
        }
        if let Some(webhooks) = self.webhooks.load_full()
            && registry.has(Switchable::ValidatingAdmissionWebhook)
        {
            webhooks.validate(registry, request, object, old).await?;
        }
        Ok(())
    }
}

impl Admission for AdmissionChain {
    fn mutates(&self, registry: &Registry, request: &Request<'_>) -> bool {
        self.mutating_webhooks(registry).is_some()
            || self.mutating_policies(registry).is_some_and(|policies| policies.mutates())
            || built_in::may_preset(request)
    }

    fn is_configured(&self) -> bool {
        self.webhooks.load().is_some() || self.policies.load().is_some()
    }

    /// Limits and built-in plugins, then policies, then webhooks; and again when a policy or webhook
    /// changed the object.
    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Request<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.mutate(registry, request, object, old))
    }

    fn review<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Request<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.review(registry, request, object, old))
    }

    fn charge<'a>(
        &'a self,
        registry: &'a Registry,
        write: &'a Write<'a>,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(quota::charge(registry, write, resource, object, old))
    }
}
