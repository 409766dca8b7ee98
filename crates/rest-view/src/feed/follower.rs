//! What one socket has shown, and the next frame from the next key.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::inbox::{Inbox, Item, Missed, News};
use super::watch::{Watch, Watches};
use super::{SIGHT_LOOK_SHARE, Subscriber};
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

/// Objects of a type that are remembered as not to be seen, so that their changes cost nothing.
const HIDDEN_MAX: usize = 10_000;

/// One type that a socket is about.
pub(super) struct Topic {
    descriptor: Arc<Descriptor>,
    narrowed: Option<Narrowed>,
    scope: ListScope,
    /// Objects that the client has been shown and not been told to be gone.
    shown: HashSet<Arc<Key>>,
    /// Objects that were refused since the last look at the caller's rights.
    hidden: HashSet<Arc<Key>>,
    /// The caller could see every object at the last look.
    sees_all: bool,
    /// The only namespaces whose objects are looked at, if they are known.
    homes: Option<HashSet<String>>,
}

impl Topic {
    pub fn new(descriptor: Arc<Descriptor>, narrowed: Option<Narrowed>, scope: ListScope) -> Self {
        let (shown, hidden) = (HashSet::new(), HashSet::new());
        Self { descriptor, narrowed, scope, shown, hidden, sees_all: false, homes: None }
    }

    /// The object as the caller sees it now, if they do.
    async fn see(
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

    /// The keys of what the caller may see now. Finds out where that can be.
    async fn visible(&mut self, context: &Context<'_>) -> Result<Vec<Key>, ApiError> {
        let store = &self.descriptor.store;
        self.homes = store.homes(context).await?;
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
        let elsewhere = self.scope.namespace.as_ref().is_some_and(|only| *only != key.namespace);
        let homeless = self.homes.as_ref().is_some_and(|homes| !homes.contains(&key.namespace));
        elsewhere || homeless || self.hidden.contains(key)
    }

    fn hide(&mut self, key: &Arc<Key>) {
        if self.hidden.len() >= HIDDEN_MAX {
            self.hidden.clear();
        }
        self.hidden.insert(key.clone());
    }
}

/// How the socket was asked for.
pub(super) struct Asked {
    pub subscriber: Subscriber,
    pub urls: Urls,
    pub inside: Option<Inside>,
    pub action_links: bool,
}

impl Asked {
    /// As that of a GET now.
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
            // A feed decides nothing.
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
pub(super) enum Step {
    /// Looks at what the caller may see.
    Look,
    /// Looks at one object.
    Object(Item, News),
}

/// See the module.
pub(super) struct Follower {
    registry: Arc<ArcSwap<Registry>>,
    pub asked: Asked,
    topics: Vec<Topic>,
    inbox: Arc<Inbox>,
    /// Held so that the watches go on.
    watches: Vec<Arc<Watch>>,
    /// Of the last look at what the caller may see; `None` before the first.
    rights: Option<u64>,
    /// No look before this, but for changed rights.
    rests_until: Instant,
    /// Shown as new, which they cease to be without a change. In the order in which they are to be
    /// shown again.
    young: VecDeque<(Instant, Item)>,
}

impl Follower {
    /// Changes of the types come in from [`Self::ready`] on. Must be called inside a tokio runtime.
    pub fn new(
        registry: Arc<ArcSwap<Registry>>,
        asked: Asked,
        topics: Vec<Topic>,
        watches: &Watches,
    ) -> Self {
        let inbox = Arc::default();
        let types = registry.load_full();
        let headers = HeaderMap::new();
        let context = asked.context(&types, &headers);
        let followed = topics.iter().enumerate().flat_map(|(index, topic)| {
            let followed = topic.descriptor.store.followed(&context);
            followed.into_iter().map(move |one| (index, one))
        });
        let watches = followed.map(|(index, one)| watches.join(one, &inbox, index)).collect();
        let young = VecDeque::new();
        let rests_until = Instant::now();
        Self { registry, asked, topics, inbox, watches, rights: None, rests_until, young }
    }

    /// Waits until no change is lost any more.
    pub async fn ready(&self) {
        for watch in &self.watches {
            watch.running().await;
        }
    }

    /// Takes one step, and gives the frame that the client gets for it, if any.
    ///
    /// # Errors
    /// Objects or rights could not be read. The same step may be taken again.
    pub async fn take(&mut self, step: &Step) -> Result<Option<String>, ApiError> {
        match step {
            Step::Look => {
                self.grow_up();
                self.look().await.map(|()| None)
            }
            Step::Object(item, news) => self.object(item, news).await,
        }
    }

    fn grow_up(&mut self) {
        while self.young.front().is_some_and(|(at, _)| *at <= Instant::now()) {
            if let Some((_, item)) = self.young.pop_front() {
                self.inbox.put(item, News::Changed);
            }
        }
    }

    /// Looks at what the caller may see, if that can differ from the last time: what was gained or
    /// lost goes into the inbox. The first look brings everything in. Objects of a cluster that is away
    /// stay as they were.
    async fn look(&mut self) -> Result<(), ApiError> {
        // Before anything is asked, so that a change meanwhile is looked at the next time.
        let rights = self.asked.rights();
        let begun = Instant::now();
        if begun >= self.rests_until && self.inbox.take_look() {
            self.rights = None;
        }
        if self.rights == Some(rights) {
            return Ok(());
        }
        let anew = self.rights.is_none();
        let registry = self.registry.load_full();
        let headers = HeaderMap::new();
        let context = self.asked.context(&registry, &headers);
        for (index, topic) in self.topics.iter_mut().enumerate() {
            let store = &topic.descriptor.store;
            let saw_all = topic.sees_all;
            topic.hidden.clear();
            topic.sees_all = store.sees_all(&context).await?;
            if saw_all && topic.sees_all && !anew {
                continue;
            }
            let visible = match topic.visible(&context).await {
                Ok(visible) => visible,
                // The watch tells when it has come.
                Err(error) if error.is_cluster_unavailable() => continue,
                Err(error) => return Err(error),
            };
            let visible: HashSet<Arc<Key>> = visible.into_iter().map(Arc::new).collect();
            for key in visible.symmetric_difference(&topic.shown) {
                self.inbox.put((index, key.clone()), News::Changed);
            }
        }
        self.rights = Some(rights);
        self.rests_until = Instant::now() + begun.elapsed() * SIGHT_LOOK_SHARE;
        Ok(())
    }

    /// Waits for the next object to look at. Cancel-safe.
    pub async fn next(&self) -> Result<(Item, News), Missed> {
        self.inbox.take().await
    }

    async fn object(&mut self, item: &Item, news: &News) -> Result<Option<String>, ApiError> {
        let (index, key) = item;
        let registry = self.registry.load_full();
        let rights_are_known = self.rights == Some(self.asked.rights());
        let topic = &mut self.topics[*index];
        let headers = HeaderMap::new();
        let context = self.asked.context(&registry, &headers);
        let last = match news {
            News::Removed(last) => last.as_ref().filter(|_| rights_are_known),
            News::Changed => {
                if let Some(object) = topic.see(&context, key).await? {
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
            None => traces(&topic.descriptor, key),
        };
        topic.shown.remove(key);
        Ok(Some(frame("resource.remove", &object)))
    }
}

/// Whether the object is shown as initializing because it is young, and for no other reason.
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

/// What may be said of an object that the client has seen and now may not, or cannot, see.
fn traces(descriptor: &Descriptor, key: &Key) -> Value {
    let id = collection::id_of(descriptor, &descriptor.store.traces(key));
    json!({"id": id, "type": descriptor.id, "baseType": descriptor.base_type()})
}

/// What says that the feed is alive.
pub(super) fn ping() -> String {
    frame("ping", &json!({}))
}

fn frame(name: &str, data: &Value) -> String {
    json!({"name": name, "data": data}).to_string()
}
