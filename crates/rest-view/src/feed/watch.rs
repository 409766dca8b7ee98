//! One watch per kind, shared by all sockets that are about it. Keeps no objects.
//!
//! A watch begins with the first socket and ends with the last. When changes may have been missed
//! it says so to its sockets, which close: a client that connects again learns the present state.

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

use super::inbox::{Inbox, News};
use crate::error::ApiError;
use crate::store::{Key, KubeResource};

/// Pause before a watch that the API server ended is taken up again where it was.
const RESUME_PAUSE: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Watches {
    client: Client,
    shared: Mutex<HashMap<KubeResource, Weak<Watch>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    Ended,
}

/// The watch of one kind.
pub(super) struct Watch {
    members: Mutex<Vec<Member>>,
    phase: watch::Sender<Phase>,
    _stop: DropGuard,
}

struct Member {
    inbox: Weak<Inbox>,
    /// Index of the type among the socket's.
    topic: usize,
}

impl Watches {
    pub fn new(client: Client) -> Self {
        Self { client, shared: Mutex::default() }
    }

    /// Changes of the kind go into the inbox from [`Watch::running`] on, for as long as the result
    /// is held. Must be called inside a tokio runtime.
    pub fn join(&self, resource: &KubeResource, inbox: &Arc<Inbox>, topic: usize) -> Arc<Watch> {
        let mut shared = self.shared.lock();
        let known = shared.get(resource).and_then(Weak::upgrade);
        let watch = known.filter(|watch| *watch.phase.borrow() != Phase::Ended);
        let watch = watch.unwrap_or_else(|| {
            let stop = CancellationToken::new();
            let watch = Arc::new(Watch {
                members: Mutex::default(),
                phase: watch::Sender::new(Phase::Starting),
                _stop: stop.clone().drop_guard(),
            });
            let work = run(Arc::downgrade(&watch), self.client.clone(), resource.clone());
            tokio::spawn(stop.run_until_cancelled_owned(work));
            shared.retain(|_, watch| watch.strong_count() > 0);
            shared.insert(resource.clone(), Arc::downgrade(&watch));
            watch
        });
        watch.members.lock().push(Member { inbox: Arc::downgrade(inbox), topic });
        watch
    }
}

impl Watch {
    /// Waits until every later change is told. Ended watches have told that they missed some.
    pub async fn running(&self) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as `self`.
        let _ = phase.wait_for(|phase| *phase != Phase::Starting).await;
    }

    fn tell(&self, object: Value, removed: bool) {
        let key = Arc::new(Key::of(&object));
        let news = if removed { News::Removed(Some(Arc::new(object))) } else { News::Changed };
        self.members.lock().retain(|member| {
            let inbox = member.inbox.upgrade();
            inbox.map(|inbox| inbox.put((member.topic, key.clone()), news.clone())).is_some()
        });
    }

    fn end(&self) {
        self.phase.send_replace(Phase::Ended);
        for inbox in self.members.lock().iter().filter_map(|member| member.inbox.upgrade()) {
            inbox.miss();
        }
    }
}

async fn run(watch: Weak<Watch>, client: Client, resource: KubeResource) {
    let ended = follow(&watch, &client, &resource).await;
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
) -> Result<(), ApiError> {
    let path = resource.collection_path("");
    let list: Value = client.request(get(format!("{path}?limit=1"))?).await?;
    let mut version = version_of(&list);
    loop {
        let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        let events = client.request_events::<Value>(get(format!("{path}?{query}"))?).await?;
        let mut events = std::pin::pin!(events);
        let Some(running) = watch.upgrade() else { return Ok(()) };
        running.phase.send_replace(Phase::Running);
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
            watch.tell(object, removed);
        }
        // API servers end every watch after some time.
        tokio::time::sleep(RESUME_PAUSE).await;
    }
}

fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

fn get(path: String) -> Result<http::Request<Vec<u8>>, ApiError> {
    let request = http::Request::get(path).header(http::header::ACCEPT, "application/json");
    request.body(Vec::new()).map_err(ApiError::server_error)
}
