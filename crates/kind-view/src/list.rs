//! Lists: what the caller may see of a kind, read as the caller.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, TryStreamExt};
use rest_view::urls::encode;
use rest_view::{ApiError, Context, KubeResource, KubeStore, ListScope, Store, Visible};
use serde_json::Value;

use crate::kinds::ServedKind;
use crate::query::Query;
use crate::table::{self, Row, Table};

/// Objects of one request to the Kubernetes API.
const CHUNK_OBJECTS: usize = 500;
/// Namespaces that are read at once, for callers who may not list all.
const PARTS_AT_ONCE: usize = 8;
/// What one list may read, in bytes of JSON.
pub const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

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
            "the list is larger than {} MiB; ask for one namespace, or with labelSelector or \
             fieldSelector",
            LIST_BYTES_MAX >> 20
        );
        Err(ApiError::new(413, "ListTooLarge", text))
    }
}

/// All objects that the caller may see in the scope, and that the selectors select.
#[derive(Debug, Default)]
pub struct Listed {
    pub rows: Vec<Row>,
    pub columns: Vec<Value>,
    /// Revision of the first part that was read.
    pub revision: String,
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

/// Reads the objects of a kind in one namespace or in all.
///
/// # Errors
/// The place refuses or does not respond; 413 when there is too much to read.
pub async fn read(
    context: &Context<'_>,
    kind: &ServedKind,
    namespace: Option<&str>,
    query: &Query,
    budget: &Budget,
) -> Result<Listed, ApiError> {
    let scope = ListScope { namespace: namespace.map(str::to_owned) };
    let parts = store_of(kind).visible(context, &scope).await?.unwrap_or_default();
    let tables: Vec<Table> = futures::stream::iter(parts)
        .map(|part| read_part(context, kind, part, query, budget))
        .buffered(PARTS_AT_ONCE)
        .try_collect()
        .await?;
    let mut listed = Listed::default();
    for table in tables {
        if listed.columns.is_empty() {
            listed.columns = table.columns;
        }
        if listed.revision.is_empty() {
            listed.revision = table.revision;
        }
        listed.rows.extend(table.rows);
    }
    Ok(listed)
}

async fn read_part(
    context: &Context<'_>,
    kind: &ServedKind,
    part: Visible,
    query: &Query,
    budget: &Budget,
) -> Result<Table, ApiError> {
    match part {
        Visible::Everything => read_collection(context, kind, "", query, budget).await,
        Visible::Namespace(namespace) => {
            read_collection(context, kind, &namespace, query, budget).await
        }
        Visible::Object(key) => {
            let read = table::read(context, &kind.resource.object_path(&key)).await;
            let mut table = match read {
                // Gone, or out of sight, since the rules were read.
                Err(error) if error.is_not_found() || error.is_forbidden() => Table::default(),
                other => other?,
            };
            budget.take(table.bytes)?;
            let mut selected = Vec::new();
            for row in std::mem::take(&mut table.rows) {
                if query.selects(&row.0)? {
                    selected.push(row);
                }
            }
            Ok(Table { rows: selected, ..table })
        }
    }
}

/// Reads a collection in chunks. Once more from the start when the server no longer knows the
/// revision of the first chunk.
async fn read_collection(
    context: &Context<'_>,
    kind: &ServedKind,
    namespace: &str,
    query: &Query,
    budget: &Budget,
) -> Result<Table, ApiError> {
    let mut path = format!("{}?limit={CHUNK_OBJECTS}", kind.resource.collection_path(namespace));
    for (name, selector) in
        [("labelSelector", &query.selectors.labels), ("fieldSelector", &query.selectors.fields)]
    {
        if let Some(selector) = selector {
            path.push_str(&format!("&{name}={}", encode(selector)));
        }
    }
    match read_chunks(context, &path, budget).await {
        Err(error) if error.status == 410 => read_chunks(context, &path, budget).await,
        other => other,
    }
}

async fn read_chunks(
    context: &Context<'_>,
    path: &str,
    budget: &Budget,
) -> Result<Table, ApiError> {
    let mut whole = table::read(context, path).await?;
    budget.take(whole.bytes)?;
    while !whole.rest.is_empty() {
        let next = format!("{path}&continue={}", encode(&whole.rest));
        let chunk = table::read(context, &next).await?;
        budget.take(chunk.bytes)?;
        whole.rows.extend(chunk.rows);
        whole.rest = chunk.rest;
    }
    Ok(whole)
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
