//! Reads: one object, lists in all consistency modes, and pages.

use std::sync::Arc;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use storage::{RangeRequest, Revision, prefix_end};

use crate::registry::{ContinueToken, Left, Registry, decode, storage_status};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;

/// How fresh the response must be: `resourceVersion` and `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadVersion {
    /// Everything committed before the request.
    Latest,
    /// Whatever the cache holds.
    Any,
    /// At least as new as this revision.
    NotOlderThan(Revision),
    /// Exactly the state at this revision, lists only.
    Exact(Revision),
}

/// The options of a list.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Empty for all namespaces.
    pub namespace: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub version: ReadVersion,
    /// Most objects of a page; `None` is all.
    pub limit: Option<usize>,
    /// The token of an earlier page.
    pub continue_token: Option<String>,
}

impl ListQuery {
    /// Everything in a namespace (empty for all), as new as the latest commit.
    pub fn all(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            version: ReadVersion::Latest,
            limit: None,
            continue_token: None,
        }
    }
    fn selects_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

/// One page of a list, or the whole list.
#[derive(Debug)]
pub struct ObjectList {
    pub items: Vec<Arc<Stored>>,
    /// The snapshot that the items are from.
    pub revision: Revision,
    /// For the next page; `None` on the last one.
    pub continue_token: Option<String>,
    /// Objects after this page; `None` on the last page, and with selectors.
    pub remaining: Option<u64>,
}

impl Registry {
    /// One object, at least as new as the latest commit before the call.
    ///
    /// # Errors
    /// Those of [`Registry::get_at`].
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Stored>, Status> {
        self.get_at(resource, namespace, name, ReadVersion::Latest).await
    }

    /// One object, as fresh as `version` requires.
    ///
    /// # Errors
    /// 404 without such an object, 405 for computed resources, 504 when the caches do not reach the
    /// version in time.
    pub async fn get_at(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        version: ReadVersion,
    ) -> Result<Arc<Stored>, Status> {
        self.wait_for_version(version).await?;
        let key = resource.key(namespace, name).ok_or_else(Status::method_not_allowed)?;
        self.cache(resource)?
            .get(&key)
            .ok_or_else(|| Status::not_found(&resource.group, &resource.plural, name))
    }

    async fn wait_for_version(&self, version: ReadVersion) -> Result<Revision, Status> {
        match version {
            ReadVersion::Any => Ok(*self.progress.borrow()),
            ReadVersion::Latest => self.fresh().await,
            ReadVersion::NotOlderThan(revision) | ReadVersion::Exact(revision) => {
                self.reach(revision).await
            }
        }
    }

    /// Lists the objects that the query selects.
    ///
    /// # Errors
    /// 410 when the version or the token has expired, 400 for an invalid token, 405 for computed
    /// resources, 504 when the caches do not reach the version in time.
    pub async fn list(&self, resource: &Resource, query: &ListQuery) -> Result<ObjectList, Status> {
        if let Some(token) = &query.continue_token {
            return self.list_continued(resource, query, token).await;
        }
        let reached = self.wait_for_version(query.version).await?;
        match query.version {
            ReadVersion::Exact(revision) if revision < reached => {
                let from = key_prefix(resource, &query.namespace)?;
                self.list_at(resource, query, revision, &from, None).await
            }
            _ => self.list_cached(resource, query, ""),
        }
    }

    async fn list_continued(
        &self,
        resource: &Resource,
        query: &ListQuery,
        token: &str,
    ) -> Result<ObjectList, Status> {
        let ContinueToken { revision, start, left } = ContinueToken::decode(token)?;
        let prefix = key_prefix(resource, &query.namespace)?;
        let from = format!("{prefix}{}", start.trim_start_matches('/'));
        let left = left.and_then(|left| left.of(&prefix));
        match revision {
            None => {
                self.fresh().await?;
                self.list_cached(resource, query, &from)
            }
            Some(revision) => {
                let page = self.list_at(resource, query, revision, &from, left).await;
                page.map_err(|status| {
                    if status.code != 410 {
                        return status;
                    }
                    // The continuation: the same position at the newest revision, no longer in one
                    // snapshot.
                    let mut status = Status::expired(
                        "The provided continue parameter is too old to display a consistent list \
                         result. You can start a new list without the continue parameter, or use \
                         the continue token in this response to retrieve the remainder of the \
                         results. Continuing with the provided token results in an inconsistent \
                         list - objects that were created, modified, or deleted between the time \
                         the first chunk was returned and now may show up in the list.",
                    );
                    let continuation = ContinueToken { revision: None, start, left: None };
                    status.continue_token = Some(continuation.encode());
                    status
                })
            }
        }
    }

    /// Lists from the cache, from the key `from`; the revision is the one up to which the cache is
    /// complete.
    fn list_cached(
        &self,
        resource: &Resource,
        query: &ListQuery,
        from: &str,
    ) -> Result<ObjectList, Status> {
        let cache = self.cache(resource)?;
        let prefix = key_prefix(resource, &query.namespace)?;
        // Progress is published after its changes were applied, so no change of this cache lies
        // between it and the newest change seen: the larger of the two is exactly the state listed.
        let complete = *self.progress.borrow();
        let objects = cache.read();
        let left = from.is_empty().then(|| objects.count(&query.namespace) as u64);
        let (items, more) = take_page(resource, query, objects.walk(&prefix, from), left);
        Ok(page_of(query, items, complete.max(objects.newest()), more, &prefix))
    }

    /// Lists the state at `revision`, from the key `from`, after which the snapshot has `left`
    /// objects if that is known.
    async fn list_at(
        &self,
        resource: &Resource,
        query: &ListQuery,
        revision: Revision,
        from: &str,
        left: Option<u64>,
    ) -> Result<ObjectList, Status> {
        let prefix = key_prefix(resource, &query.namespace)?;
        // Where little changes, a cache has more history than the storage. What the storage has
        // compacted has expired, for every kind alike.
        let is_available = revision >= self.storage().compacted();
        if is_available && *self.progress.borrow() >= revision {
            let cache = self.cache(resource)?;
            let objects = cache.read();
            if let Some(then) = objects.walk_at(revision, &prefix, from) {
                let (items, more) = take_page(resource, query, then, left);
                return Ok(page_of(query, items, revision, more, &prefix));
            }
        }
        self.list_stored(resource, query, revision, from).await
    }

    /// Lists from the storage at an earlier revision.
    async fn list_stored(
        &self,
        resource: &Resource,
        query: &ListQuery,
        revision: Revision,
        from: &str,
    ) -> Result<ObjectList, Status> {
        let prefix = key_prefix(resource, &query.namespace)?;
        let mut request = RangeRequest {
            start: from.to_owned(),
            end: prefix_end(&prefix),
            limit: query.limit,
            at: Some(revision),
        };
        let limit = query.limit.unwrap_or(usize::MAX);
        let mut items = Vec::new();
        loop {
            let range = self
                .storage()
                .range(request.clone())
                .await
                .map_err(|error| storage_status(&error))?;
            let last = range.items.last().map(|item| item.key.to_string());
            let mut left = range.items.len();
            for object in range.items.iter().filter_map(|item| decode(item, resource)) {
                left -= 1;
                if is_selected(resource, query, &object) {
                    items.push(object);
                    if items.len() == limit {
                        break;
                    }
                }
            }
            let more = range.remaining + if items.len() == limit { left as u64 } else { 0 };
            match last {
                Some(last) if items.len() < limit && more > 0 => request.start = last + "\0",
                _ => return Ok(page_of(query, items, revision, more, &prefix)),
            }
        }
    }
}

/// The objects of one page, and how many follow them. With a selector, the number is 0 or 1:
/// clients do not see it.
fn take_page<'o>(
    resource: &Resource,
    query: &ListQuery,
    objects: impl Iterator<Item = &'o Arc<Stored>>,
    left: Option<u64>,
) -> (Vec<Arc<Stored>>, u64) {
    let limit = query.limit.unwrap_or(usize::MAX);
    if !query.selects_all() {
        let mut selected = objects.filter(|object| is_selected(resource, query, object));
        let items = selected.by_ref().take(limit).cloned().collect();
        return (items, u64::from(selected.next().is_some()));
    }
    let mut objects = objects;
    let items: Vec<_> = objects.by_ref().take(limit).cloned().collect();
    let more = match (objects.next(), left) {
        (None, _) => 0,
        // A forged token yields the number that it contains.
        (Some(_), Some(left)) => left.saturating_sub(items.len() as u64).max(1),
        (Some(_), None) => 1 + objects.count() as u64,
    };
    (items, more)
}

fn page_of(
    query: &ListQuery,
    items: Vec<Arc<Stored>>,
    revision: Revision,
    more: u64,
    prefix: &str,
) -> ObjectList {
    let remaining = (more > 0 && query.selects_all()).then_some(more);
    let continue_token = (more > 0).then(|| {
        let last = items.last().map_or("", |object| &object.key[prefix.len()..]);
        let (revision, start) = (Some(revision), format!("{last}\0"));
        let left = remaining.map(|number| Left::new(prefix, number));
        ContinueToken { revision, start, left }.encode()
    });
    ObjectList { items, revision, continue_token, remaining }
}

/// The prefix of the keys of a resource, in one namespace or all.
pub(crate) fn key_prefix(resource: &Resource, namespace: &str) -> Result<String, Status> {
    match &resource.backend {
        Backend::Stored { prefix } if resource.namespaced && !namespace.is_empty() => {
            Ok(format!("{prefix}{namespace}/"))
        }
        Backend::Stored { prefix } => Ok(prefix.clone()),
        Backend::Computed(_) => Err(Status::method_not_allowed()),
    }
}

pub(crate) fn is_selected(resource: &Resource, query: &ListQuery, object: &Stored) -> bool {
    matches(resource, &query.labels, &query.fields, object)
}

/// Whether both selectors match the object.
pub(crate) fn matches(
    resource: &Resource,
    labels: &LabelSelector,
    fields: &FieldSelector,
    object: &Stored,
) -> bool {
    labels.matches_labels(object)
        && fields.matches(|field| match field {
            "metadata.name" => &object.name,
            "metadata.namespace" => &object.namespace,
            other => resource
                .selectable_fields
                .iter()
                .position(|field| field.label == other)
                .and_then(|at| object.fields.get(at))
                .map_or("", |value| value),
        })
}
