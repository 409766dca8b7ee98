//! Looks at the agent's pod in the cluster that is being imported, beside the import itself: a slow
//! cluster must not hold up the news of the server.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::diagnosis::{AGENT_SELECTOR, Observed, Progress, diagnose};
use super::target::AGENT_NAMESPACE;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// For one look.
const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// Events of a namespace that holds one pod; the rest is of others.
const EVENTS_MAX: u32 = 500;

/// Looks until it is dropped.
pub struct AgentWatch {
    progress: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

impl AgentWatch {
    pub fn begin(target: kube::Client) -> Self {
        let (sender, progress) = watch::channel(Progress::default());
        let task = tokio::spawn(async move {
            loop {
                // What cannot be read this time may be read next time.
                if let Ok(Ok(observed)) = timeout(LOOK_WITHIN, look(&target)).await {
                    sender.send_replace(diagnose(&observed));
                }
                sleep(LOOK_EVERY).await;
            }
        });
        Self { progress, task }
    }

    /// What was seen last.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }
}

impl Drop for AgentWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look(target: &kube::Client) -> kube::Result<Observed> {
    let ours = ListParams::default().labels(AGENT_SELECTOR);
    let recent = ListParams::default().limit(EVENTS_MAX);
    let sets = Api::<ReplicaSet>::namespaced(target.clone(), AGENT_NAMESPACE);
    let pods = Api::<Pod>::namespaced(target.clone(), AGENT_NAMESPACE);
    let events = Api::<Event>::namespaced(target.clone(), AGENT_NAMESPACE);
    let (sets, pods, events) =
        tokio::join!(sets.list(&ours), pods.list(&ours), events.list(&recent));
    // Events only add words.
    let events = events.map(|list| list.items).unwrap_or_default();
    Ok(Observed { replica_sets: sets?.items, pods: pods?.items, events })
}
