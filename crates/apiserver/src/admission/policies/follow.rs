//! Which policies are in force: follows policies and the bindings that name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::Status;
use tokio::task::JoinSet;

use super::policy::{Binding, Policy, Rules};
use super::{BINDINGS, POLICIES, Table};
use crate::admission::webhooks::GROUP;
use crate::registry::{Registry, Subscription};

/// Keeps the table of policies in force, until dropped.
pub struct PolicyFollower {
    _tasks: JoinSet<()>,
}

/// Loads the stored policies, then follows their changes in a task. When this returns, no write
/// passes by a stored policy. Both kinds must be installed.
///
/// # Errors
/// One of the kinds is not served, or the storage cannot be read.
pub async fn start(registry: &Arc<Registry>) -> Result<PolicyFollower, Status> {
    registry.fresh().await?;
    let mut known = Known::default();
    let mut policies = subscribe(registry, POLICIES)?;
    let mut bindings = subscribe(registry, BINDINGS)?;
    let first = policies.next().await.ok_or_else(Status::unknown_resource)?;
    first.keep(&mut known.policies, |policy| Arc::new(Rules::read(&policy.value())));
    let first = bindings.next().await.ok_or_else(Status::unknown_resource)?;
    first.keep(&mut known.bindings, |binding| Arc::new(Binding::read(&binding.value())));
    registry.set_policies(known.table());
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(registry.clone(), known, policies, bindings));
    Ok(PolicyFollower { _tasks: tasks })
}

fn subscribe(registry: &Arc<Registry>, plural: &str) -> Result<Subscription, Status> {
    let resource = registry.find(GROUP, plural).ok_or_else(Status::unknown_resource)?;
    Ok(registry.subscribe(&resource))
}

async fn follow(
    registry: Arc<Registry>,
    mut known: Known,
    mut policies: Subscription,
    mut bindings: Subscription,
) {
    loop {
        tokio::select! {
            update = policies.next() => {
                let Some(update) = update else { return };
                update.keep(&mut known.policies, |policy| Arc::new(Rules::read(&policy.value())));
            }
            update = bindings.next() => {
                let Some(update) = update else { return };
                update.keep(&mut known.bindings, |binding| Arc::new(Binding::read(&binding.value())));
            }
        }
        registry.set_policies(known.table());
    }
}

/// By name.
#[derive(Default)]
struct Known {
    policies: BTreeMap<String, Arc<Rules>>,
    bindings: BTreeMap<String, Arc<Binding>>,
}

impl Known {
    /// `None` when no policy is bound.
    fn table(&self) -> Option<Table> {
        let mut table = Table::default();
        for (name, rules) in &self.policies {
            let own = self.bindings.values().filter(|binding| binding.policy == *name);
            let bindings: Vec<_> = own.cloned().collect();
            if !bindings.is_empty() {
                table.policies.push(Policy { rules: rules.clone(), bindings });
            }
        }
        (!table.policies.is_empty()).then_some(table)
    }
}
