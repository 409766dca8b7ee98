//! Reading: one object, lists in all their consistency modes, and pages.

use std::sync::Arc;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use storage::{RangeRequest, Revision, prefix_end};

use crate::registry::{ContinueToken, Left, Registry, decode, storage_failed};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;

/// How fresh an answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Everything committed before the request.
    Latest,
    /// Whatever the cache holds.
    Any,
    NotOlderThan(Revision),
    Exact(Revision),
}

/// What a list asks for.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Empty for all namespaces.
    pub namespace: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub version: Version,
    pub limit: Option<usize>,
    /// A token of an earlier page.
    pub continue_token: Option<String>,
}

impl ListQuery {
    pub fn all(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            version: Version::Latest,
            limit: None,
            continue_token: None,
        }
    }
    fn selects_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

/// One page, or all.
#[derive(Debug)]
pub struct List {
    pub items: Vec<Arc<Stored>>,
    /// The snapshot that the items are from.
    pub revision: Revision,
    pub continue_token: Option<String>,
    pub remaining: Option<u64>,
}

impl Registry {
    /// One object, as of now.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Stored>, Status> {
        self.get_at(resource, namespace, name, Version::Latest).await
    }

    pub async fn get_at(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        version: Version,
    ) -> Result<Arc<Stored>, Status> {
        self.settle(version).await?;
        let key = resource.key(namespace, name).ok_or_else(Status::method_not_allowed)?;
        self.cache(resource)?
            .get(&key)
            .ok_or_else(|| Status::not_found(&resource.group, &resource.plural, name))
    }

    async fn settle(&self, version: Version) -> Result<Revision, Status> {
        match version {
            Version::Any => Ok(*self.progress.borrow()),
            Version::Latest => self.fresh().await,
            Version::NotOlderThan(wanted) | Version::Exact(wanted) => self.reach(wanted).await,
        }
    }

    pub async fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, Status> {
        if let Some(token) = &query.continue_token {
            return self.list_continued(resource, query, token).await;
        }
        let reached = self.settle(query.version).await?;
        match query.version {
            Version::Exact(wanted) if wanted < reached => {
                let from = key_prefix(resource, &query.namespace)?;
                self.list_at(resource, query, wanted, &from, None).await
            }
            _ => self.list_cached(resource, query, ""),
        }
    }

    async fn list_continued(
        &self,
        resource: &Resource,
        query: &ListQuery,
        token: &str,
    ) -> Result<List, Status> {
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
                    // The way on: the same place at the newest revision, no longer one snapshot.
                    let mut status = Status::expired(
                        "The provided continue parameter is too old to display a consistent list \
                         result. You can start a new list without the continue parameter, or use \
                         the continue token in this response to retrieve the remainder of the \
                         results. Continuing with the provided token results in an inconsistent \
                         list - objects that were created, modified, or deleted between the time \
                         the first chunk was returned and now may show up in the list.",
                    );
                    let way_on = ContinueToken { revision: None, start, left: None };
                    status.continue_token = Some(way_on.encode());
                    status
                })
            }
        }
    }

    /// From the cache; the page's revision is what the cache is complete to.
    fn list_cached(
        &self,
        resource: &Resource,
        query: &ListQuery,
        from: &str,
    ) -> Result<List, Status> {
        let cache = self.cache(resource)?;
        let prefix = key_prefix(resource, &query.namespace)?;
        // Progress is published after its changes were applied, so no change of this cache lies between it and the
        // newest change seen: the larger of the two is exactly the state listed.
        let complete = *self.progress.borrow();
        let objects = cache.read();
        let left = from.is_empty().then(|| objects.count(&query.namespace) as u64);
        let (items, more) = take_page(resource, query, objects.walk(&prefix, from), left);
        Ok(page(query, items, complete.max(objects.newest()), more, &prefix))
    }

    /// As it was at `revision`, from the key `from` on, after which the snapshot has `left` objects
    /// if that is known.
    async fn list_at(
        &self,
        resource: &Resource,
        query: &ListQuery,
        revision: Revision,
        from: &str,
        left: Option<u64>,
    ) -> Result<List, Status> {
        let prefix = key_prefix(resource, &query.namespace)?;
        // A cache holds more of the past than the storage where little changes. What the storage has
        // compacted has expired, for every kind alike.
        let is_kept = revision >= self.storage().compacted();
        if is_kept && *self.progress.borrow() >= revision {
            let cache = self.cache(resource)?;
            let objects = cache.read();
            if let Some(then) = objects.walk_at(revision, &prefix, from) {
                let (items, more) = take_page(resource, query, then, left);
                return Ok(page(query, items, revision, more, &prefix));
            }
        }
        self.list_stored(resource, query, revision, from).await
    }

    /// From storage at an earlier revision.
    async fn list_stored(
        &self,
        resource: &Resource,
        query: &ListQuery,
        revision: Revision,
        from: &str,
    ) -> Result<List, Status> {
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
                .map_err(|error| storage_failed(&error))?;
            let last = range.items.last().map(|item| item.key.to_string());
            let mut left = range.items.len();
            for object in range.items.iter().filter_map(|item| decode(item, resource)) {
                left -= 1;
                if selected(resource, query, &object) {
                    items.push(object);
                    if items.len() == limit {
                        break;
                    }
                }
            }
            let more = range.remaining + if items.len() == limit { left as u64 } else { 0 };
            match last {
                Some(last) if items.len() < limit && more > 0 => request.start = last + "\0",
                _ => return Ok(page(query, items, revision, more, &prefix)),
            }
        }
    }
}

/// The objects of one page, and how many come after them. With a selector, which makes nobody tell
/// their number, it is one or none.
fn take_page<'o>(
    resource: &Resource,
    query: &ListQuery,
    objects: impl Iterator<Item = &'o Arc<Stored>>,
    left: Option<u64>,
) -> (Vec<Arc<Stored>>, u64) {
    let limit = query.limit.unwrap_or(usize::MAX);
    if !query.selects_all() {
        let mut selected = objects.filter(|object| selected(resource, query, object));
        let items = selected.by_ref().take(limit).cloned().collect();
        return (items, u64::from(selected.next().is_some()));
    }
    let mut objects = objects;
    let items: Vec<_> = objects.by_ref().take(limit).cloned().collect();
    let more = match (objects.next(), left) {
        (None, _) => 0,
        // Whoever makes up a token is told what stands in it.
        (Some(_), Some(left)) => left.saturating_sub(items.len() as u64).max(1),
        (Some(_), None) => 1 + objects.count() as u64,
    };
    (items, more)
}

fn page(
    query: &ListQuery,
    items: Vec<Arc<Stored>>,
    revision: Revision,
    more: u64,
    prefix: &str,
) -> List {
    let remaining = (more > 0 && query.selects_all()).then_some(more);
    let continue_token = (more > 0).then(|| {
        let last = items.last().map_or("", |object| &object.key[prefix.len()..]);
        let (revision, start) = (Some(revision), format!("{last}\0"));
        let left = remaining.map(|number| Left::new(prefix, number));
        ContinueToken { revision, start, left }.encode()
    });
    List { items, revision, continue_token, remaining }
}

/// The keys of a resource, in one namespace or all.
pub(crate) fn key_prefix(resource: &Resource, namespace: &str) -> Result<String, Status> {
    match &resource.backend {
        Backend::Stored { prefix } if resource.namespaced && !namespace.is_empty() => {
            Ok(format!("{prefix}{namespace}/"))
        }
        Backend::Stored { prefix } => Ok(prefix.clone()),
        Backend::Computed(_) => Err(Status::method_not_allowed()),
    }
}

pub(crate) fn selected(resource: &Resource, query: &ListQuery, object: &Stored) -> bool {
    matches(resource, &query.labels, &query.fields, object)
}

/// Whether both selectors take the object.
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
