//! Lists: what the caller may see of a kind, from an index where there is one, else read as the
//! caller.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use rest_view::urls::encode;
use rest_view::{ApiError, Context, KubeResource, KubeStore, ListScope, Store, Visible};
use serde_json::Value;

use crate::bindings;
use crate::index::{INDEXED_FROM, IndexKey, KindIndexes, PackedRow};
use crate::kinds::ServedKind;
use crate::path::Place;
use crate::query::{Beyond, Found, Query};
use crate::table::{self, Table};

/// Objects of one request to the Kubernetes API.
const CHUNK_OBJECTS: usize = 500;
/// Namespaces that are read at once, for callers who may not list all.
const PARTS_AT_ONCE: usize = 8;
/// What one list may read, in bytes of JSON.
pub const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest wait for the index of a kind that is too large to be read for one list.
const INDEX_WAIT_MAX: Duration = Duration::from_secs(10);

/// What the lists of one request have read.
#[derive(Debug, Default)]
pub struct Budget {
    bytes: AtomicUsize,
}

impl Budget {
    /// # Errors
    /// 413 when it is more than [`LIST_BYTES_MAX`].
    fn take(&self, bytes: usize) -> Result<(), ApiError> {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= LIST_BYTES_MAX {
            return Ok(());
        }
        let text = format!(
            "the list is larger than {} MiB; list one namespace, or pages with pagesize, or select \
             with labelSelector or fieldSelector",
            LIST_BYTES_MAX >> 20
        );
        Err(ApiError::new(413, "ListTooLarge", text))
    }
}

/// A list of a kind in one place.
pub struct Listing<'a> {
    /// With a client of the place.
    pub context: &'a Context<'a>,
    pub place: &'a Place,
    pub kind: &'a ServedKind,
    /// `None`: all namespaces.
    pub namespace: Option<&'a str>,
    pub query: &'a Query,
    /// What objects get at `metadata.cluster` in a list over several clusters, else null.
    pub cluster: Value,
    pub budget: &'a Budget,
    pub indexes: Option<&'a KindIndexes>,
}

/// What fulfils the filters, of what the caller may see.
#[derive(Debug, Default)]
pub struct Listed {
    pub found: Vec<Found<ListRow>>,
    pub beyond: Beyond,
    pub columns: Vec<Value>,
    /// Revision of the first part that was read.
    pub revision: String,
}

/// An object of a list.
#[derive(Debug)]
pub enum ListRow {
    Read(Value),
    Packed(PackedRow),
}

impl ListRow {
    /// The object.
    ///
    /// # Errors
    /// 413 when the list has too many objects.
    pub fn open(self, now: Timestamp, budget: &Budget) -> Result<Value, ApiError> {
        match self {
            Self::Read(object) => Ok(object),
            Self::Packed(packed) => {
                budget.take(packed.json_bytes())?;
                Ok(packed.unpack_at(now))
            }
        }
    }
}

/// The index of a kind, if the kinds of the place can have one.
pub fn index_key(place: &Place, kind: &ServedKind) -> Option<IndexKey> {
    match place {
        Place::Cluster(id) if kind.offers("list") && kind.offers("watch") => {
            Some((id.clone(), kind.resource.clone()))
        }
        _ => None,
    }
}

/// The store of a kind, which knows what a caller may see of it.
pub fn store_of(kind: &ServedKind) -> KubeStore {
    let store = KubeStore::new(kind.resource.clone());
    match kind.resource.namespaced {
        true => store.in_namespaces_of(namespaces()),
        false => store,
    }
}

/// The namespaces of a place.
pub fn namespaces() -> KubeResource {
    KubeResource::new("", "v1", "namespaces", "Namespace", false)
}

/// Gives an object of a list over several clusters its cluster.
pub fn set_cluster(object: &mut Value, cluster: &Value) {
    if cluster.is_null() {
        return;
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("cluster".to_owned(), cluster.clone());
    }
}

impl Listing<'_> {
    /// Reads the objects.
    ///
    /// # Errors
    /// The place refuses or does not respond; 413 when there is too much to read, 503 while the
    /// index of such a kind is being built.
    pub async fn read(&self) -> Result<Listed, ApiError> {
        let (Some(indexes), Some(key)) = (self.indexes, index_key(self.place, self.kind)) else {
            return self.read_place().await.map(|(listed, _)| listed);
        };
        let is_needed = indexes.is_needed(&key);
        if is_needed {
            indexes.wait_for(&key, INDEX_WAIT_MAX).await;
        }
        if let Some(listed) = self.read_index(indexes, &key).await? {
            return Ok(listed);
        }
        // Reading the cluster would end at the limit again, and slow what builds the index.
        if is_needed && indexes.request(&key) {
            return Err(not_ready());
        }
        match self.read_place().await {
            Ok((listed, objects)) => {
                let is_of_fleet = !self.cluster.is_null() && objects > 0;
                if is_of_fleet || objects >= INDEXED_FROM {
                    indexes.request(&key);
                }
                Ok(listed)
            }
            Err(too_large) if too_large.status == 413 && indexes.request(&key) => {
                indexes.set_needed(&key);
                indexes.wait_for(&key, INDEX_WAIT_MAX).await;
                match self.read_index(indexes, &key).await? {
                    Some(listed) => Ok(listed),
                    None if indexes.request(&key) => Err(not_ready()),
                    None => Err(too_large),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn read_index(
        &self,
        indexes: &KindIndexes,
        key: &IndexKey,
    ) -> Result<Option<Listed>, ApiError> {
        let visible = || self.visible();
        let read = indexes.head(key, self.query, &self.cluster, visible).await?;
        Ok(read.map(|read| {
            let packed = |found: Found<PackedRow>| found.map(ListRow::Packed);
            Listed {
                found: read.head.found.into_iter().map(packed).collect(),
                beyond: read.head.beyond,
                columns: read.columns,
                revision: read.revision,
            }
        }))
    }

    async fn visible(&self) -> Result<Vec<Visible>, ApiError> {
        visible(self.context, self.place, self.kind, self.namespace, self.indexes).await
    }

    /// Reads all that the caller may see. Returns how many objects that were, too.
    async fn read_place(&self) -> Result<(Listed, usize), ApiError> {
        let tables: Vec<Table> = futures::stream::iter(self.visible().await?)
            .map(|part| self.read_part(part))
            .buffered(PARTS_AT_ONCE)
            .try_collect()
            .await?;
        let mut listed = Listed::default();
        let mut rows = Vec::new();
        for table in tables {
            if listed.columns.is_empty() {
                listed.columns = table.columns;
            }
            if listed.revision.is_empty() {
                listed.revision = table.revision;
            }
            rows.extend(table.rows);
        }
        let objects = rows.len();
        rows.iter_mut().for_each(|row| set_cluster(&mut row.0, &self.cluster));
        let found = self.query.find(rows).into_iter();
        listed.found = found.map(|found| found.map(|row| ListRow::Read(row.0))).collect();
        Ok((listed, objects))
    }

    async fn read_part(&self, part: Visible) -> Result<Table, ApiError> {
        match part {
            Visible::Everything => self.read_collection("").await,
            Visible::Namespace(namespace) => self.read_collection(&namespace).await,
            Visible::Object(key) => {
                let path = self.kind.resource.object_path(&key);
                let mut table = match table::read(self.context.client, &path).await {
                    // Gone, or out of sight, since the rules were read.
                    Err(error) if error.is_not_found() || error.is_forbidden() => Table::default(),
                    other => other?,
                };
                self.budget.take(table.bytes)?;
                let mut selected = Vec::new();
                for row in std::mem::take(&mut table.rows) {
                    if self.query.selects(&row.0)? {
                        selected.push(row);
                    }
                }
                Ok(Table { rows: selected, ..table })
            }
        }
    }

    /// Reads a collection in chunks. Once more from the start when the server no longer knows the
    /// revision of the first chunk.
    async fn read_collection(&self, namespace: &str) -> Result<Table, ApiError> {
        let collection = self.kind.resource.collection_path(namespace);
        let mut path = format!("{collection}?limit={CHUNK_OBJECTS}");
        let selectors = &self.query.selectors;
        for (name, selector) in
            [("labelSelector", &selectors.labels), ("fieldSelector", &selectors.fields)]
        {
            if let Some(selector) = selector {
                path.push_str(&format!("&{name}={}", encode(selector)));
            }
        }
        match self.read_chunks(&path).await {
            Err(error) if error.status == 410 => self.read_chunks(&path).await,
            other => other,
        }
    }

    async fn read_chunks(&self, path: &str) -> Result<Table, ApiError> {
        let mut whole = table::read(self.context.client, path).await?;
        self.budget.take(whole.bytes)?;
        while !whole.rest.is_empty() {
            let next = format!("{path}&continue={}", encode(&whole.rest));
            let chunk = table::read(self.context.client, &next).await?;
            self.budget.take(chunk.bytes)?;
            whole.rows.extend(chunk.rows);
            whole.rest = chunk.rest;
        }
        Ok(whole)
    }
}

/// What the caller may see of a kind, in one namespace or in all, without reading it.
///
/// # Errors
/// The place refuses or does not respond.
pub async fn visible(
    context: &Context<'_>,
    place: &Place,
    kind: &ServedKind,
    namespace: Option<&str>,
    indexes: Option<&KindIndexes>,
) -> Result<Vec<Visible>, ApiError> {
    let store = store_of(kind);
    if let Some(namespace) = namespace {
        return visible_in(context, &store, namespace.to_owned()).await;
    }
    if store.can_see_all(context).await? {
        return Ok(vec![Visible::Everything]);
    }
    let mut parts = store.visible(context, &ListScope::default()).await?.unwrap_or_default();
    let (Some(indexes), true) = (indexes, kind.resource.namespaced) else { return Ok(parts) };
    // Also in namespaces that they do not see, where a binding names them.
    let mut bound = bindings::namespaces(context, place, indexes).await?;
    for part in &parts {
        match part {
            Visible::Everything => return Ok(parts),
            Visible::Namespace(namespace) => drop(bound.remove(namespace)),
            Visible::Object(_) => {}
        }
    }
    let more: Vec<Vec<Visible>> = futures::stream::iter(bound)
        .map(|namespace| visible_in(context, &store, namespace))
        .buffered(PARTS_AT_ONCE)
        .try_collect()
        .await?;
    parts.extend(more.into_iter().flatten());
    // An object may be named in a namespace that they see, too.
    parts.sort_by(|a, b| key_of(a).cmp(&key_of(b)));
    parts.dedup();
    Ok(parts)
}

async fn visible_in(
    context: &Context<'_>,
    store: &KubeStore,
    namespace: String,
) -> Result<Vec<Visible>, ApiError> {
    let scope = ListScope { namespace: Some(namespace) };
    Ok(store.visible(context, &scope).await?.unwrap_or_default())
}

/// Namespace and name; empty for all.
fn key_of(part: &Visible) -> (&str, &str) {
    match part {
        Visible::Everything => ("", ""),
        Visible::Namespace(namespace) => (namespace, ""),
        Visible::Object(key) => (&key.namespace, &key.name),
    }
}

fn not_ready() -> ApiError {
    let text = "the list is large, and is being read for the first time; try again in some seconds";
    ApiError::new(503, "ListNotReady", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_reads_no_more_than_its_budget() {
        let budget = Budget::default();
        budget.take(LIST_BYTES_MAX).unwrap();
        let refused = budget.take(1).unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (413, "ListTooLarge"));
    }
}
