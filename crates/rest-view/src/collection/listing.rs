//! One page of a list, as one caller sees it.
//!
//! [`Scan`] reads everything; [`Index`](crate::Index) answers without, where it can.

use std::ops::Range;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::collection::Showing;
use crate::collection::query::ListQuery;
use crate::error::ApiError;
use crate::types::context::{Context, Presentation};
use crate::types::descriptor::{Descriptor, Resource};
use crate::types::store::ListScope;

/// What a list is asked for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub descriptor: &'a Descriptor,
    /// Filters, order and page.
    pub query: &'a ListQuery,
    /// Follows from the query: all matches are in it.
    pub scope: &'a ListScope,
}

/// One page.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    /// In order, at most the query's limit.
    pub resources: Vec<Resource>,
    /// Matches on all pages.
    pub total: usize,
    /// Matches on the pages before this one.
    pub before: usize,
    /// Id with which the next page begins.
    pub next: Option<String>,
    /// Id with which the page before begins; `None` when that is the first.
    pub previous: Option<String>,
    /// Id with which the last page begins, when it is another one.
    pub last: Option<String>,
}

/// Answers lists: filtered, sorted and cut.
pub trait Lists: Send + Sync + 'static {
    /// The page holds, and counts, only what the caller may see.
    fn page<'a>(
        &'a self,
        context: &'a Context<'a>,
        wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Page, ApiError>>;
}

/// Reads every object of the type from its store, for each page again.
pub struct Scan;

impl Lists for Scan {
    fn page<'a>(
        &'a self,
        context: &'a Context<'a>,
        wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Page, ApiError>> {
        Box::pin(async move { Ok(scan(context, wanted).await?.0) })
    }
}

/// The page, and how many objects were read for it.
pub(crate) async fn scan(
    context: &Context<'_>,
    wanted: Wanted<'_>,
) -> Result<(Page, usize), ApiError> {
    let Wanted { descriptor, query, scope } = wanted;
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

/// Where the page is among the ids of all matches in order, and what is to be said of the others.
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
