//! Lists of large types without reading all objects for each page.
//!
//! A type gets an index when a list of it has read [`INDEXED_FROM`] objects, and loses the index
//! when no request uses it for [`IDLE_MAX`]. Building takes as long as such a list. Until then, and
//! for lists that an index cannot serve, [`Scan`](crate::Scan) is used. The index has a column for
//! each field that lists were filtered or sorted by, computed by the code that renders the field.
//! It shares the objects with the [`Journal`]; the resources of a page are rendered from these.
//!
//! What the caller may see comes from the store of the type, with the rights of the caller, once
//! per list ([`Store::visible`](crate::Store::visible)); everything else is left out before
//! anything is counted. An index applies what was written before the list request arrived, so that
//! a client sees its own writes.
//!
//! Not served: types whose store does not report what is visible, types whose objects no journal
//! follows, fields that depend on the caller
//! ([`Descriptor::personal`](crate::Descriptor::personal)), and fields that are stored apart from
//! the objects ([`Field::apart`](crate::Field::apart)).

mod column;
mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use self::table::{Columns, ObjectTable};
use crate::collection::Showing;
use crate::collection::listing::{ListRequest, Lists, Page, scan};
use crate::collection::query::ListQuery;
use crate::error::ApiError;
use crate::journal::{Ended, Follow, Journal, JournalUpdate};
use crate::types::context::Context;
use crate::types::descriptor::Descriptor;
use crate::types::registry::Registry;
use crate::types::store::KubeResource;

/// A type with fewer objects needs no index: reading them takes some milliseconds.
pub const INDEXED_FROM: usize = 1_000;
/// Objects in all indexes together. A type beyond this limit is read object by object.
pub const OBJECTS_MAX: usize = 1_000_000;
/// An index is dropped when no request has used it for this long.
pub const IDLE_MAX: Duration = Duration::from_mins(10);
/// Interval between polls for changes, so that a list request has few to apply.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// Serves lists from indexes where it can. Clones share the indexes.
#[derive(Clone)]
pub struct Index {
    shared: Arc<IndexShared>,
}

struct IndexShared {
    journal: Box<dyn Journal>,
    /// Types with fewer objects get no index.
    from: usize,
    /// By version and id of the type.
    entries: Mutex<HashMap<TypeKey, TypeEntry>>,
    pages: AtomicU64,
}

type TypeKey = (String, String);

/// The state of one type.
struct TypeEntry {
    /// Columns that were requested so far.
    columns: Columns,
    built: Option<Built>,
    is_building: bool,
    used_at: Instant,
}

struct Built {
    descriptor: Arc<Descriptor>,
    columns: Columns,
    len: usize,
    followed: Arc<Mutex<FollowedTable>>,
}

/// A table and the source of its changes.
struct FollowedTable {
    table: ObjectTable,
    follow: Box<dyn Follow>,
}

/// A list that an index can serve.
struct Plan {
    descriptor: Arc<Descriptor>,
    resource: KubeResource,
    columns: Columns,
}

impl Plan {
    fn of(registry: &Registry, descriptor: &Descriptor, query: &ListQuery) -> Option<Self> {
        let personal = descriptor.personal.as_ref()?;
        let resource = descriptor.store.indexed_resource()?;
        // Types of a sub-context belong to another API.
        if registry.version(&descriptor.version)?.parent_type.is_some() {
            return None;
        }
        // Otherwise one id could name several objects.
        if resource.namespaced != descriptor.namespaced {
            return None;
        }
        let known = registry.find(&descriptor.version, &descriptor.id)?;
        if !std::ptr::eq(known.as_ref(), descriptor) {
            return None;
        }
        let filtered = query.filters.iter().map(|filter| (filter.field.clone(), false));
        let sorted = query.sort.iter().map(|name| (name.clone(), true));
        let columns: Columns = filtered.chain(sorted).collect();
        let is_apart = |name: &String| descriptor.fields.get(name).is_some_and(|f| f.apart);
        if columns.keys().any(|name| personal.contains(name) || is_apart(name)) {
            return None;
        }
        Some(Self { descriptor: known.clone(), resource: resource.clone(), columns })
    }

    fn key(&self) -> TypeKey {
        (self.descriptor.version.clone(), self.descriptor.id.clone())
    }

    fn is_served_by(&self, built: &Built) -> bool {
        let has = |(name, is_sorted): (&String, &bool)| {
            built.columns.get(name).is_some_and(|sorted_too| *sorted_too || !is_sorted)
        };
        Arc::ptr_eq(&built.descriptor, &self.descriptor) && self.columns.iter().all(has)
    }
}

impl FollowedTable {
    /// Applies the pending changes, and what changed with time alone.
    fn catch_up(&mut self, now: Timestamp) -> Result<(), Ended> {
        while let Some(update) = self.follow.poll_update()? {
            match update {
                JournalUpdate::Changes(changes) => self.table.apply(changes, now),
                // Too much to apply while a list request waits.
                JournalUpdate::Snapshot(_) => return Err(Ended),
            }
        }
        self.table.settle(now);
        Ok(())
    }
}

impl Index {
    /// An index over the journal, for types of at least [`INDEXED_FROM`] objects. Must be used
    /// inside a tokio runtime.
    pub fn new(journal: impl Journal) -> Self {
        Self::from_objects(journal, INDEXED_FROM)
    }

    /// Like [`Index::new`], for types of at least `objects` objects.
    pub fn from_objects(journal: impl Journal, objects: usize) -> Self {
        let (journal, entries, pages) = (Box::new(journal), Mutex::default(), AtomicU64::new(0));
        Self { shared: Arc::new(IndexShared { journal, from: objects, entries, pages }) }
    }

    /// Number of pages that were served from an index so far.
    pub fn pages(&self) -> u64 {
        self.shared.pages.load(Ordering::Relaxed)
    }

    /// The page, if the index can serve it.
    async fn indexed(
        &self,
        context: &Context<'_>,
        request: ListRequest<'_>,
        plan: &Plan,
    ) -> Result<Option<Page>, ApiError> {
        let Some(followed) = self.shared.ready(plan) else { return Ok(None) };
        let visible = request.descriptor.store.visible(context, request.scope).await?;
        let Some(visible) = visible else { return Ok(None) };
        if self.shared.journal.wait_until_current().await.is_err() {
            return Ok(None);
        }
        let found = {
            let mut locked = followed.lock();
            if locked.catch_up(context.now).is_err() {
                drop(locked);
                self.shared.forget(&plan.key(), &followed);
                return Ok(None);
            }
            locked.table.page(request.query, &visible)
        };
        let showing = Showing::new(context, request.descriptor);
        let mut page = found.page;
        let read = found.objects.iter().map(|object| serde_json::from_slice(object));
        let mut stored: Vec<Value> =
            read.collect::<Result<_, _>>().map_err(ApiError::server_error)?;
        request.descriptor.store.reveal(context, &mut stored).await?;
        page.resources = stored.iter().map(|stored| showing.resource(stored, false)).collect();
        self.shared.pages.fetch_add(1, Ordering::Relaxed);
        Ok(Some(page))
    }
}

impl Lists for Index {
    fn page<'a>(
        &'a self,
        context: &'a Context<'a>,
        request: ListRequest<'a>,
    ) -> BoxFuture<'a, Result<Page, ApiError>> {
        Box::pin(async move {
            let plan = Plan::of(context.registry, request.descriptor, request.query);
            if let Some(plan) = &plan
                && let Some(page) = self.indexed(context, request, plan).await?
            {
                return Ok(page);
            }
            let (page, read) = scan(context, request).await?;
            if let Some(plan) = plan
                && read >= self.shared.from
                && request.descriptor.store.visible(context, request.scope).await?.is_some()
            {
                self.shared.request_build(plan, context.registry);
            }
            Ok(page)
        })
    }
}

impl IndexShared {
    fn ready(&self, plan: &Plan) -> Option<Arc<Mutex<FollowedTable>>> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(&plan.key())?;
        entry.used_at = Instant::now();
        let built = entry.built.as_ref().filter(|built| plan.is_served_by(built))?;
        Some(built.followed.clone())
    }

    /// Starts to build an index for such lists, unless it exists or is being built.
    fn request_build(self: &Arc<Self>, plan: Plan, registry: &Registry) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(plan.key()).or_insert_with(|| TypeEntry {
            columns: Columns::new(),
            built: None,
            is_building: false,
            used_at: Instant::now(),
        });
        if entry.is_building || entry.built.as_ref().is_some_and(|built| plan.is_served_by(built)) {
            return;
        }
        for (name, is_sorted) in &plan.columns {
            *entry.columns.entry(name.clone()).or_default() |= is_sorted;
        }
        entry.is_building = true;
        let plan = Plan { columns: entry.columns.clone(), ..plan };
        tokio::spawn(maintain(Arc::downgrade(self), plan, registry.clone()));
    }

    /// Reads all objects. `None`: the resource cannot be followed, or there is no room.
    fn build(&self, plan: &Plan, registry: Registry) -> Option<Built> {
        let mut follow = self.journal.follow(&plan.resource)?;
        let Ok(Some(JournalUpdate::Snapshot(objects))) = follow.poll_update() else { return None };
        let key = plan.key();
        let others = |(known, entry): (&TypeKey, &TypeEntry)| {
            entry.built.as_ref().filter(|_| *known != key).map_or(0, |built| built.len)
        };
        let others: usize = self.entries.lock().iter().map(others).sum();
        if others + objects.len() > OBJECTS_MAX {
            tracing::warn!(
                kind = plan.resource.kind,
                objects = objects.len(),
                others,
                "no room for an index; lists of this kind read all objects"
            );
            return None;
        }
        let mut table = ObjectTable::new(plan.descriptor.clone(), registry, &plan.columns);
        table.fill(objects, Timestamp::now());
        Some(Built {
            descriptor: plan.descriptor.clone(),
            columns: plan.columns.clone(),
            len: table.len(),
            followed: Arc::new(Mutex::new(FollowedTable { table, follow })),
        })
    }

    /// Drops the index of the type if no request has used it for [`IDLE_MAX`], and returns whether
    /// it did.
    fn drop_idle(&self, key: &TypeKey) -> bool {
        let mut entries = self.entries.lock();
        let is_idle = |entry: &TypeEntry| !entry.is_building && entry.used_at.elapsed() > IDLE_MAX;
        entries.get(key).is_some_and(is_idle) && entries.remove(key).is_some()
    }

    fn forget(&self, key: &TypeKey, followed: &Arc<Mutex<FollowedTable>>) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(key) else { return };
        if entry.built.as_ref().is_some_and(|built| Arc::ptr_eq(&built.followed, followed)) {
            entry.built = None;
        }
    }
}

/// Builds the index of a type, then applies changes until the index is idle or has been replaced.
async fn maintain(shared: Weak<IndexShared>, plan: Plan, registry: Registry) {
    let key = plan.key();
    let Some(strong) = shared.upgrade() else { return };
    let build = move || strong.build(&plan, registry);
    let built = tokio::task::spawn_blocking(build).await.unwrap_or_default();
    let followed = built.as_ref().map(|built| Arc::downgrade(&built.followed));
    if followed.is_none() {
        // A retry at once would have the same result.
        tokio::time::sleep(IDLE_MAX).await;
    }
    if let Some(shared) = shared.upgrade()
        && let Some(entry) = shared.entries.lock().get_mut(&key)
    {
        entry.is_building = false;
        entry.built = built;
    }
    let Some(followed) = followed else { return };
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let (Some(shared), Some(followed)) = (shared.upgrade(), followed.upgrade()) else { return };
        if shared.drop_idle(&key) {
            return;
        }
        let behind = followed.clone();
        let catch_up = move || behind.lock().catch_up(Timestamp::now());
        if !matches!(tokio::task::spawn_blocking(catch_up).await, Ok(Ok(()))) {
            shared.forget(&key, &followed);
            return;
        }
    }
}
