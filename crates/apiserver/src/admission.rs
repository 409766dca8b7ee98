//! Admission: what a write passes between the request and the storage, beside the strategy of its
//! kind.
//!
//! [`limits`] applies the LimitRanges of the namespace, [`built_in`] holds the other plugins that
//! kube-apiserver compiles in, [`policies`] evaluates expressions, [`webhooks`] calls the servers
//! that configuration objects name, and [`crate::quota`] enforces ResourceQuotas.
//!
//! [`AdmissionChain`] runs all of them in order. The registry calls it through
//! [`crate::registry::admission`], which also holds the rules that an embedding program adds. Start
//! reading there.

pub mod built_in;
pub mod expressions;
mod limits;
pub mod match_conditions;
mod objects;
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
use crate::registry::admission::{Admission, AdmissionRequest};
use crate::resource::Resource;
use crate::strategy::Write;

/// Limits, built-in plugins, policies, webhooks and quotas, in the order of kube-apiserver.
#[derive(Default)]
pub struct AdmissionChain {
    /// `None` while no webhook is configured.
    webhooks: ArcSwapOption<webhooks::WebhookTable>,
    /// `None` while no policy is bound.
    policies: ArcSwapOption<policies::PolicyTable>,
}

impl AdmissionChain {
    /// Replaces the webhooks that later writes are sent to.
    fn set_webhooks(&self, table: Option<webhooks::WebhookTable>) {
        self.webhooks.store(table.map(Arc::new));
    }

    /// Replaces the policies that later writes must satisfy.
    fn set_policies(&self, table: Option<policies::PolicyTable>) {
        self.policies.store(table.map(Arc::new));
    }

    fn mutating_policies(&self, registry: &Registry) -> Option<Arc<policies::PolicyTable>> {
        let is_on = registry.has(Switchable::MutatingAdmissionPolicy);
        self.policies.load_full().filter(|_| is_on)
    }

    fn mutating_webhooks(&self, registry: &Registry) -> Option<Arc<webhooks::WebhookTable>> {
        let is_on = registry.has(Switchable::MutatingAdmissionWebhook);
        self.webhooks.load_full().filter(|_| is_on)
    }

    async fn mutate(
        &self,
        registry: &Registry,
        request: &AdmissionRequest<'_>,
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
                let target = object.as_deref_mut();
                changed |=
                    webhooks.mutate(registry, request, target, old, &mut of_webhooks).await?;
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
        request: &AdmissionRequest<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        limits::validate(registry, request, object, old).await?;
        built_in::validate(registry, request, object, old).await?;
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
    fn mutates(&self, registry: &Registry, request: &AdmissionRequest<'_>) -> bool {
        self.mutating_webhooks(registry).is_some()
            || self.mutating_policies(registry).is_some_and(|policies| policies.mutates())
            || built_in::may_preset(request)
    }

    fn is_configured(&self) -> bool {
        self.webhooks.load().is_some() || self.policies.load().is_some()
    }

    /// Runs limits and built-in plugins, then policies, then webhooks. Runs all of them a second
    /// time when a policy or webhook changed the object.
    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a AdmissionRequest<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.mutate(registry, request, object, old))
    }

    fn review<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a AdmissionRequest<'a>,
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
