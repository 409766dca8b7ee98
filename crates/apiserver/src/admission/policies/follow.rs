//! Which policies are in force: follows policies and the bindings that name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::Status;
use serde_json::Value;
use tokio::task::JoinSet;

use super::policy::{Binding, Policy};
use super::{
    BINDINGS, MUTATING_BINDINGS, MUTATING_POLICIES, POLICIES, Table, mutating, validating,
};
use crate::admission::AdmissionChain;
use crate::admission::webhooks::GROUP;
use crate::registry::{Registry, Subscription};

/// Keeps the table of policies in force, until dropped.
pub struct PolicyFollower {
    _tasks: JoinSet<()>,
}

/// Loads the stored policies, then follows their changes in a task. When this returns, no write
/// passes by a stored policy. All four kinds must be installed.
///
/// # Errors
/// One of the kinds is not served, or the storage cannot be read.
pub async fn start(
    registry: &Arc<Registry>,
    chain: &Arc<AdmissionChain>,
) -> Result<PolicyFollower, Status> {
    registry.fresh().await?;
    let validating = [POLICIES, BINDINGS];
    let validating = Known::start(registry, validating, validating::Rules::read).await?;
    let mutating = [MUTATING_POLICIES, MUTATING_BINDINGS];
    let mutating = Known::start(registry, mutating, mutating::Rules::read).await?;
    chain.set_policies(table(&validating, &mutating));
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(chain.clone(), validating, mutating));
    Ok(PolicyFollower { _tasks: tasks })
}

async fn follow(
    chain: Arc<AdmissionChain>,
    mut validating: Known<validating::Rules>,
    mut mutating: Known<mutating::Rules>,
) {
    loop {
        let changed = tokio::select! {
            changed = validating.next() => changed,
            changed = mutating.next() => changed,
        };
        if changed.is_none() {
            return;
        }
        chain.set_policies(table(&validating, &mutating));
    }
}

/// `None` when no policy is bound.
fn table(
    validating: &Known<validating::Rules>,
    mutating: &Known<mutating::Rules>,
) -> Option<Table> {
    let table = Table { validating: validating.bound(), mutating: mutating.bound() };
    (!table.validating.is_empty() || !table.mutating.is_empty()).then_some(table)
}

/// Policies of one kind and their bindings, by name, and where changes of them come from.
struct Known<R> {
    policies: BTreeMap<String, Arc<R>>,
    bindings: BTreeMap<String, Arc<Binding>>,
    read: fn(&Value) -> R,
    of_policies: Subscription,
    of_bindings: Subscription,
}

impl<R> Known<R> {
    async fn start(
        registry: &Arc<Registry>,
        [policies, bindings]: [&str; 2],
        read: fn(&Value) -> R,
    ) -> Result<Self, Status> {
        let mut known = Self {
            policies: BTreeMap::new(),
            bindings: BTreeMap::new(),
            read,
            of_policies: registry.subscribe_to(GROUP, policies)?,
            of_bindings: registry.subscribe_to(GROUP, bindings)?,
        };
        let first = known.of_policies.next().await.ok_or_else(Status::unknown_resource)?;
        first.keep(&mut known.policies, |policy| Arc::new(read(&policy.value())));
        let first = known.of_bindings.next().await.ok_or_else(Status::unknown_resource)?;
        first.keep(&mut known.bindings, |binding| Arc::new(Binding::read(&binding.value())));
        Ok(known)
    }

    /// Takes in the next change; `None` when a kind is served no more. Cancel-safe.
    async fn next(&mut self) -> Option<()> {
        let read = self.read;
        tokio::select! {
            update = self.of_policies.next() => {
                update?.keep(&mut self.policies, |policy| Arc::new(read(&policy.value())));
            }
            update = self.of_bindings.next() => {
                let read = |binding: &Value| Arc::new(Binding::read(binding));
                update?.keep(&mut self.bindings, |binding| read(&binding.value()));
            }
        }
        Some(())
    }

    fn bound(&self) -> Vec<Policy<R>> {
        let with_bindings = self.policies.iter().map(|(name, rules)| {
            let own = self.bindings.values().filter(|binding| binding.policy == *name);
            Policy { rules: rules.clone(), bindings: own.cloned().collect() }
        });
        with_bindings.filter(|policy| !policy.bindings.is_empty()).collect()
    }
}
