//! One set of controllers per connected downstream cluster, started on connect and stopped when the
//! connection is lost.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::activity::Controllers;
use crate::reflector::Reflectors;
use crate::scope::DownstreamScope;

/// Objects in a page of a list from a downstream cluster: few enough that their size can be
/// bounded.
pub const PAGE_OBJECTS: u32 = 200;

/// A controller that runs once per connected cluster.
pub trait DownstreamController: Send + Sync + 'static {
    /// Kebab case; names the controller in logs.
    fn name(&self) -> &'static str;
    /// Runs the controller until `scope.stop` fires. The future is then dropped at its next await,
    /// so every step must be safe to interrupt.
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()>;
}

/// The controllers of every connected cluster, as one set per cluster.
pub struct DownstreamSets {
    members: Vec<Arc<dyn DownstreamController>>,
    controllers: Controllers,
    stop: CancellationToken,
    running: Mutex<HashMap<String, DropGuard>>,
}

impl DownstreamSets {
    /// Builds the sets without starting any. `members` run in each cluster and are listed in
    /// `controllers`; `stop` stops all sets.
    pub fn new(
        members: Vec<Arc<dyn DownstreamController>>,
        controllers: Controllers,
        stop: CancellationToken,
    ) -> Self {
        Self { members, controllers, stop, running: Mutex::default() }
    }

    /// Starts the set of a cluster. A set that already runs is stopped and replaced. Must be called
    /// inside a tokio runtime.
    pub fn start(&self, cluster: &str, client: &Client) {
        let stop = self.stop.child_token();
        let scope = DownstreamScope {
            cluster: cluster.to_owned(),
            client: client.clone(),
            reflectors: Reflectors::new(client.clone(), stop.clone()).in_pages_of(PAGE_OBJECTS),
            controllers: self.controllers.clone(),
            stop: stop.clone(),
        };
        // The old guard is dropped here, which stops the old set.
        self.running.lock().insert(cluster.to_owned(), stop.clone().drop_guard());
        for member in &self.members {
            let (name, cluster, stop) = (member.name(), cluster.to_owned(), stop.clone());
            let run = member.run(scope.clone());
            let watched = tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = run => {}
                }
            });
            tokio::spawn(async move {
                if let Err(error) = watched.await
                    && error.is_panic()
                {
                    tracing::error!(controller = name, %cluster, "downstream controller panicked");
                }
            });
        }
    }

    /// Stops the set of a cluster. Does nothing when none runs.
    pub fn stop(&self, cluster: &str) {
        self.running.lock().remove(cluster);
    }

    /// Whether a set was started for the cluster and not stopped since. Its controllers may have
    /// ended on their own.
    pub fn is_running(&self, cluster: &str) -> bool {
        self.running.lock().contains_key(cluster)
    }
}
