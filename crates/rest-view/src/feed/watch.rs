//! One watch per kind and cluster, shared by all sockets that follow it. Stores no objects.
//!
//! A watch begins with the first socket and ends with the last. When changes may have been missed,
//! its sockets are closed: a client that connects again gets the current state. The same happens
//! when an unavailable cluster connects: until then its kinds have no objects. A kind that an API
//! does not serve has no objects either.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::TryStreamExt;
use kube::Client;
use kube::api::WatchEvent;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::inbox::{Inbox, PendingChange};
use crate::error::ApiError;
use crate::types::store::{
    ChangeEffect, Key, KubeResource, METADATA_LIST, WatchDetail, WatchedResource,
};

/// Pause before a watch that the API server ended is resumed at its last version.
const RESUME_PAUSE: Duration = Duration::from_millis(100);

/// Interval between checks whether an unavailable cluster has connected.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(1);

/// Media type of objects with only their metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Returns a client of a cluster while the cluster is connected.
pub(super) type Clusters = dyn Fn(&str) -> Option<Client> + Send + Sync;

/// See the module.
pub(super) struct Watches {
    client: Client,
    clusters: Arc<Clusters>,
    shared: Mutex<HashMap<WatchSource, Weak<Watch>>>,
}

/// A kind, the cluster that serves it (`None`: the API below the view), and how much is
/// transferred.
type WatchSource = (Option<String>, KubeResource, WatchDetail);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Ended,
}

/// The watch of one kind.
pub(super) struct Watch {
    members: Mutex<Vec<WatchMember>>,
    phase: watch::Sender<Phase>,
    _stop: DropGuard,
}

struct WatchMember {
    inbox: Weak<Inbox>,
    /// Index of the type among the socket's.
    topic: usize,
    effect: ChangeEffect,
}

impl Watches {
    /// Watches of the API below the view.
    pub fn new(client: Client) -> Self {
        Self { client, clusters: Arc::new(|_| None), shared: Mutex::default() }
    }
    /// Also watches in the clusters that `clusters` returns a client for.
    pub fn reaching(self, clusters: Arc<Clusters>) -> Self {
        Self { clusters, ..self }
    }

    /// Changes of the resource enter the inbox from [`Watch::wait_running`] on, for as long as the
    /// result is held. Must be called inside a tokio runtime.
    pub fn join(&self, followed: WatchedResource, inbox: &Arc<Inbox>, topic: usize) -> Arc<Watch> {
        let WatchedResource { cluster, resource, detail, effect } = followed;
        let source = (cluster, resource, detail);
        let mut shared = self.shared.lock();
        let known = shared.get(&source).and_then(Weak::upgrade);
        let watch = known.filter(|watch| *watch.phase.borrow() != Phase::Ended);
        let watch = watch.unwrap_or_else(|| {
            let stop = CancellationToken::new();
            let watch = Arc::new(Watch {
                members: Mutex::default(),
                phase: watch::Sender::new(Phase::Starting),
                _stop: stop.clone().drop_guard(),
            });
            let work = self.work(Arc::downgrade(&watch), source.clone());
            tokio::spawn(stop.run_until_cancelled_owned(work));
            shared.retain(|_, watch| watch.strong_count() > 0);
            shared.insert(source, Arc::downgrade(&watch));
            watch
        });
        watch.members.lock().push(WatchMember { inbox: Arc::downgrade(inbox), topic, effect });
        watch
    }

    fn work(
        &self,
        watch: Weak<Watch>,
        (cluster, resource, detail): WatchSource,
    ) -> impl Future<Output = ()> + use<> {
        let (client, clusters) = (self.client.clone(), self.clusters.clone());
        async move {
            match cluster {
                None => run(watch, client, resource, detail).await,
                Some(cluster) => match clusters(&cluster) {
                    Some(client) => run(watch, client, resource, detail).await,
                    None => await_cluster(&watch, &*clusters, &cluster).await,
                },
            }
        }
    }
}

impl Watch {
    /// Waits until every later change is reported. Watches that have ended have already reported
    /// that they missed changes.
    pub async fn wait_running(&self) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as `self`.
        let _ = phase.wait_for(|phase| *phase != Phase::Starting).await;
    }

    fn set_running(&self) {
        self.phase.send_replace(Phase::Running);
    }

    fn notify(&self, key: Key, change: &PendingChange) {
        let key = Arc::new(key);
        self.members.lock().retain(|member| {
            let Some(inbox) = member.inbox.upgrade() else { return false };
            match &member.effect {
                ChangeEffect::Visibility => inbox.request_resync(),
                ChangeEffect::Object(prefix) if prefix.is_empty() => {
                    inbox.put((member.topic, key.clone()), change.clone());
                }
                ChangeEffect::Object(prefix) => {
                    let name = format!("{prefix}{}", key.name);
                    let key = Key { name, namespace: key.namespace.clone() };
                    inbox.put((member.topic, Arc::new(key)), change.clone());
                }
            }
            true
        });
    }

    fn end(&self) {
        self.phase.send_replace(Phase::Ended);
        for inbox in self.members.lock().iter().filter_map(|member| member.inbox.upgrade()) {
            inbox.mark_missed();
        }
    }
}

/// Waits until an unavailable cluster connects. Then its objects become visible.
async fn await_cluster(watch: &Weak<Watch>, clusters: &Clusters, cluster: &str) {
    if let Some(watch) = watch.upgrade() {
        watch.set_running();
    }
    while clusters(cluster).is_none() {
        tokio::time::sleep(UNAVAILABLE_PAUSE).await;
    }
    if let Some(watch) = watch.upgrade() {
        watch.end();
    }
}

async fn run(watch: Weak<Watch>, client: Client, resource: KubeResource, detail: WatchDetail) {
    let ended = follow(&watch, &client, &resource, detail).await;
    if let (Err(error), Some(watch)) = (ended, watch.upgrade()) {
        tracing::warn!(kind = resource.kind, %error, "changes may have been missed; sockets close");
        watch.end();
    }
}

/// Follows the kind until the watch is dropped (`Ok`) or changes may have been missed.
async fn follow(
    watch: &Weak<Watch>,
    client: &Client,
    resource: &KubeResource,
    detail: WatchDetail,
) -> Result<(), ApiError> {
    let path = resource.collection_path("");
    let list = client.request::<Value>(get(format!("{path}?limit=1"), METADATA_LIST)?).await;
    let mut version = match list.map_err(ApiError::from) {
        Ok(list) => version_of(&list),
        Err(error) if error.is_not_found() => {
            if let Some(watch) = watch.upgrade() {
                watch.set_running();
            }
            return std::future::pending().await;
        }
        Err(error) => return Err(error),
    };
    loop {
        let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        let events =
            client.request_events::<Value>(get(format!("{path}?{query}"), accept(detail))?).await?;
        let mut events = std::pin::pin!(events);
        let Some(running) = watch.upgrade() else { return Ok(()) };
        running.set_running();
        drop(running);
        while let Some(event) = events.try_next().await? {
            let Some(watch) = watch.upgrade() else { return Ok(()) };
            let (object, removed) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(mark) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            version = version_of(&object);
            let key = Key::of(&object);
            let change = match removed {
                true => PendingChange::Removed(
                    (detail == WatchDetail::Object).then(|| Arc::new(object)),
                ),
                false => PendingChange::Changed,
            };
            watch.notify(key, &change);
        }
        // API servers end every watch after some time.
        tokio::time::sleep(RESUME_PAUSE).await;
    }
}

fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

fn accept(detail: WatchDetail) -> &'static str {
    match detail {
        WatchDetail::Object => "application/json",
        WatchDetail::Metadata => METADATA,
    }
}

fn get(path: String, accept: &str) -> Result<http::Request<Vec<u8>>, ApiError> {
    let request = http::Request::get(path).header(http::header::ACCEPT, accept);
    request.body(Vec::new()).map_err(ApiError::server_error)
}
