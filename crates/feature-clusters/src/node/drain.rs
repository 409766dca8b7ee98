//! Drains: the pods of a node are evicted, in its cluster, as the person who requested it.
//!
//! | Where | What |
//! | --- | --- |
//! | [`plan`] | which pods are evicted, which stay, which stand in the way |
//! | [`progress`] | what is left, in words |
//! | [`task`] | one drain: round after round, until nothing is left or it has to end |
//! | [`condition`] | `Drained` of the node's object here, which says how far it is and how it ended |
//!
//! A drain goes on after its request, in the memory of this server. It ends early when somebody
//! stops it, when the node is uncordoned or deleted, when the credential that requested it no
//! longer holds, when the cluster refuses an eviction, after its timeout, and with the server:
//! [`recover`] marks such drains at the next start. Whatever happens, the node stays cordoned, and
//! what was evicted is not undone.

pub mod condition;
pub mod plan;
pub mod progress;
pub mod task;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_management::Node;
use controller::{Attempt, ReconcileError};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use rest_view::{ApiError, Key};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::condition::Interruption;
use self::task::{Ending, Task};

/// Drains that one server runs at once.
const DRAINS_MAX: usize = 64;
/// Longest wait for a drain that was stopped to say so.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);
/// Nodes read at once while the drains of an earlier run are looked for.
const PAGE_SIZE: u32 = 200;
/// Wait before the drains of an earlier run are looked for again.
const RECOVERY_DELAY: Duration = Duration::from_secs(2);

/// Who writes how far drains are. Evictions are the caller's.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["nodes"], &["get", "list"]), ours(&["nodes/status"], &["patch"])];
    ControllerIdentity::new("node-drains", rules)
}

/// The drains that run in this server, by the node's object.
#[derive(Default)]
pub struct Drains {
    running: Mutex<HashMap<Key, Running>>,
}

struct Running {
    /// Ends the drain.
    stop: CancellationToken,
    /// Fires once its end is written.
    ended: CancellationToken,
}

impl Drains {
    fn is_running(&self, node: &Key) -> bool {
        self.running.lock().contains_key(node)
    }
}

/// Starts and stops drains.
#[derive(Clone)]
pub struct Drainer {
    drains: Arc<Drains>,
    /// Acts as [`identity()`].
    writer: Client,
    /// Fires when the server stops.
    server_stop: CancellationToken,
}

impl Drainer {
    /// `writer` acts as [`identity()`]; `drains` are those of this server.
    pub fn new(context: &ManagementContext, writer: Client, drains: Arc<Drains>) -> Self {
        Self { drains, writer, server_stop: context.scope.stop.clone() }
    }

    /// Starts a drain, and returns when the node's object says so.
    ///
    /// # Errors
    /// 409 when one runs already, 429 when too many do.
    pub async fn start(&self, task: Task) -> Result<(), ApiError> {
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        {
            let mut running = self.drains.running.lock();
            if running.contains_key(&task.node) {
                let text = "the node is being drained already; stopDrain ends that";
                return Err(ApiError::new(409, "Conflict", text));
            }
            if running.len() >= DRAINS_MAX {
                let text =
                    format!("{DRAINS_MAX} nodes are being drained; wait until one is, or stop one");
                return Err(ApiError::new(429, "TooManyRequests", text).retry_after(5));
            }
            let entry = Running { stop: stop.clone(), ended: ended.clone() };
            running.insert(task.node.clone(), entry);
        }
        let entry = Entry { drains: self.drains.clone(), node: task.node.clone(), ended };
        let (drainer, (begun, is_begun)) = (self.clone(), oneshot::channel());
        // Also when the request is broken off, or the task panics.
        tokio::spawn(async move {
            let _entry = entry;
            let written = task.report(&drainer.writer).await;
            let is_written = written.is_ok();
            let _ = begun.send(written);
            if is_written {
                drainer.run(task, stop).await;
            }
        });
        let written = is_begun.await.map_err(ApiError::server_error)?;
        written.map_err(|error| ApiError::server_error(error.chain()))
    }

    async fn run(&self, task: Task, stop: CancellationToken) {
        let (cluster, node) = (task.node.namespace.clone(), task.name.clone());
        tracing::info!(cluster, node, user = task.user, "drain begins");
        let ending = tokio::select! {
            ending = task.run(&self.writer) => ending,
            () = stop.cancelled() => Ending::Stopped,
            // The next start reports it: this server's API may be closed by now.
            () = self.server_stop.cancelled() => return,
        };
        tracing::info!(cluster, node, ending = ending.word(), "drain ended");
        if let Err(error) = condition::write_ending(&self.writer, &task.node, &ending).await {
            tracing::warn!(
                cluster,
                node,
                error = error.chain(),
                "the end of a drain was not written"
            );
        }
    }

    /// Stops the drain of a node, and returns when its object says so. One of which nothing is
    /// known, as after a restart, is marked stopped.
    ///
    /// # Errors
    /// The object could not be written.
    pub async fn stop(&self, node: &Key) -> Result<(), ApiError> {
        let running = {
            let running = self.drains.running.lock();
            running.get(node).map(|drain| (drain.stop.clone(), drain.ended.clone()))
        };
        let Some((stop, ended)) = running else {
            let written = condition::interrupt(&self.writer, node, Interruption::Stopped).await;
            return written.map_err(|error| ApiError::server_error(error.chain()));
        };
        stop.cancel();
        if tokio::time::timeout(STOP_TIME_MAX, ended.cancelled()).await.is_err() {
            tracing::warn!(node = node.name, "a drain that was stopped has not ended yet");
        }
        Ok(())
    }
}

/// The place of a drain among those that run. Leaves it when dropped.
struct Entry {
    drains: Arc<Drains>,
    node: Key,
    ended: CancellationToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.drains.running.lock().remove(&self.node);
        self.ended.cancel();
    }
}

/// Marks the drains that ended with an earlier run of the server. Runs until `context.scope.stop`.
pub async fn recover(context: ManagementContext, writer: Client, drains: Arc<Drains>) {
    while let Err(error) = mark_interrupted(&writer, &drains).await {
        tracing::debug!(
            error = error.chain(),
            "interrupted drains were not marked; will try again"
        );
        tokio::time::sleep(RECOVERY_DELAY).await;
    }
    context.scope.stop.cancelled().await;
}

async fn mark_interrupted(writer: &Client, drains: &Drains) -> Result<(), ReconcileError> {
    let nodes: Api<Node> = Api::all(writer.clone());
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let list = nodes.list(&page).await.attempt(|| "list nodes".to_owned())?;
        let draining =
            list.items.iter().filter(|node| condition::is_draining(&node.status.conditions));
        for node in draining {
            let namespace = node.namespace().unwrap_or_default();
            let key = Key { namespace, name: node.name_any() };
            if !drains.is_running(&key) {
                condition::interrupt(writer, &key, Interruption::Restart).await?;
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
