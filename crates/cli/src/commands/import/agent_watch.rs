//! Polls the agent's pod in the imported cluster, in its own task: a slow cluster must not delay
//! events of the server.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::diagnosis::{AGENT_SELECTOR, AgentObjects, Progress, diagnose};
use super::target::AGENT_NAMESPACE;

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// Timeout of one poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of events read from the namespace, which has one pod of the agent.
const EVENTS_MAX: u32 = 500;

/// Polls until it is dropped.
pub struct AgentWatch {
    progress: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

impl AgentWatch {
    /// Starts polling in the cluster of `target`.
    pub fn begin(target: kube::Client) -> Self {
        let (sender, progress) = watch::channel(Progress::default());
        let task = tokio::spawn(async move {
            loop {
                // A failed read is repeated at the next poll.
                if let Ok(Ok(observed)) = timeout(POLL_TIMEOUT, observe(&target)).await {
                    sender.send_replace(diagnose(&observed));
                }
                sleep(POLL_EVERY).await;
            }
        });
        Self { progress, task }
    }

    /// The result of the last poll.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }
}

impl Drop for AgentWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn observe(target: &kube::Client) -> kube::Result<AgentObjects> {
    let agent_pods = ListParams::default().labels(AGENT_SELECTOR);
    let recent = ListParams::default().limit(EVENTS_MAX);
    let sets = Api::<ReplicaSet>::namespaced(target.clone(), AGENT_NAMESPACE);
    let pods = Api::<Pod>::namespaced(target.clone(), AGENT_NAMESPACE);
    let events = Api::<Event>::namespaced(target.clone(), AGENT_NAMESPACE);
    let (sets, pods, events) =
        tokio::join!(sets.list(&agent_pods), pods.list(&agent_pods), events.list(&recent));
    // Events only add details.
    let events = events.map(|list| list.items).unwrap_or_default();
    Ok(AgentObjects { replica_sets: sets?.items, pods: pods?.items, events })
}
