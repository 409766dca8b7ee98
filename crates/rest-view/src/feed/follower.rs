//! The state of one socket: what it has shown, and the next frame for the next key.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::inbox::{Inbox, Item, Missed, PendingChange};
use super::watch::{Watch, Watches};
use super::{RESYNC_TIME_SHARE, Subscriber};
use crate::collection;
use crate::error::ApiError;
use crate::operations::Narrowed;
use crate::state::INITIALIZING_FOR;
use crate::types::context::Inside;
use crate::types::context::{Context, Presentation};
use crate::types::descriptor::Descriptor;
use crate::types::registry::Registry;
use crate::types::rights;
use crate::types::store::{Key, ListScope};
use crate::types::urls::Urls;

/// Objects of a type that are remembered as not visible, so that their changes cost nothing.
const HIDDEN_MAX: usize = 10_000;

/// One type of a socket.
pub(super) struct Topic {
    descriptor: Arc<Descriptor>,
    narrowed: Option<Narrowed>,
    scope: ListScope,
    /// Objects that were sent to the client and not reported as removed.
    shown: HashSet<Arc<Key>>,
    /// Objects that were refused since the last check of the rights of the caller.
    hidden: HashSet<Arc<Key>>,
    /// The caller could see every object at the last resync.
    can_see_all: bool,
    /// The only namespaces whose objects are read, if they are known.
    home_namespaces: Option<HashSet<String>>,
}

impl Topic {
    /// A type of which nothing was sent yet.
    pub fn new(descriptor: Arc<Descriptor>, narrowed: Option<Narrowed>, scope: ListScope) -> Self {
        let (shown, hidden) = (HashSet::new(), HashSet::new());
        Self {
            descriptor,
            narrowed,
            scope,
            shown,
            hidden,
            can_see_all: false,
            home_namespaces: None,
        }
    }

    /// The object as the caller sees it now, if it is visible.
    async fn read(
        &mut self,
        context: &Context<'_>,
        key: &Arc<Key>,
    ) -> Result<Option<Value>, ApiError> {
        if self.skips(key) {
            return Ok(None);
        }
        let stored = match self.descriptor.store.get(context, key).await {
            Ok(stored) if self.descriptor.store.is_listed(&stored) => stored,
            Ok(_) => return Ok(None),
            Err(error) if error.is_forbidden() => {
                self.hide(key);
                return Ok(None);
            }
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let object = shown(context, &self.descriptor, stored).await?;
        Ok(self.is_within(&object).then_some(object))
    }

    /// The keys that the caller may see now. Also refreshes the namespaces that can contain
    /// objects.
    async fn visible(&mut self, context: &Context<'_>) -> Result<Vec<Key>, ApiError> {
        let store = &self.descriptor.store;
        self.home_namespaces = store.home_namespaces(context).await?;
        match store.keys(context, &self.scope).await {
            // The cluster does not have the kind.
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            keys => keys,
        }
    }

    fn is_within(&self, fields: &Value) -> bool {
        let fits = |narrowed: &Narrowed| fields[&narrowed.field] == narrowed.id.as_str();
        self.narrowed.as_ref().is_none_or(fits)
    }

    fn skips(&self, key: &Arc<Key>) -> bool {
        let is_out_of_scope =
            self.scope.namespace.as_ref().is_some_and(|only| *only != key.namespace);
        let is_outside_homes = self
            .home_namespaces
            .as_ref()
            .is_some_and(|home_namespaces| !home_namespaces.contains(&key.namespace));
        is_out_of_scope || is_outside_homes || self.hidden.contains(key)
    }

    fn hide(&mut self, key: &Arc<Key>) {
        if self.hidden.len() >= HIDDEN_MAX {
            self.hidden.clear();
        }
        self.hidden.insert(key.clone());
    }
}

/// The request that opened the socket.
pub(super) struct SocketRequest {
    pub subscriber: Subscriber,
    pub urls: Urls,
    pub inside: Option<Inside>,
    pub action_links: bool,
}

impl SocketRequest {
    /// The context of a GET at this time.
    pub fn context<'a>(&'a self, registry: &'a Registry, headers: &'a HeaderMap) -> Context<'a> {
        Context {
            presentation: Presentation {
                caller: &self.subscriber.caller,
                urls: &self.urls,
                registry,
                now: Timestamp::now(),
                action_links: self.action_links,
            },
            client: &self.subscriber.client,
            // A feed makes no decisions.
            server: &self.subscriber.client,
            headers,
            inside: self.inside.as_ref(),
            query: &[],
        }
    }
    fn rights(&self) -> u64 {
        (self.subscriber.rights)()
    }
}

/// What a socket does next.
pub(super) enum FollowerStep {
    /// Compares what the caller may see with what was sent.
    Resync,
    /// Reads one object.
    Object(Item, PendingChange),
}

/// See the module.
pub(super) struct Follower {
    registry: Arc<ArcSwap<Registry>>,
    pub request: SocketRequest,
    topics: Vec<Topic>,
    inbox: Arc<Inbox>,
    /// Held so that the watches continue.
    watches: Vec<Arc<Watch>>,
    /// The rights at the last resync; `None` before the first.
    rights: Option<u64>,
    /// No resync before this time, except when rights changed.
    no_resync_before: Instant,
    /// Objects that are shown as initializing because they are new, which ends without a change.
    /// Sorted by the time at which to show them again.
    young: VecDeque<(Instant, Item)>,
}

impl Follower {
    /// Changes of the types arrive from [`Self::ready`] on. Must be called inside a tokio runtime.
    pub fn new(
        registry: Arc<ArcSwap<Registry>>,
        request: SocketRequest,
        topics: Vec<Topic>,
        watches: &Watches,
    ) -> Self {
        let inbox = Arc::default();
        let types = registry.load_full();
        let headers = HeaderMap::new();
        let context = request.context(&types, &headers);
        let followed = topics.iter().enumerate().flat_map(|(index, topic)| {
            let followed = topic.descriptor.store.watched_resources(&context);
            followed.into_iter().map(move |one| (index, one))
        });
        let watches = followed.map(|(index, one)| watches.join(one, &inbox, index)).collect();
        let young = VecDeque::new();
        let no_resync_before = Instant::now();
        Self { registry, request, topics, inbox, watches, rights: None, no_resync_before, young }
    }

    /// Waits until the watches report every later change.
    pub async fn ready(&self) {
        for watch in &self.watches {
            watch.wait_running().await;
        }
    }

    /// Performs one step, and returns the frame for the client, if there is one.
    ///
    /// # Errors
    /// Objects or rights could not be read. The same step can be retried.
    pub async fn perform(&mut self, step: &FollowerStep) -> Result<Option<String>, ApiError> {
        match step {
            FollowerStep::Resync => {
                self.requeue_young();
                self.resync().await.map(|()| None)
            }
            FollowerStep::Object(item, change) => self.object_frame(item, change).await,
        }
    }

    fn requeue_young(&mut self) {
        while self.young.front().is_some_and(|(at, _)| *at <= Instant::now()) {
            if let Some((_, item)) = self.young.pop_front() {
                self.inbox.put(item, PendingChange::Changed);
            }
        }
    }

    /// Puts the objects into the inbox that the caller gained or lost the right to see, if anything
    /// can differ from the last resync. The first resync puts everything in. Objects of an
    /// unavailable cluster are left as they were.
    async fn resync(&mut self) -> Result<(), ApiError> {
        // Read first, so that a change in the meantime leads to another resync.
        let rights = self.request.rights();
        let begun = Instant::now();
        if begun >= self.no_resync_before && self.inbox.take_resync_request() {
            self.rights = None;
        }
        if self.rights == Some(rights) {
            return Ok(());
        }
        let anew = self.rights.is_none();
        let registry = self.registry.load_full();
        let headers = HeaderMap::new();
        let context = self.request.context(&registry, &headers);
        for (index, topic) in self.topics.iter_mut().enumerate() {
            let store = &topic.descriptor.store;
            let saw_all = topic.can_see_all;
            topic.hidden.clear();
            topic.can_see_all = store.can_see_all(&context).await?;
            if saw_all && topic.can_see_all && !anew {
                continue;
            }
            let visible = match topic.visible(&context).await {
                Ok(visible) => visible,
                // The watch ends when the cluster connects.
                Err(error) if error.is_cluster_unavailable() => continue,
                Err(error) => return Err(error),
            };
            let visible: HashSet<Arc<Key>> = visible.into_iter().map(Arc::new).collect();
            for key in visible.symmetric_difference(&topic.shown) {
                self.inbox.put((index, key.clone()), PendingChange::Changed);
            }
        }
        self.rights = Some(rights);
        self.no_resync_before = Instant::now() + begun.elapsed() * RESYNC_TIME_SHARE;
        Ok(())
    }

    /// Waits for the next object to read. Cancel-safe.
    ///
    /// # Errors
    /// Changes were missed: close the socket.
    pub async fn next(&self) -> Result<(Item, PendingChange), Missed> {
        self.inbox.take().await
    }

    async fn object_frame(
        &mut self,
        item: &Item,
        change: &PendingChange,
    ) -> Result<Option<String>, ApiError> {
        let (index, key) = item;
        let registry = self.registry.load_full();
        let rights_are_known = self.rights == Some(self.request.rights());
        let topic = &mut self.topics[*index];
        let headers = HeaderMap::new();
        let context = self.request.context(&registry, &headers);
        let last = match change {
            PendingChange::Removed(last) => last.as_ref().filter(|_| rights_are_known),
            PendingChange::Changed => {
                if let Some(object) = topic.read(&context, key).await? {
                    topic.shown.insert(key.clone());
                    if is_new(&object, context.now) {
                        let at = Instant::now() + INITIALIZING_FOR.unsigned_abs();
                        self.young.push_back((at, item.clone()));
                    }
                    return Ok(Some(frame("resource.change", &object)));
                }
                None
            }
        };
        if !topic.shown.contains(key) {
            return Ok(None);
        }
        let object = match last {
            Some(stored) => shown(&context, &topic.descriptor, Value::clone(stored)).await?,
            None => stub(&topic.descriptor, key),
        };
        topic.shown.remove(key);
        Ok(Some(frame("resource.remove", &object)))
    }
}

/// Whether the object is shown as initializing only because it is new.
fn is_new(object: &Value, now: Timestamp) -> bool {
    let created = object["createdTS"].as_i64().and_then(|at| Timestamp::from_millisecond(at).ok());
    let is_young = created.is_some_and(|created| now.duration_since(created) < INITIALIZING_FOR);
    is_young && object["state"] == "initializing"
}

async fn shown(
    context: &Context<'_>,
    descriptor: &Descriptor,
    mut stored: Value,
) -> Result<Value, ApiError> {
    descriptor.store.reveal(context, std::slice::from_mut(&mut stored)).await?;
    let resource = collection::resource(context, descriptor, &stored, false);
    let resource = rights::trim_one(context, descriptor, resource).await?;
    Ok(collection::to_json(context, descriptor, resource))
}

/// What may be sent about an object that the client has seen and can no longer see.
fn stub(descriptor: &Descriptor, key: &Key) -> Value {
    let id = collection::id_of(descriptor, &descriptor.store.object_from_key(key));
    json!({"id": id, "type": descriptor.id, "baseType": descriptor.base_type()})
}

/// The frame that shows that the feed works.
pub(super) fn ping() -> String {
    frame("ping", &json!({}))
}

fn frame(name: &str, data: &Value) -> String {
    json!({"name": name, "data": data}).to_string()
}
