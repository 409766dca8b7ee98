//! One watch per (scope, kind), shared by all subscribers.
//!
//! A parsed object takes about eleven times its bytes, so a [`Projection`] selects what is cached
//! of each: metadata, a few fields, or the whole object. [`Reflectors`] returns one [`Reflector`]
//! per projection and ends its watch when the last holder drops it.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::time::Duration;

use backoff::Backoff;
use futures::StreamExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::ReconcileError;
use crate::key::Key;

/// Waits after a watch failed. The jitter separates watches that failed together.
const RETRY: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(20)).with_jitter(0.25);
/// Wait while a kind is not served yet, which does not count as a failure so many times.
const UNSERVED_WAIT: Duration = Duration::from_millis(50);
const UNSERVED_QUICK_MAX: u32 = 60;
/// Consecutive failures, over about ten seconds, that are logged as a warning.
const FAILURES_WARN: u32 = 8;

/// The kind that is watched, and the part of each object that is cached.
pub trait Projection: Send + Sync + 'static {
    /// The kind as it is decoded from the wire; may be a type that reads only some fields.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static;
    /// The part that is cached. The object's key is stored separately.
    type Projected: Send + Sync + 'static;

    /// Reduces an object to the part that is cached. Pure; runs once per change of an object.
    fn project(object: Self::Object) -> Self::Projected;
}

/// Caches whole objects, without managed fields. For kinds with few objects.
pub struct Whole<K>(PhantomData<fn() -> K>);

impl<K> Projection for Whole<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    type Object = K;
    type Projected = K;
    fn project(mut object: K) -> K {
        object.meta_mut().managed_fields = None;
        object
    }
}

/// Caches metadata, without managed fields. Only metadata is transferred (`PartialObjectMetadata`).
pub struct Metadata<K>(PhantomData<fn() -> K>);

impl<K> Projection for Metadata<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    PartialObjectMeta<K>: DeserializeOwned + Resource<DynamicType = ()>,
{
    type Object = PartialObjectMeta<K>;
    type Projected = kube::api::ObjectMeta;
    fn project(mut object: PartialObjectMeta<K>) -> kube::api::ObjectMeta {
        object.metadata.managed_fields = None;
        object.metadata
    }
}

/// One change of a watched set.
pub enum Change<'a, T> {
    /// The object is new (`old` is `None`), or has another resource version than before.
    Applied { key: &'a Key, new: &'a Arc<T>, old: Option<&'a Arc<T>> },
    /// The object was deleted.
    Deleted { key: &'a Key, old: &'a Arc<T> },
}

impl<T> Change<'_, T> {
    /// The key of the object that changed.
    pub fn key(&self) -> &Key {
        match self {
            Self::Applied { key, .. } | Self::Deleted { key, .. } => key,
        }
    }
    /// The object after the change, or its last state when it was deleted.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted { old, .. } => old,
        }
    }
    /// The object before the change; `None` when it is new.
    pub fn old(&self) -> Option<&Arc<T>> {
        match self {
            Self::Applied { old, .. } => *old,
            Self::Deleted { old, .. } => Some(old),
        }
    }
    /// Whether the object is new, was deleted, or is not the same as before by `is_same` of the old
    /// one and the new one.
    pub fn differs(&self, is_same: impl FnOnce(&T, &T) -> bool) -> bool {
        match self {
            Self::Applied { new, old: Some(old), .. } => !is_same(old, new),
            Self::Applied { old: None, .. } | Self::Deleted { .. } => true,
        }
    }
}

type Listener<T> = Box<dyn Fn(&Change<'_, T>) -> bool + Send + Sync>;

struct CachedObject<T> {
    version: Box<str>,
    object: Arc<T>,
}

struct ReflectorState<T> {
    objects: BTreeMap<Key, CachedObject<T>>,
    listeners: Vec<Listener<T>>,
}

/// The current objects of one kind in one scope, fed by a watch. Reads never wait for the network;
/// they return the state of the last event and can lag behind the API server.
pub struct Reflector<P: Projection> {
    inner: RwLock<ReflectorState<P::Projected>>,
    /// The number of changes; wakes [`Reflector::wait_for`].
    changes: watch::Sender<u64>,
    synced: watch::Sender<bool>,
    error: Mutex<Option<String>>,
    _stop: Mutex<Option<DropGuard>>,
}

impl<P: Projection> Default for Reflector<P> {
    fn default() -> Self {
        Self {
            inner: RwLock::new(ReflectorState { objects: BTreeMap::new(), listeners: Vec::new() }),
            changes: watch::Sender::new(0),
            synced: watch::Sender::new(false),
            error: Mutex::new(None),
            _stop: Mutex::new(None),
        }
    }
}

impl<P: Projection> Reflector<P> {
    /// The object of this key, if it exists.
    pub fn get(&self, key: &Key) -> Option<Arc<P::Projected>> {
        self.inner.read().objects.get(key).map(|entry| entry.object.clone())
    }
    /// The cluster-scoped object of this name, if it exists.
    pub fn named(&self, name: &str) -> Option<Arc<P::Projected>> {
        self.get(&Key::cluster_scoped(name))
    }
    /// A snapshot of all objects, sorted by key.
    pub fn all(&self) -> Vec<(Key, Arc<P::Projected>)> {
        let inner = self.inner.read();
        inner.objects.iter().map(|(key, entry)| (key.clone(), entry.object.clone())).collect()
    }
    /// A snapshot of the objects of one namespace, sorted by key.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(Key, Arc<P::Projected>)> {
        let inner = self.inner.read();
        let from = Key::namespaced(namespace, "");
        let range = inner.objects.range(from..).take_while(|(key, _)| key.namespace == namespace);
        range.map(|(key, entry)| (key.clone(), entry.object.clone())).collect()
    }
    /// Like [`Self::in_namespace`], only those whose name begins with `prefix`.
    pub fn with_prefix(&self, namespace: &str, prefix: &str) -> Vec<(Key, Arc<P::Projected>)> {
        let inner = self.inner.read();
        let range = inner.objects.range(Key::namespaced(namespace, prefix)..);
        let range =
            range.take_while(|(key, _)| key.namespace == namespace && key.name.starts_with(prefix));
        range.map(|(key, entry)| (key.clone(), entry.object.clone())).collect()
    }
    /// The number of objects.
    pub fn len(&self) -> usize {
        self.inner.read().objects.len()
    }
    /// Whether there is no object. Also true before the first list; see [`Self::is_synced`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Calls `visit` with every object, without copying the set. The set is locked meanwhile:
    /// `visit` must return soon.
    pub fn for_each(&self, mut visit: impl FnMut(&Key, &P::Projected)) {
        for (key, entry) in &self.inner.read().objects {
            visit(key, &entry.object);
        }
    }

    /// Calls `listener` with every present object, then with every change, in order and without
    /// loss.
    ///
    /// The listener runs on the task of the watch with the set locked. It must return at once (note
    /// the key, update an index) and must not read this reflector. It is dropped when it returns
    /// false.
    pub fn subscribe(
        &self,
        listener: impl Fn(&Change<'_, P::Projected>) -> bool + Send + Sync + 'static,
    ) {
        let mut inner = self.inner.write();
        for (key, entry) in &inner.objects {
            if !listener(&Change::Applied { key, new: &entry.object, old: None }) {
                return;
            }
        }
        inner.listeners.push(Box::new(listener));
    }

    /// Whether the first list is complete. It stays true while the watch is interrupted.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }
    /// Waits until the first list is complete, without a time limit. Cancel-safe.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as `self`.
        let _ = synced.wait_for(|synced| *synced).await;
    }
    /// As [`Self::synced`], but ends when the watch fails before that.
    ///
    /// # Errors
    /// Why the set cannot be listed or watched now. The watch goes on trying.
    pub async fn try_synced(&self) -> Result<(), ReconcileError> {
        let attempt = || format!("watch objects of kind {}", P::Object::kind(&()));
        self.wait_for(|set| match set.last_error() {
            _ if set.is_synced() => Some(Ok(())),
            Some(error) => Some(Err(ReconcileError::other(attempt(), error))),
            None => None,
        })
        .await
    }
    /// Calls `found` now and after every change until it returns a value, without a time limit.
    /// Cancel-safe.
    pub async fn wait_for<T>(&self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(value) = found(self) {
                return value;
            }
            let _ = changes.changed().await;
        }
    }
    /// Why the watch is interrupted; `None` while it runs.
    pub fn last_error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    fn apply(&self, object: P::Object) {
        let (key, version) = identify(&object);
        let object = Arc::new(P::project(object));
        let mut inner = self.inner.write();
        inner.put(key, version, object);
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
    }

    fn delete(&self, key: &Key) {
        let mut inner = self.inner.write();
        if let Some(entry) = inner.objects.remove(key) {
            inner.notify(&Change::Deleted { key, old: &entry.object });
        }
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Replaces the set with a list, and notifies the listeners of the differences.
    fn replace(&self, listed: BTreeMap<Key, (Box<str>, Arc<P::Projected>)>) {
        let mut inner = self.inner.write();
        let known = inner.objects.keys();
        let deleted: Vec<Key> = known.filter(|key| !listed.contains_key(*key)).cloned().collect();
        for key in &deleted {
            if let Some(entry) = inner.objects.remove(key) {
                inner.notify(&Change::Deleted { key, old: &entry.object });
            }
        }
        for (key, (version, object)) in listed {
            let same = inner.objects.get(&key).is_some_and(|entry| entry.version == version);
            if !same {
                inner.put(key, version, object);
            }
        }
        drop(inner);
        self.synced.send_replace(true);
        self.changes.send_modify(|count| *count += 1);
    }
}

impl<T> ReflectorState<T> {
    fn put(&mut self, key: Key, version: Box<str>, object: Arc<T>) {
        let old =
            self.objects.insert(key.clone(), CachedObject { version, object: object.clone() });
        let old = old.as_ref().map(|entry| &entry.object);
        self.notify(&Change::Applied { key: &key, new: &object, old });
    }
    fn notify(&mut self, change: &Change<'_, T>) {
        self.listeners.retain(|listener| listener(change));
    }
}

fn identify(object: &impl Resource) -> (Key, Box<str>) {
    let version = object.meta().resource_version.clone().unwrap_or_default();
    (Key::of(object), version.into_boxed_str())
}

/// Why a watch failed, in the words of the API.
fn words_of(error: &watcher::Error) -> String {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            crate::error::words_of(error)
        }
        other => other.to_string(),
    }
}

/// Whether the kind is not served. It may be served soon: definitions are created as the server
/// starts.
fn is_unserved(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) => crate::error::is_code(error, 404),
        _ => false,
    }
}

/// Feeds a reflector until it is dropped or `stop` fires.
async fn drive<P: Projection>(
    reflector: Weak<Reflector<P>>,
    client: Client,
    config: watcher::Config,
    stop: CancellationToken,
) {
    let watch = watcher::watcher(Api::<P::Object>::all(client), config);
    let mut events = std::pin::pin!(watch);
    let mut listed = BTreeMap::new();
    let (mut failures, mut unserved) = (0, 0);
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        let (Some(event), Some(reflector)) = (event, reflector.upgrade()) else { return };
        let event = match event {
            // Precedes each attempt to list, successful or not.
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(event) => {
                (failures, unserved) = (0, 0);
                reflector.error.lock().take();
                event
            }
            Err(error) => {
                tracing::debug!(kind = %P::Object::kind(&()), %error, "watch interrupted");
                *reflector.error.lock() = Some(words_of(&error));
                reflector.changes.send_modify(|count| *count += 1);
                drop(reflector);
                let is_unserved = is_unserved(&error);
                if is_unserved && unserved < UNSERVED_QUICK_MAX {
                    unserved += 1;
                } else {
                    failures += 1;
                }
                // A kind that an API does not serve has no changes: that of Drover has no nodes.
                if failures == FAILURES_WARN && !is_unserved {
                    let kind = P::Object::kind(&());
                    tracing::warn!(%kind, %error, "a watch failed repeatedly: changes are not seen until it recovers");
                }
                let wait = if failures == 0 { UNSERVED_WAIT } else { RETRY.delay(failures) };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
                continue;
            }
        };
        match event {
            Event::Init => {}
            Event::InitApply(object) => {
                let (key, version) = identify(&object);
                listed.insert(key, (version, Arc::new(P::project(object))));
            }
            Event::InitDone => reflector.replace(std::mem::take(&mut listed)),
            Event::Apply(object) => reflector.apply(object),
            Event::Delete(object) => reflector.delete(&Key::of(&object)),
        }
    }
}

type AnyReflector = Weak<dyn Any + Send + Sync>;

/// The reflectors of one scope. Cheap to clone.
#[derive(Clone)]
pub struct Reflectors {
    client: Client,
    stop: CancellationToken,
    page_size: Option<u32>,
    known: Arc<Mutex<HashMap<(TypeId, String), AnyReflector>>>,
}

impl Reflectors {
    /// No watch runs until it is requested. `client` needs the rights to list and watch the kinds
    /// that are requested. All watches end with `stop`.
    pub fn new(client: Client, stop: CancellationToken) -> Self {
        Self { client, stop, page_size: None, known: Arc::default() }
    }

    /// Lists in pages of at most `objects` objects; the default is 500. It bounds the memory that a
    /// response of an untrusted server can take.
    #[must_use]
    pub fn in_pages_of(self, objects: u32) -> Self {
        Self { page_size: Some(objects), ..self }
    }

    /// The reflector of a projection over all namespaces. All holders share it: its watch starts
    /// with the first and ends with the last. Must be called inside a tokio runtime.
    pub fn get<P: Projection>(&self) -> Arc<Reflector<P>> {
        self.selected::<P>("")
    }

    /// Like [`Self::get`], but only for the objects that match a label selector.
    pub fn selected<P: Projection>(&self, labels: &str) -> Arc<Reflector<P>> {
        let mut known = self.known.lock();
        let slot = (TypeId::of::<P>(), labels.to_owned());
        let shared = known.get(&slot).and_then(Weak::upgrade);
        if let Some(shared) = shared.and_then(|any| any.downcast::<Reflector<P>>().ok()) {
            return shared;
        }
        let reflector = Arc::new(Reflector::<P>::default());
        let stop = self.stop.child_token();
        *reflector._stop.lock() = Some(stop.clone().drop_guard());
        let config = match self.page_size {
            Some(objects) => watcher::Config::default().page_size(objects),
            None => watcher::Config::default(),
        };
        let config = if labels.is_empty() { config } else { config.labels(labels) };
        tokio::spawn(drive(Arc::downgrade(&reflector), self.client.clone(), config, stop));
        let erased: Arc<dyn Any + Send + Sync> = reflector.clone();
        known.insert(slot, Arc::downgrade(&erased));
        reflector
    }
}
