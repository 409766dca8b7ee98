//! One watch per (scope, kind), shared by all who want to know.
//!
//! A parsed object costs about eleven times its bytes, so a [`Projection`] says what is kept of each:
//! metadata, a few fields, or the whole. [`Reflectors`] hands out one [`Reflector`] per projection and
//! ends its watch when the last holder drops it.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::time::Duration;

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

/// First wait after a watch broke.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
/// Tries without a growing wait while a kind is not served yet.
const UNSERVED_QUICK_MAX: u32 = 60;
/// Longest wait between tries to watch.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(20);
/// So many in a row, in some ten seconds, are told to who runs this.
const FAILURES_TOLD: u32 = 8;

/// What is watched and what is kept of it.
pub trait Projection: Send + Sync + 'static {
    /// The kind as it is decoded from the wire; may be a type that reads only some fields.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static;
    /// What stays in memory. Its key is kept apart.
    type Kept: Send + Sync + 'static;

    fn keep(object: Self::Object) -> Self::Kept;
}

/// Keeps whole objects, without managed fields. For kinds of which there are few.
pub struct Whole<K>(PhantomData<fn() -> K>);

impl<K> Projection for Whole<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    type Object = K;
    type Kept = K;
    fn keep(mut object: K) -> K {
        object.meta_mut().managed_fields = None;
        object
    }
}

/// Keeps metadata only, and only metadata crosses the wire.
pub struct Metadata<K>(PhantomData<fn() -> K>);

impl<K> Projection for Metadata<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    PartialObjectMeta<K>: DeserializeOwned + Resource<DynamicType = ()>,
{
    type Object = PartialObjectMeta<K>;
    type Kept = kube::api::ObjectMeta;
    fn keep(mut object: PartialObjectMeta<K>) -> kube::api::ObjectMeta {
        object.metadata.managed_fields = None;
        object.metadata
    }
}

/// One step of the watched set.
pub enum Change<'a, T> {
    /// The object is new, or differs from what was known.
    Applied { key: &'a Key, new: &'a Arc<T>, old: Option<&'a Arc<T>> },
    /// The object is gone.
    Deleted { key: &'a Key, old: &'a Arc<T> },
}

impl<T> Change<'_, T> {
    pub fn key(&self) -> &Key {
        match self {
            Self::Applied { key, .. } | Self::Deleted { key, .. } => key,
        }
    }
    /// The object after the change, or before it when it is gone.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted { old, .. } => old,
        }
    }
}

type Listener<T> = Box<dyn Fn(&Change<'_, T>) -> bool + Send + Sync>;

struct Entry<T> {
    version: Box<str>,
    object: Arc<T>,
}

struct Inner<T> {
    objects: BTreeMap<Key, Entry<T>>,
    listeners: Vec<Listener<T>>,
}

/// The current objects of one kind in one scope. Reads never wait for the network.
pub struct Reflector<P: Projection> {
    inner: RwLock<Inner<P::Kept>>,
    /// Counts the changes; for those who wait for a state.
    changes: watch::Sender<u64>,
    synced: watch::Sender<bool>,
    error: Mutex<Option<String>>,
    _stop: Mutex<Option<DropGuard>>,
}

impl<P: Projection> Default for Reflector<P> {
    fn default() -> Self {
        Self {
            inner: RwLock::new(Inner { objects: BTreeMap::new(), listeners: Vec::new() }),
            changes: watch::Sender::new(0),
            synced: watch::Sender::new(false),
            error: Mutex::new(None),
            _stop: Mutex::new(None),
        }
    }
}

impl<P: Projection> Reflector<P> {
    pub fn get(&self, key: &Key) -> Option<Arc<P::Kept>> {
        self.inner.read().objects.get(key).map(|entry| entry.object.clone())
    }
    /// A cluster-scoped object.
    pub fn named(&self, name: &str) -> Option<Arc<P::Kept>> {
        self.get(&Key::cluster_scoped(name))
    }
    /// All objects, by key. A snapshot.
    pub fn all(&self) -> Vec<(Key, Arc<P::Kept>)> {
        let inner = self.inner.read();
        inner.objects.iter().map(|(key, entry)| (key.clone(), entry.object.clone())).collect()
    }
    /// The objects of one namespace, by key. A snapshot.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(Key, Arc<P::Kept>)> {
        let inner = self.inner.read();
        let from = Key::namespaced(namespace, "");
        let range = inner.objects.range(from..).take_while(|(key, _)| key.namespace == namespace);
        range.map(|(key, entry)| (key.clone(), entry.object.clone())).collect()
    }
    pub fn len(&self) -> usize {
        self.inner.read().objects.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Calls `visit` with every object, without copying the set.
    pub fn for_each(&self, mut visit: impl FnMut(&Key, &P::Kept)) {
        for (key, entry) in &self.inner.read().objects {
            visit(key, &entry.object);
        }
    }

    /// Calls `listener` with every object there is, then with every change, in order and without loss.
    ///
    /// It runs on the watch's own task with the set locked: it must return at once (note the key,
    /// update an index) and must not read this reflector. It is dropped when it returns false.
    pub fn subscribe(
        &self,
        listener: impl Fn(&Change<'_, P::Kept>) -> bool + Send + Sync + 'static,
    ) {
        let mut inner = self.inner.write();
        for (key, entry) in &inner.objects {
            if !listener(&Change::Applied { key, new: &entry.object, old: None }) {
                return;
            }
        }
        inner.listeners.push(Box::new(listener));
    }

    /// Whether the whole set has been seen once.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }
    /// Waits until the whole set has been seen once. Cancel-safe.
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
    /// Waits until `found` gives something, looking again after every change. Cancel-safe.
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
    /// Why the watch is not running, when it is not.
    pub fn last_error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    fn apply(&self, object: P::Object) {
        let (key, version) = identify(&object);
        let object = Arc::new(P::keep(object));
        let mut inner = self.inner.write();
        inner.put(key, version, object);
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
    }

    fn delete(&self, key: &Key) {
        let mut inner = self.inner.write();
        if let Some(entry) = inner.objects.remove(key) {
            inner.tell(&Change::Deleted { key, old: &entry.object });
        }
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Makes the set what a list said, telling the differences only.
    fn replace(&self, listed: BTreeMap<Key, (Box<str>, Arc<P::Kept>)>) {
        let mut inner = self.inner.write();
        let known = inner.objects.keys();
        let gone: Vec<Key> = known.filter(|key| !listed.contains_key(*key)).cloned().collect();
        for key in &gone {
            if let Some(entry) = inner.objects.remove(key) {
                inner.tell(&Change::Deleted { key, old: &entry.object });
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

impl<T> Inner<T> {
    fn put(&mut self, key: Key, version: Box<str>, object: Arc<T>) {
        let old = self.objects.insert(key.clone(), Entry { version, object: object.clone() });
        let old = old.as_ref().map(|entry| &entry.object);
        self.tell(&Change::Applied { key: &key, new: &object, old });
    }
    fn tell(&mut self, change: &Change<'_, T>) {
        self.listeners.retain(|listener| listener(change));
    }
}

fn identify(object: &impl Resource) -> (Key, Box<str>) {
    let version = object.meta().resource_version.clone().unwrap_or_default();
    (Key::of(object), version.into_boxed_str())
}

/// How long to wait after this many failures in a row: doubling, with up to a quarter less so that
/// many do not come back together.
fn retry_delay(failures: u32) -> Duration {
    let delay = RETRY_DELAY_MIN.saturating_mul(1 << failures.min(16)).min(RETRY_DELAY_MAX);
    let jitter = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() % 256;
    delay - delay * jitter / 1024
}

/// Whether the kind is not served. It may be in a moment: definitions come up with the server.
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
            // Comes before each try to list and says nothing about its luck.
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
                *reflector.error.lock() = Some(error.to_string());
                reflector.changes.send_modify(|count| *count += 1);
                drop(reflector);
                if is_unserved(&error) && unserved < UNSERVED_QUICK_MAX {
                    unserved += 1;
                } else {
                    failures += 1;
                }
                if failures == FAILURES_TOLD {
                    let kind = P::Object::kind(&());
                    tracing::warn!(%kind, %error, "a watch fails again and again: changes are not seen");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(retry_delay(failures)) => {}
                }
                continue;
            }
        };
        match event {
            Event::Init => {}
            Event::InitApply(object) => {
                let (key, version) = identify(&object);
                listed.insert(key, (version, Arc::new(P::keep(object))));
            }
            Event::InitDone => reflector.replace(std::mem::take(&mut listed)),
            Event::Apply(object) => reflector.apply(object),
            Event::Delete(object) => reflector.delete(&Key::of(&object)),
        }
    }
}

type Shared = Weak<dyn Any + Send + Sync>;

/// The reflectors of one scope. Cheap to clone.
#[derive(Clone)]
pub struct Reflectors {
    client: Client,
    stop: CancellationToken,
    page_size: Option<u32>,
    known: Arc<Mutex<HashMap<(TypeId, String), Shared>>>,
}

impl Reflectors {
    /// `client` needs get, list and watch on what is asked for. All watches end with `stop`.
    pub fn new(client: Client, stop: CancellationToken) -> Self {
        Self { client, stop, page_size: None, known: Arc::default() }
    }

    /// Lists in pages of at most so many objects; by default 500. For servers that are not trusted with more memory.
    #[must_use]
    pub fn in_pages_of(self, objects: u32) -> Self {
        Self { page_size: Some(objects), ..self }
    }

    /// The reflector of a projection over all namespaces; its watch begins with the first holder and
    /// ends with the last. Must be called inside a tokio runtime.
    pub fn get<P: Projection>(&self) -> Arc<Reflector<P>> {
        self.selected::<P>("")
    }

    /// As [`Self::get`], for the objects that match a label selector only.
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
