//! One watch per kind and cluster, shared by all sockets that are about it. Keeps no objects.
//!
//! A watch begins with the first socket and ends with the last. When changes may have been missed
//! it says so to its sockets, which close: a client that connects again learns the present state.
//! The same happens when a cluster comes that was away: until then its kinds have no objects. A kind
//! that an API does not serve has none either.

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
use crate::types::store::{Followed, Form, Key, KubeResource, METADATA_LIST, Tells};

/// Pause before a watch that the API server ended is taken up again where it was.
const RESUME_PAUSE: Duration = Duration::from_millis(100);

/// Pause between looks whether a cluster that is away has come.
const AWAY_PAUSE: Duration = Duration::from_secs(1);

/// Objects without all but their metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Gives a client of a cluster, while it can be reached.
pub(super) type Clusters = dyn Fn(&str) -> Option<Client> + Send + Sync;

/// See the module.
pub(super) struct Watches {
    client: Client,
    clusters: Arc<Clusters>,
    shared: Mutex<HashMap<Source, Weak<Watch>>>,
}

/// A kind, the cluster that serves it, if that is another than the view's own, and what is asked for.
type Source = (Option<String>, KubeResource, Form);

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
    tells: Tells,
}

impl Watches {
    pub fn new(client: Client) -> Self {
        Self { client, clusters: Arc::new(|_| None), shared: Mutex::default() }
    }
    pub fn reaching(self, clusters: Arc<Clusters>) -> Self {
        Self { clusters, ..self }
    }

    /// What changes of the kind tell goes into the inbox from [`Watch::running`] on, for as long as the
    /// result is held. Must be called inside a tokio runtime.
    pub fn join(&self, followed: Followed, inbox: &Arc<Inbox>, topic: usize) -> Arc<Watch> {
        let Followed { cluster, resource, form, tells } = followed;
        let source = (cluster, resource, form);
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
        watch.members.lock().push(Member { inbox: Arc::downgrade(inbox), topic, tells });
        watch
    }

    fn work(
        &self,
        watch: Weak<Watch>,
        (cluster, resource, form): Source,
    ) -> impl Future<Output = ()> + use<> {
        let (client, clusters) = (self.client.clone(), self.clusters.clone());
        async move {
            match cluster {
                None => run(watch, client, resource, form).await,
                Some(cluster) => match clusters(&cluster) {
                    Some(client) => run(watch, client, resource, form).await,
                    None => await_cluster(&watch, &*clusters, &cluster).await,
                },
            }
        }
    }
}

impl Watch {
    /// Waits until every later change is told. Ended watches have told that they missed some.
    pub async fn running(&self) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as `self`.
        let _ = phase.wait_for(|phase| *phase != Phase::Starting).await;
    }

    fn runs(&self) {
        self.phase.send_replace(Phase::Running);
    }

    fn tell(&self, key: Key, news: &News) {
        let key = Arc::new(key);
        self.members.lock().retain(|member| {
            let Some(inbox) = member.inbox.upgrade() else { return false };
            match &member.tells {
                Tells::Sight => inbox.look_again(),
                Tells::Object(prefix) if prefix.is_empty() => {
                    inbox.put((member.topic, key.clone()), news.clone());
                }
                Tells::Object(prefix) => {
                    let name = format!("{prefix}{}", key.name);
                    let key = Key { name, namespace: key.namespace.clone() };
                    inbox.put((member.topic, Arc::new(key)), news.clone());
                }
            }
            true
        });
    }

    fn end(&self) {
        self.phase.send_replace(Phase::Ended);
        for inbox in self.members.lock().iter().filter_map(|member| member.inbox.upgrade()) {
            inbox.miss();
        }
    }
}

/// Waits until a cluster that is away has come. Then its objects are to be seen.
async fn await_cluster(watch: &Weak<Watch>, clusters: &Clusters, cluster: &str) {
    if let Some(watch) = watch.upgrade() {
        watch.runs();
    }
    while clusters(cluster).is_none() {
        tokio::time::sleep(AWAY_PAUSE).await;
    }
    if let Some(watch) = watch.upgrade() {
        watch.end();
    }
}

async fn run(watch: Weak<Watch>, client: Client, resource: KubeResource, form: Form) {
    let ended = follow(&watch, &client, &resource, form).await;
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
    form: Form,
) -> Result<(), ApiError> {
    let path = resource.collection_path("");
    let list = client.request::<Value>(get(format!("{path}?limit=1"), METADATA_LIST)?).await;
    let mut version = match list.map_err(ApiError::from) {
        Ok(list) => version_of(&list),
        Err(error) if error.is_not_found() => {
            if let Some(watch) = watch.upgrade() {
                watch.runs();
            }
            return std::future::pending().await;
        }
        Err(error) => return Err(error),
    };
    loop {
        let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
        let events =
            client.request_events::<Value>(get(format!("{path}?{query}"), accept(form))?).await?;
        let mut events = std::pin::pin!(events);
        let Some(running) = watch.upgrade() else { return Ok(()) };
        running.runs();
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
            let news = match removed {
                true => News::Removed((form == Form::Whole).then(|| Arc::new(object))),
                false => News::Changed,
            };
            watch.tell(key, &news);
        }
        // API servers end every watch after some time.
        tokio::time::sleep(RESUME_PAUSE).await;
    }
}

fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

fn accept(form: Form) -> &'static str {
    match form {
        Form::Whole => "application/json",
        Form::Metadata => METADATA,
    }
}

fn get(path: String, accept: &str) -> Result<http::Request<Vec<u8>>, ApiError> {
    let request = http::Request::get(path).header(http::header::ACCEPT, accept);
    request.body(Vec::new()).map_err(ApiError::server_error)
}
