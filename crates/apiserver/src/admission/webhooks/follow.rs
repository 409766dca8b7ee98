//! Maintains the table of webhooks in effect from the two kinds that configure them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::Status;
use serde_json::Value;
use tokio::task::JoinSet;

use super::hook::Hook;
use super::{GROUP, MUTATING, VALIDATING, WebhookTable};
use crate::admission::AdmissionChain;
use crate::fields::items;
use crate::registry::{Registry, Subscription, Update};

/// Maintains the table of webhooks in effect, until dropped.
pub struct WebhookFollower {
    _tasks: JoinSet<()>,
}

/// Loads the stored configurations, then follows their changes in a task. When this returns, every
/// write is sent to every stored webhook that matches. Both kinds must be installed.
///
/// # Errors
/// One of the kinds is not served, or the storage cannot be read. The caller does not serve writes.
pub async fn start(
    registry: &Arc<Registry>,
    chain: &Arc<AdmissionChain>,
) -> Result<WebhookFollower, Status> {
    registry.fresh().await?;
    let mut configurations = Configurations::default();
    let mut mutating = registry.subscribe_to(GROUP, MUTATING)?;
    let mut validating = registry.subscribe_to(GROUP, VALIDATING)?;
    for (mutates, subscription) in [(true, &mut mutating), (false, &mut validating)] {
        let first = subscription.next().await.ok_or_else(Status::unknown_resource)?;
        configurations.apply(mutates, first);
    }
    chain.set_webhooks(configurations.table());
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(chain.clone(), configurations, mutating, validating));
    Ok(WebhookFollower { _tasks: tasks })
}

async fn follow(
    chain: Arc<AdmissionChain>,
    mut configurations: Configurations,
    mut mutating: Subscription,
    mut validating: Subscription,
) {
    loop {
        let (mutates, update) = tokio::select! {
            update = mutating.next() => (true, update),
            update = validating.next() => (false, update),
        };
        let Some(update) = update else { return };
        configurations.apply(mutates, update);
        chain.set_webhooks(configurations.table());
    }
}

/// The webhooks of each configuration, by its name.
#[derive(Default)]
struct Configurations {
    mutating: BTreeMap<String, Value>,
    validating: BTreeMap<String, Value>,
}

impl Configurations {
    fn apply(&mut self, mutates: bool, update: Update) {
        let configurations = if mutates { &mut self.mutating } else { &mut self.validating };
        update.apply_to(configurations, |configuration| configuration.value()["webhooks"].take());
    }

    /// `None` when no webhook is configured.
    fn table(&self) -> Option<WebhookTable> {
        let hooks = |configurations: &BTreeMap<String, Value>| -> Vec<Hook> {
            configurations.values().flat_map(items).map(Hook::read).collect()
        };
        let table =
            WebhookTable { mutating: hooks(&self.mutating), validating: hooks(&self.validating) };
        (!table.mutating.is_empty() || !table.validating.is_empty()).then_some(table)
    }
}
