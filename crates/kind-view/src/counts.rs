//! `/v1/counts`: how many objects of each type the caller may list, in all and by namespace.

use std::collections::BTreeMap;

use futures::StreamExt;
use rest_view::store::METADATA_LIST;
use rest_view::urls::encode;
use rest_view::{ApiError, Context, Key, Visible};
use serde_json::{Map, Value, json};

use crate::index::KindIndexes;
use crate::kinds::{Kinds, ServedKind};
use crate::list;
use crate::path::Place;
use crate::rights::Rights;

/// Types that are counted at once.
const TYPES_AT_ONCE: usize = 8;
/// Objects of one request to the Kubernetes API.
const CHUNK_OBJECTS: u64 = 1_000;
/// Objects of a type that are counted by namespace. Of larger types there is only the total.
const BY_NAMESPACE_MAX: u64 = 10_000;

/// The objects of a type.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    total: u64,
    /// `None`: too many to be counted one by one.
    namespaces: Option<BTreeMap<String, u64>>,
}

/// The counts of all types, by their ids. Types of which the caller may list nothing are left out,
/// and those that cannot be read now.
///
/// # Errors
/// The caller may not use the place, or it does not respond.
pub async fn all(
    context: &Context<'_>,
    place: &Place,
    kinds: &Kinds,
    indexes: Option<&KindIndexes>,
) -> Result<Value, ApiError> {
    let rights = Rights::of(context).await?;
    let is_listable = |kind: &&ServedKind| kind.offers("watch") && rights.allow("list", kind);
    let listable: Vec<ServedKind> = kinds.iter().filter(is_listable).cloned().collect();
    let counted: Vec<(String, Result<Count, ApiError>)> = futures::stream::iter(listable)
        .map(|kind| async move { (kind.id(), of_kind(context, place, &kind, indexes).await) })
        .buffered(TYPES_AT_ONCE)
        .collect()
        .await;
    let shown = counted.into_iter().filter_map(|(id, count)| Some((id, count.ok()?.shown())));
    Ok(Value::Object(shown.collect::<Map<_, _>>()))
}

async fn of_kind(
    context: &Context<'_>,
    place: &Place,
    kind: &ServedKind,
    indexes: Option<&KindIndexes>,
) -> Result<Count, ApiError> {
    let mut count = Count { total: 0, namespaces: Some(BTreeMap::new()) };
    for part in list::visible(context, place, kind, None, indexes).await? {
        match part {
            Visible::Everything => count.add(context, kind, "").await?,
            Visible::Namespace(namespace) => count.add(context, kind, &namespace).await?,
            // It is in the rules of the caller, which says nothing of whether it exists.
            Visible::Object(_) => {}
        }
    }
    Ok(count)
}

impl Count {
    async fn add(
        &mut self,
        context: &Context<'_>,
        kind: &ServedKind,
        namespace: &str,
    ) -> Result<(), ApiError> {
        let path = format!("{}?limit={CHUNK_OBJECTS}", kind.resource.collection_path(namespace));
        let mut rest = String::new();
        loop {
            let request = http::Request::get(format!("{path}{rest}"))
                .header(http::header::ACCEPT, METADATA_LIST)
                .body(Vec::new())
                .map_err(|_| ApiError::no_such_id())?;
            let chunk: Value = context.client.request(request).await?;
            self.add_chunk(&chunk);
            let token = chunk["metadata"]["continue"].as_str().unwrap_or_default();
            if token.is_empty() {
                return Ok(());
            }
            if let Some(remaining) = chunk["metadata"]["remainingItemCount"].as_u64()
                && self.total.saturating_add(remaining) > BY_NAMESPACE_MAX
            {
                self.total = self.total.saturating_add(remaining);
                self.namespaces = None;
                return Ok(());
            }
            rest = format!("&continue={}", encode(token));
        }
    }

    fn add_chunk(&mut self, chunk: &Value) {
        let items = chunk["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.total += items.len() as u64;
        let Some(namespaces) = &mut self.namespaces else { return };
        for item in items {
            let Key { namespace, .. } = Key::of(item);
            if !namespace.is_empty() {
                *namespaces.entry(namespace).or_default() += 1;
            }
        }
    }

    fn shown(self) -> Value {
        let mut shown = json!({"summary": {"count": self.total}});
        if let Some(namespaces) = self.namespaces.filter(|namespaces| !namespaces.is_empty()) {
            let each = namespaces.into_iter().map(|(name, count)| (name, json!({"count": count})));
            shown["namespaces"] = Value::Object(each.collect());
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_in_all_and_by_namespace() {
        let mut count = Count { total: 0, namespaces: Some(BTreeMap::new()) };
        let item = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
        count.add_chunk(&json!({"items": [item("web"), item("data"), item("web")]}));
        count.add_chunk(&json!({"items": "hostile"}));
        let expected = json!({"summary": {"count": 3},
            "namespaces": {"data": {"count": 1}, "web": {"count": 2}}});
        assert_eq!(count.shown(), expected);
        assert_eq!(Count::default().shown(), json!({"summary": {"count": 0}}));
    }
}
