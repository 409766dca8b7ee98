//! The live state of the server: the served resources, their caches, and the one module through
//! which objects are read and written. Handlers and in-process controllers both use it; it does not
//! authorise.
//!
//! One dispatcher task follows the storage and applies each commit to the caches in order.
//! [`Registry::progress`] is the revision up to which every cache is complete.

pub mod admission;
mod continue_token;
mod convert;
mod read;
mod served;
mod service_target;
mod subscription;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_meta::status::Status;
use arc_swap::ArcSwap;
use futures::StreamExt;
use parking_lot::RwLock;
use storage::{Event, RangeRequest, Revision, Storage, StorageError, WatchItem};
use tokio::sync::{Mutex, watch};

pub use continue_token::ContinueToken;
use continue_token::Left;
pub use read::{ListQuery, ObjectList, ReadVersion};
pub(crate) use read::{key_prefix, matches};
pub(crate) use served::{served_as_stored, served_bytes, served_tree};
pub use subscription::{Subscription, Update};
pub use write::{
    DeleteOptions, Deleted, FieldValidation, Propagation, Warnings, WriteOptions, WriteTarget,
    Written, apply_scale,
};
pub(crate) use write::{depth_problem, merge_schema};

use self::admission::{Admission, Plugin};
use crate::attributes::Authorizer;
use crate::built_in_plugins::{BuiltInPlugins, Switchable};
use crate::cache::{Cache, CacheEvent};
use crate::catalog::Catalog;
use crate::metrics::Metrics;
use crate::metrics::storage::{TimedStorage, Timers};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;
use crate::webhook::WebhookClient;

/// Prefix of all keys.
pub const ROOT: &str = "/registry/";
/// Longest wait of a read until the caches reach the revision of the storage.
const FRESH_WAIT_MAX: Duration = Duration::from_secs(3);
/// Pause before the dispatcher follows the storage again after an error.
const REWATCH_PAUSE: Duration = Duration::from_millis(50);

/// The served resources and their objects. Shared in an `Arc`.
pub struct Registry {
    storage: Arc<dyn Storage>,
    catalog: ArcSwap<Catalog>,
    metrics: Arc<Metrics>,
    timers: Arc<Timers>,
    /// Counts changes of the catalog; discovery and schemas are cached by it.
    generation: watch::Sender<u64>,
    /// By storage prefix.
    caches: RwLock<BTreeMap<String, Arc<Cache>>>,
    progress: watch::Sender<Revision>,
    /// Rules of the embedding program; set once, before the first write from outside.
    plugins: OnceLock<Vec<Arc<dyn Plugin>>>,
    admission: Arc<dyn Admission>,
    /// Authorizes for expressions of admission.
    authorizer: OnceLock<Arc<dyn Authorizer>>,
    /// Unset means the defaults.
    built_in: OnceLock<BuiltInPlugins>,
    webhooks: WebhookClient,
    /// Its receivers are the creates that began since the last [`Registry::wait_for_creations`].
    creations: parking_lot::Mutex<watch::Sender<()>>,
    /// Held while a batch is applied or a cache is loaded, so that a new cache misses nothing and
    /// repeats nothing.
    dispatching: Mutex<()>,
}

impl Registry {
    /// Returns a registry without resources that follows `storage`. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// The storage cannot be read: the server must not start.
    pub async fn start(
        storage: Arc<dyn Storage>,
        admission: Arc<dyn Admission>,
    ) -> Result<Arc<Self>, StorageError> {
        let revision = storage.revision().await?;
        let timers = Arc::new(Timers::default());
        let registry = Arc::new(Self {
            storage: Arc::new(TimedStorage { inner: storage, timers: timers.clone() }),
            metrics: Arc::default(),
            timers,
            catalog: ArcSwap::default(),
            generation: watch::Sender::new(0),
            caches: RwLock::default(),
            progress: watch::Sender::new(revision),
            plugins: OnceLock::new(),
            admission,
            authorizer: OnceLock::new(),
            built_in: OnceLock::new(),
            webhooks: WebhookClient::default(),
            creations: parking_lot::Mutex::new(watch::Sender::new(())),
            dispatching: Mutex::default(),
        });
        tokio::spawn(dispatch(Arc::downgrade(&registry)));
        Ok(registry)
    }

    /// Adds the rules of the embedding program to all writes. Only the first call counts.
    pub fn set_plugins(&self, plugins: Vec<Arc<dyn Plugin>>) {
        if self.plugins.set(plugins).is_err() {
            tracing::error!("admission plugins were set twice; the first set stays");
        }
    }

    pub(crate) fn plugins(&self, resource: &Resource) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        let all = self.plugins.get().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter(move |plugin| plugin.handles(resource))
    }

    /// Selects the admission plugins of Kubernetes. Only the first call counts.
    pub fn set_built_in_plugins(&self, plugins: BuiltInPlugins) {
        if self.built_in.set(plugins).is_err() {
            tracing::error!("built-in admission plugins were set twice; the first set stays");
        }
    }

    /// Whether an admission plugin of Kubernetes is enabled.
    pub(crate) fn has(&self, plugin: Switchable) -> bool {
        self.built_in.get().copied().unwrap_or_default().has(plugin)
    }

    /// Sets the authorizer that expressions of admission query. Only the first call counts.
    pub fn set_authorizer(&self, authorizer: Arc<dyn Authorizer>) {
        if self.authorizer.set(authorizer).is_err() {
            tracing::error!("the authorizer of admission was set twice; the first stays");
        }
    }

    pub(crate) fn authorizer(&self) -> Option<&dyn Authorizer> {
        self.authorizer.get().map(|authorizer| &**authorizer)
    }

    pub(crate) fn webhook_client(&self) -> &WebhookClient {
        &self.webhooks
    }

    /// The metrics of this server.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// All metrics as text, those of stored objects included.
    pub fn metrics_text(&self) -> String {
        self.metrics.reset_objects();
        for resource in self.catalog().all() {
            if let Ok(cache) = self.cache(resource) {
                self.metrics.set_objects(&resource.group, &resource.plural, cache.len());
            }
        }
        self.metrics.text()
    }

    /// The served resources at present.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Discovery has changed other than by [`Registry::install`]: in the verbs of a kind, or in
    /// aggregated APIs.
    pub fn note_discovery_change(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Changes whenever the catalog or discovery does.
    pub fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The storage, which measures its operations.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The revision up to which every cache holds all changes.
    pub fn progress(&self) -> watch::Receiver<Revision> {
        self.progress.subscribe()
    }

    /// Whether exactly this value of the resource is served: no change has replaced it.
    pub(crate) fn serves(&self, resource: &Arc<Resource>) -> bool {
        let catalog = self.catalog.load();
        let now = catalog.get(&resource.group, &resource.version, &resource.plural);
        now.is_some_and(|now| Arc::ptr_eq(now, resource))
    }

    /// A resource in its preferred served version; `None` when it is not served.
    pub fn find(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        let catalog = self.catalog.load();
        let versions = catalog.versions(group);
        versions.iter().find_map(|version| catalog.get(group, version, plural).cloned())
    }

    /// Serves these resources from now on, and replaces earlier values of the same name. Loads
    /// their objects first. Watches on a replaced resource end.
    ///
    /// # Errors
    /// The objects cannot be loaded: nothing is replaced then; try again.
    pub async fn install(&self, resources: Vec<Resource>) -> Result<(), StorageError> {
        let guard = self.dispatching.lock().await;
        let revision = *self.progress.borrow();
        let before = self.catalog.load_full();
        let mut catalog = Catalog::clone(&before);
        let mut loaded = BTreeMap::new();
        for resource in resources {
            let replaced =
                before.get(&resource.group, &resource.version, &resource.plural).is_some();
            if let Backend::Stored { prefix } = &resource.backend {
                let present = self.caches.read().contains_key(prefix);
                self.timers.add(&self.metrics, prefix, &resource.group, &resource.plural);
                if (!present || replaced) && !loaded.contains_key(prefix) {
                    let cache = self.load(&resource, prefix, revision).await?;
                    loaded.insert(prefix.clone(), Arc::new(cache));
                }
            }
            catalog.insert(Arc::new(resource));
        }
        // A caller that finds a new cache finds the new resources too, so a watch that ends can
        // restart at once.
        let replaced: Vec<_> = {
            let mut caches = self.caches.write();
            self.catalog.store(Arc::new(catalog));
            loaded.into_iter().filter_map(|(prefix, cache)| caches.insert(prefix, cache)).collect()
        };
        replaced.iter().for_each(|cache| cache.close());
        self.generation.send_modify(|generation| *generation += 1);
        drop(guard);
        Ok(())
    }

    /// Stops serving a resource in all versions. Its stored objects stay.
    pub async fn uninstall(&self, group: &str, plural: &str) {
        let _guard = self.dispatching.lock().await;
        let mut catalog = Catalog::clone(&self.catalog.load());
        let removed: Vec<_> = catalog
            .all()
            .filter(|resource| resource.group == group && resource.plural == plural)
            .cloned()
            .collect();
        catalog.remove(group, plural);
        self.catalog.store(Arc::new(catalog));
        for resource in removed {
            if let Backend::Stored { prefix } = &resource.backend
                && let Some(cache) = self.caches.write().remove(prefix)
            {
                cache.close();
            }
        }
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Stops serving one version of a resource; other versions and the objects stay.
    pub async fn uninstall_version(&self, group: &str, version: &str, plural: &str) {
        let _guard = self.dispatching.lock().await;
        let mut catalog = Catalog::clone(&self.catalog.load());
        catalog.remove_version(group, version, plural);
        self.catalog.store(Arc::new(catalog));
        self.generation.send_modify(|generation| *generation += 1);
    }

    async fn load(
        &self,
        resource: &Resource,
        prefix: &str,
        revision: Revision,
    ) -> Result<Cache, StorageError> {
        let mut request = RangeRequest::prefix(prefix);
        request.at = Some(revision);
        let range = match self.storage.range(request.clone()).await {
            // Nothing was written in this span since, else the dispatcher would know.
            Err(StorageError::Compacted { .. }) => {
                request.at = None;
                self.storage.range(request).await?
            }
            other => other?,
        };
        let objects = range.items.iter().filter_map(|item| decode(item, resource));
        Ok(Cache::new(objects, revision))
    }

    /// Marks a create as in progress until the result is dropped.
    fn creating(&self) -> watch::Receiver<()> {
        self.creations.lock().subscribe()
    }

    /// Waits until every create that began before this call has ended. Such a create may have read
    /// outdated state; later ones see everything that was committed before the call.
    pub async fn wait_for_creations(&self) {
        let begun = std::mem::replace(&mut *self.creations.lock(), watch::Sender::new(()));
        begun.closed().await;
    }

    /// The cache behind a stored resource.
    pub(crate) fn cache(&self, resource: &Resource) -> Result<Arc<Cache>, Status> {
        let Backend::Stored { prefix } = &resource.backend else {
            return Err(Status::method_not_allowed());
        };
        self.caches.read().get(prefix).cloned().ok_or_else(Status::unknown_resource)
    }

    /// Waits until the caches hold everything that was committed before the call, and returns their
    /// revision.
    ///
    /// # Errors
    /// 504 when they do not within [`FRESH_WAIT_MAX`], or the error of the storage.
    pub async fn fresh(&self) -> Result<Revision, Status> {
        let revision = self.storage.revision().await.map_err(|error| storage_status(&error))?;
        self.reach(revision).await
    }

    /// Waits until the caches hold everything up to `revision`, and returns their revision.
    ///
    /// # Errors
    /// 504 "too large resource version" when they do not within [`FRESH_WAIT_MAX`].
    pub(crate) async fn reach(&self, revision: Revision) -> Result<Revision, Status> {
        let mut progress = self.progress.subscribe();
        let reached = tokio::time::timeout(FRESH_WAIT_MAX, async {
            progress.wait_for(|now| *now >= revision).await.map(|now| *now)
        });
        match reached.await {
            Ok(Ok(now)) => Ok(now),
            _ => Err(Status::version_too_large(revision, *self.progress.borrow())),
        }
    }

    /// Removes the history of every object: lists and watches at earlier revisions are 410.
    ///
    /// # Errors
    /// The storage did not compact; the caches have removed their history all the same.
    pub async fn forget_history(&self) -> Result<(), Status> {
        let revision = self.fresh().await?;
        self.caches.read().values().for_each(|cache| cache.forget_until(revision));
        self.storage().compact(revision).await.map_err(|error| storage_status(&error))
    }

    fn apply_events(&self, events: &[Arc<Event>]) {
        for event in events {
            let Some(cache) = self.cache_of(&event.key) else { continue };
            let previous = cache.get(&event.key);
            let current = match &event.current {
                Some(item) => {
                    let Some(resource) = self.resource_of(&event.key) else { continue };
                    decode(item, &resource)
                }
                None => None,
            };
            if let Some(event) = CacheEvent::new(event.revision, previous, current) {
                cache.apply(event);
            }
        }
    }

    fn cache_of(&self, key: &str) -> Option<Arc<Cache>> {
        let caches = self.caches.read();
        let upto = (std::ops::Bound::Unbounded, std::ops::Bound::Included(key));
        let (prefix, cache) = caches.range::<str, _>(upto).next_back()?;
        key.starts_with(prefix.as_str()).then(|| cache.clone())
    }

    /// A resource that is stored under the prefix of the key; its selectable fields are those of
    /// all versions.
    fn resource_of(&self, key: &str) -> Option<Arc<Resource>> {
        let catalog = self.catalog.load();
        catalog
            .all()
            .find(|resource| {
                matches!(&resource.backend, Backend::Stored { prefix } if key.starts_with(prefix.as_str()))
            })
            .cloned()
    }
}

/// An undecodable value is logged once and skipped, so that it does not break its whole kind.
fn decode(item: &storage::KeyValue, resource: &Resource) -> Option<Arc<Stored>> {
    match Stored::decode(item, &resource.selectable_fields) {
        Ok(stored) => Some(Arc::new(stored)),
        Err(error) => {
            tracing::error!(key = %item.key, %error, "skipped an unreadable object");
            None
        }
    }
}

/// Follows the storage until the registry is dropped.
async fn dispatch(registry: std::sync::Weak<Registry>) {
    loop {
        let Some(strong) = registry.upgrade() else { return };
        let after = *strong.progress.borrow();
        let stream = strong.storage.watch(ROOT, after).await;
        drop(strong);
        match stream {
            Ok(mut stream) => {
                while let Some(item) = stream.next().await {
                    let Some(registry) = registry.upgrade() else { return };
                    match item {
                        Ok(item) => advance(&registry, item).await,
                        Err(StorageError::Closed) => return,
                        Err(error) => {
                            tracing::warn!(%error, "storage watch ended, resuming");
                            break;
                        }
                    }
                }
            }
            Err(StorageError::Closed) => return,
            Err(error) => tracing::error!(%error, after, "cannot follow the storage"),
        }
        tokio::time::sleep(REWATCH_PAUSE).await;
    }
}

async fn advance(registry: &Registry, item: WatchItem) {
    let _guard = registry.dispatching.lock().await;
    let reached = match item {
        WatchItem::Events(events) => {
            registry.apply_events(&events);
            events.last().map_or(0, |event| event.revision)
        }
        WatchItem::Progress(revision) => revision,
    };
    registry.progress.send_if_modified(|now| {
        let moved = reached > *now;
        *now = reached.max(*now);
        moved
    });
}

/// A storage error as the `Status` for clients.
pub(crate) fn storage_status(error: &StorageError) -> Status {
    match error {
        StorageError::Compacted { requested: revision, oldest } => Status::expired(format!(
            "The resourceVersion for the provided watch is too old: {revision} ({oldest})"
        )),
        StorageError::Future { requested: revision, current } => {
            Status::version_too_large(*revision, *current)
        }
        StorageError::TooLarge { .. } => Status::too_large(error.to_string()),
        StorageError::Full { .. } => {
            let text = format!("{error}; free space on the server's disk and try again");
            Status::new(507, "InternalError", text)
        }
        StorageError::Closed => Status::unavailable("the server is shutting down"),
        StorageError::Unknown { .. } => {
            Status::timeout(format!("{error}; read the object before trying again"))
        }
        StorageError::Unexpected { .. } | StorageError::Lagged | StorageError::Failed { .. } => {
            tracing::error!(%error, "storage operation failed");
            Status::internal(error)
        }
    }
}
