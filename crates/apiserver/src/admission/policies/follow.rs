//! Maintains the table of policies in effect from the policies and the bindings that name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::Status;
use serde_json::Value;
use tokio::task::JoinSet;

use super::policy::{Binding, BoundPolicy};
use super::{
    BINDINGS, MUTATING_BINDINGS, MUTATING_POLICIES, POLICIES, PolicyTable, mutating, validating,
};
use crate::admission::AdmissionChain;
use crate::admission::webhooks::GROUP;
use crate::registry::{Registry, Subscription};

/// Maintains the table of policies in effect, until dropped.
pub struct PolicyFollower {
    _tasks: JoinSet<()>,
}

/// Loads the stored policies, then follows their changes in a task. When this returns, every write
/// is matched against every stored policy. All four kinds must be installed.
///
/// # Errors
/// One of the kinds is not served, or the storage cannot be read. The caller does not serve writes.
pub async fn start(
    registry: &Arc<Registry>,
    chain: &Arc<AdmissionChain>,
) -> Result<PolicyFollower, Status> {
    registry.fresh().await?;
    let validating = [POLICIES, BINDINGS];
    let validating =
        PolicySet::start(registry, validating, validating::ValidatingPolicy::read).await?;
    let mutating = [MUTATING_POLICIES, MUTATING_BINDINGS];
    let mutating = PolicySet::start(registry, mutating, mutating::MutatingPolicy::read).await?;
    chain.set_policies(table(&validating, &mutating));
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(chain.clone(), validating, mutating));
    Ok(PolicyFollower { _tasks: tasks })
}

async fn follow(
    chain: Arc<AdmissionChain>,
    mut validating: PolicySet<validating::ValidatingPolicy>,
    mut mutating: PolicySet<mutating::MutatingPolicy>,
) {
    loop {
        let changed = tokio::select! {
            changed = validating.apply_next() => changed,
            changed = mutating.apply_next() => changed,
        };
        if changed.is_none() {
            return;
        }
        chain.set_policies(table(&validating, &mutating));
    }
}

/// `None` when no policy is bound.
fn table(
    validating: &PolicySet<validating::ValidatingPolicy>,
    mutating: &PolicySet<mutating::MutatingPolicy>,
) -> Option<PolicyTable> {
    let table = PolicyTable {
        validating: validating.bound_policies(),
        mutating: mutating.bound_policies(),
    };
    (!table.validating.is_empty() || !table.mutating.is_empty()).then_some(table)
}

/// The policies of one kind and their bindings, by name, and the subscriptions that report their
/// changes.
struct PolicySet<R> {
    policies: BTreeMap<String, Arc<R>>,
    bindings: BTreeMap<String, Arc<Binding>>,
    read: fn(&Value) -> R,
    of_policies: Subscription,
    of_bindings: Subscription,
}

impl<R> PolicySet<R> {
    async fn start(
        registry: &Arc<Registry>,
        [policies, bindings]: [&str; 2],
        read: fn(&Value) -> R,
    ) -> Result<Self, Status> {
        let mut set = Self {
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
            read,
            of_policies: registry.subscribe_to(GROUP, policies)?,
            of_bindings: registry.subscribe_to(GROUP, bindings)?,
        };
        let first = set.of_policies.next().await.ok_or_else(Status::unknown_resource)?;
        first.apply_to(&mut set.policies, |policy| Arc::new(read(&policy.value())));
        let first = set.of_bindings.next().await.ok_or_else(Status::unknown_resource)?;
        first.apply_to(&mut set.bindings, |binding| Arc::new(Binding::read(&binding.value())));
        Ok(set)
    }

    /// Applies the next change; `None` when one of the kinds is no longer served. Cancel-safe.
    async fn apply_next(&mut self) -> Option<()> {
        let read = self.read;
        tokio::select! {
            update = self.of_policies.next() => {
                update?.apply_to(&mut self.policies, |policy| Arc::new(read(&policy.value())));
            }
            update = self.of_bindings.next() => {
                let read = |binding: &Value| Arc::new(Binding::read(binding));
                update?.apply_to(&mut self.bindings, |binding| read(&binding.value()));
            }
        }
        Some(())
    }

    fn bound_policies(&self) -> Vec<BoundPolicy<R>> {
        let with_bindings = self.policies.iter().map(|(name, policy)| {
            let own = self.bindings.values().filter(|binding| binding.policy == *name);
            BoundPolicy { rules: policy.clone(), bindings: own.cloned().collect() }
        });
        with_bindings.filter(|policy| !policy.bindings.is_empty()).collect()
    }
}
