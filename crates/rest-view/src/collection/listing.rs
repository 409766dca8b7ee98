//! One page of a list, as one caller sees it.
//!
//! [`Scan`] reads every object; [`Index`](crate::Index) returns the page without that, where it
//! can.

use std::ops::Range;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::collection::Showing;
use crate::collection::query::ListQuery;
use crate::error::ApiError;
use crate::types::context::{Context, Presentation};
use crate::types::descriptor::{Descriptor, Resource};
use crate::types::store::ListScope;

/// What a list request selects.
#[derive(Clone, Copy)]
pub struct ListRequest<'a> {
    /// Type of the resources.
    pub descriptor: &'a Descriptor,
    /// Filters, order and page.
    pub query: &'a ListQuery,
    /// Derived from the query: all matches are in this scope.
    pub scope: &'a ListScope,
}

/// One page of a list.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    /// In the order of the query, at most its limit.
    pub resources: Vec<Resource>,
    /// Matches on all pages.
    pub total: usize,
    /// Matches on the pages before this one.
    pub before: usize,
    /// Id of the first resource of the next page.
    pub next: Option<String>,
    /// Id of the first resource of the previous page; `None` when that is the first page.
    pub previous: Option<String>,
    /// Id of the first resource of the last page, when this is not the last page.
    pub last: Option<String>,
}

/// Serves lists: filtered, sorted, and cut into pages.
pub trait Lists: Send + Sync + 'static {
    /// Returns a page that contains, and counts, only what the caller may see.
    ///
    /// # Errors
    /// The objects or the rights of the caller could not be read.
    fn page<'a>(
        &'a self,
        context: &'a Context<'a>,
        request: ListRequest<'a>,
    ) -> BoxFuture<'a, Result<Page, ApiError>>;
}

/// Reads every object of the type from its store, for every page.
pub struct Scan;

impl Lists for Scan {
    fn page<'a>(
        &'a self,
        context: &'a Context<'a>,
        request: ListRequest<'a>,
    ) -> BoxFuture<'a, Result<Page, ApiError>> {
        Box::pin(async move { Ok(scan(context, request).await?.0) })
    }
}

/// The page, and the number of objects that were read for it.
pub(crate) async fn scan(
    context: &Context<'_>,
    request: ListRequest<'_>,
) -> Result<(Page, usize), ApiError> {
    let ListRequest { descriptor, query, scope } = request;
    let mut stored = descriptor.store.list(context, scope).await?;
    descriptor.store.reveal(context, &mut stored).await?;
    let page = page_of(context, descriptor, query, &stored);
    Ok((page, stored.len()))
}

/// One page of objects that the caller may see.
pub(crate) fn page_of(
    context: &Presentation<'_>,
    descriptor: &Descriptor,
    query: &ListQuery,
    stored: &[Value],
) -> Page {
    let showing = Showing::new(context, descriptor);
    let mut found: Vec<Resource> = stored
        .iter()
        .map(|object| showing.resource(object, false))
        .filter(|resource| query.matches(descriptor, &resource.fields))
        .collect();
    found.sort_by(|a, b| query.compare((&a.id, &a.fields), (&b.id, &b.fields)));
    let ids: Vec<&str> = found.iter().map(|resource| resource.id.as_str()).collect();
    let (range, mut page) = cut(&ids, query);
    page.resources = found.drain(range).collect();
    page
}

/// The range of the page among the sorted ids of all matches, and the page without its resources.
pub(crate) fn cut(ids: &[&str], query: &ListQuery) -> (Range<usize>, Page) {
    let range = query.range(ids);
    let marker = |index: usize| Some(ids[index].to_owned());
    let mut page = Page { total: ids.len(), before: range.start, ..Page::default() };
    if range.end < ids.len() {
        page.next = marker(range.end);
        page.last = marker((ids.len() - 1) / query.limit * query.limit);
    }
    if range.start > query.limit {
        page.previous = marker(range.start - query.limit);
    }
    (range, page)
}
