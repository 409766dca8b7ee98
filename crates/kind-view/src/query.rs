//! What a list is requested with: filters, order, pages, and which fields are shown. Pure.
//!
//! Parameters that this view does not know are ignored, as clients expect. What it knows and cannot
//! read is an error: a filter that is skipped would show too much.

use std::cmp::Ordering;
use std::collections::HashSet;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rest_view::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field_path::FieldPath;

/// Conditions of all filters of a list.
pub const CONDITIONS_MAX: usize = 64;
/// Fields that a list is sorted by.
pub const SORT_FIELDS_MAX: usize = 8;
/// Fields that are included, excluded or emptied.
pub const SHOWN_FIELDS_MAX: usize = 64;
/// Objects of a page.
pub const PAGE_SIZE_MAX: usize = 100_000;
/// Bytes of a value that is compared when sorting; the rest does not count.
const SORT_TEXT_BYTES_MAX: usize = 256;
/// Bytes of a continue token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// A list as it was requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// An object must fulfil one condition of each.
    filters: Vec<Vec<Condition>>,
    sort: Vec<SortField>,
    page: Option<PageRequest>,
    limit: Option<usize>,
    after: Option<Marker>,
    /// Label and field selectors, as the Kubernetes API reads them.
    pub selectors: Selectors,
    shown: Shown,
}

/// Selectors for the Kubernetes API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

/// A condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    pub path: FieldPath,
    is_negated: bool,
    pattern: Pattern,
}

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Contains(String),
    Equals(String),
    OneOf(HashSet<String>),
}

/// A field that a list is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortField {
    /// As it was given.
    text: String,
    pub path: FieldPath,
    pub is_descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageRequest {
    /// Begins at 1.
    number: usize,
    size: usize,
}

impl PageRequest {
    /// How many objects are on earlier pages.
    fn skipped(self) -> usize {
        (self.number - 1).saturating_mul(self.size)
    }
}

/// What a list is sorted by, of one object. Missing values come first.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SortValue {
    Missing,
    Truth(bool),
    Number(f64),
    Text(String),
}

/// Which fields are shown.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    include: Vec<FieldPath>,
    exclude: Vec<FieldPath>,
    exclude_values: Vec<FieldPath>,
}

/// The place of an object in an order: what follows it is on the next page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Marker {
    #[serde(rename = "s")]
    sort: String,
    #[serde(rename = "k")]
    keys: Vec<SortValue>,
    #[serde(rename = "i")]
    id: Id,
}

/// Cluster, namespace and name; the first two may be empty.
pub(crate) type Id = [String; 3];

/// An object of a list.
pub trait Sortable {
    /// As it is stored, with what filters may name besides.
    fn object(&self) -> &Value;
    /// Cluster (empty in a list of one cluster), namespace (empty for none) and name.
    fn id(&self) -> [String; 3] {
        let metadata = &self.object()["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [&metadata["cluster"]["id"], &metadata["namespace"], &metadata["name"]].map(text)
    }
}

/// An object that fulfils the filters, and its place in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    pub(crate) keys: Vec<SortValue>,
    pub(crate) id: Id,
    pub(crate) row: T,
}

impl<T> Found<T> {
    /// The same place, of another row.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        Found { keys: self.keys, id: self.id, row: change(self.row) }
    }
}

/// What fulfils the filters too, and was left out of what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    pub count: usize,
    /// How many of them come before all that was found.
    pub before: usize,
}

/// A part of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub skipped: usize,
    pub size: usize,
}

/// A part of a list.
#[derive(Debug, PartialEq)]
pub struct Selection<T> {
    pub rows: Vec<T>,
    /// How many fulfil the filters.
    pub count: usize,
    /// How many pages they are; only where pages were requested.
    pub pages: Option<usize>,
    /// The token for what follows.
    pub next: Option<String>,
}

impl Query {
    /// From the pairs of a query string, decoded.
    ///
    /// # Errors
    /// 400 with the parameter and what is wrong with it.
    pub fn parse(pairs: &[(String, String)]) -> Result<Self, ApiError> {
        let mut query = Self::default();
        let (mut size, mut number) = (None, None);
        for (name, value) in pairs {
            let refuse = |why: String| wrong(name, value, &why);
            match name.as_str() {
                "filter" => query.filters.push(filter(value).map_err(refuse)?),
                "sort" if query.sort.is_empty() => query.sort = sort(value).map_err(refuse)?,
                "sort" => {
                    return Err(refuse("may be given once: separate fields by commas".into()));
                }
                "pagesize" => size = Some(count(value).map_err(refuse)?),
                "page" => number = Some(count(value).map_err(refuse)?),
                // Clients send a limit that is none for "all".
                "limit" => query.limit = value.parse().ok().filter(|limit| *limit > 0),
                "continue" if !value.is_empty() => {
                    query.after = Some(Marker::decode(value).map_err(refuse)?);
                }
                "labelSelector" if !value.is_empty() => {
                    LabelSelector::parse(value).map_err(|error| refuse(error.0))?;
                    query.selectors.labels = Some(value.clone());
                }
                "fieldSelector" if !value.is_empty() => {
                    FieldSelector::parse(value).map_err(|error| refuse(error.0))?;
                    query.selectors.fields = Some(value.clone());
                }
                "include" => query.shown.include.push(FieldPath::parse(value).map_err(refuse)?),
                "exclude" => query.shown.exclude.push(FieldPath::parse(value).map_err(refuse)?),
                "excludeValues" => {
                    query.shown.exclude_values.push(FieldPath::parse(value).map_err(refuse)?);
                }
                _ => {}
            }
        }
        query.page = match (size, number) {
            (None, None) => None,
            (None, Some(number)) => {
                let why = "needs pagesize: how many objects a page has";
                return Err(wrong("page", &number.to_string(), why));
            }
            (Some(size), number) => Some(PageRequest { number: number.unwrap_or(1), size }),
        };
        query.check()?;
        Ok(query)
    }

    /// Objects that have one of the texts in the field.
    pub(crate) fn with_one_of(path: FieldPath, texts: HashSet<String>) -> Self {
        let condition = Condition { path, is_negated: false, pattern: Pattern::OneOf(texts) };
        Self { filters: vec![vec![condition]], ..Self::default() }
    }

    fn check(&self) -> Result<(), ApiError> {
        let conditions: usize = self.filters.iter().map(Vec::len).sum();
        let Shown { include, exclude, exclude_values } = &self.shown;
        let shown = include.len() + exclude.len() + exclude_values.len();
        for (name, number, max) in [
            ("filter", conditions, CONDITIONS_MAX),
            ("sort", self.sort.len(), SORT_FIELDS_MAX),
            ("include", shown, SHOWN_FIELDS_MAX),
        ] {
            if number > max {
                return Err(wrong(name, &number.to_string(), &format!("is more than {max}")));
            }
        }
        if self.page.is_some() && (self.limit.is_some() || self.after.is_some()) {
            let why = "goes with pagesize and page, or with limit and continue, not with both";
            return Err(wrong("pagesize", "", why));
        }
        match &self.after {
            Some(marker)
                if marker.sort != self.sort_text() || marker.keys.len() != self.sort.len() =>
            {
                let why = "belongs to a list in another order; begin again without it";
                Err(wrong("continue", "", why))
            }
            _ => Ok(()),
        }
    }

    /// The requested part of all `rows`, in order.
    pub fn select<T: Sortable>(&self, rows: Vec<T>) -> Selection<T> {
        self.cut(self.find(rows), Beyond::default())
    }

    /// The rows that fulfil the filters, with their places in the order.
    pub(crate) fn find<T: Sortable>(&self, rows: Vec<T>) -> Vec<Found<T>> {
        let fulfil = rows.into_iter().filter(|row| self.matches(row.object()));
        let found = fulfil.map(|row| Found { keys: self.keys(row.object()), id: row.id(), row });
        found.collect()
    }

    /// The requested part of what was found, in order.
    pub(crate) fn cut<T>(&self, mut found: Vec<Found<T>>, beyond: Beyond) -> Selection<T> {
        found.sort_by(|a, b| self.compare((&a.keys, &a.id), (&b.keys, &b.id)));
        let (skipped, size) = match self.page {
            Some(page) => (page.skipped().saturating_sub(beyond.before), page.size),
            None => {
                let is_before = |found: &Found<T>| !self.is_after_marker(&found.keys, &found.id);
                (found.partition_point(is_before), self.limit.unwrap_or(usize::MAX))
            }
        };
        let count = found.len() + beyond.count;
        let has_more = self.page.is_none() && found.len().saturating_sub(skipped) > size;
        let cut: Vec<_> = found.into_iter().skip(skipped).take(size).collect();
        let next = cut.last().filter(|_| has_more).map(|last| {
            let (keys, id) = (last.keys.clone(), last.id.clone());
            Marker { sort: self.sort_text(), keys, id }.encode()
        });
        Selection {
            rows: cut.into_iter().map(|found| found.row).collect(),
            count,
            pages: self.page.map(|page| count.div_ceil(page.size)),
            next,
        }
    }

    /// Which of the objects that follow the marker have to be found, for [`Self::cut`]. `is_alone`:
    /// they are the whole list; else others are merged with them.
    pub(crate) fn window(&self, is_alone: bool) -> Window {
        match (self.page, self.limit) {
            (Some(page), _) if is_alone => Window { skipped: page.skipped(), size: page.size },
            (Some(page), _) => {
                Window { skipped: 0, size: page.skipped().saturating_add(page.size) }
            }
            // One more tells that there are more.
            (None, Some(limit)) => Window { skipped: 0, size: limit.saturating_add(1) },
            (None, None) => Window { skipped: 0, size: usize::MAX },
        }
    }

    /// Whether an object with these keys and this id comes after those of earlier parts.
    pub(crate) fn is_after_marker(&self, keys: &[SortValue], id: &Id) -> bool {
        let marker = self.after.as_ref();
        marker.is_none_or(|after| self.compare((keys, id), (&after.keys, &after.id)).is_gt())
    }

    /// Whether an object must be in a place of the order that was given with a token.
    pub(crate) fn has_marker(&self) -> bool {
        self.after.is_some()
    }

    /// An object must fulfil one condition of each.
    pub(crate) fn filters(&self) -> &[Vec<Condition>] {
        &self.filters
    }

    /// What objects are sorted by, before their ids.
    pub(crate) fn sort(&self) -> &[SortField] {
        &self.sort
    }

    /// Whether the selectors need nothing but labels, names and namespaces.
    pub(crate) fn selects_by_metadata(&self) -> bool {
        let fields = self.selectors.fields.as_deref();
        fields.is_none_or(|text| FieldSelector::parse(text).is_ok_and(|it| is_by_name(&it)))
    }

    /// Whether an object of which only names are known is among those that the selectors of the
    /// Kubernetes API select.
    ///
    /// # Errors
    /// 400: they select by other fields than name and namespace.
    pub fn selects(&self, object: &Value) -> Result<bool, ApiError> {
        if let Some(text) = &self.selectors.labels {
            let selector = LabelSelector::parse(text);
            let selector = selector.map_err(|error| wrong("labelSelector", text, &error.0))?;
            if !selector.matches_labels(&object["metadata"]["labels"]) {
                return Ok(false);
            }
        }
        let Some(text) = &self.selectors.fields else { return Ok(true) };
        let selector = FieldSelector::parse(text);
        let selector = selector.map_err(|error| wrong("fieldSelector", text, &error.0))?;
        if !is_by_name(&selector) {
            let why = "selects by more than metadata.name and metadata.namespace, which needs the \
                       right to list all objects; use filter";
            return Err(wrong("fieldSelector", text, why));
        }
        Ok(selector.matches(|field| {
            let name = field.trim_start_matches("metadata.");
            object["metadata"][name].as_str().unwrap_or_default()
        }))
    }

    /// Reduces an object to the fields that are shown of it.
    pub fn reduce(&self, object: &mut Value) {
        let Shown { include, exclude, exclude_values } = &self.shown;
        if !include.is_empty() {
            let whole = std::mem::replace(object, Value::Object(serde_json::Map::new()));
            for own in ["id", "type", "links", "actions"] {
                if let Some(value) = whole.get(own) {
                    object[own] = value.clone();
                }
            }
            include.iter().for_each(|path| path.copy(&whole, object));
        }
        exclude.iter().for_each(|path| path.remove(object));
        exclude_values.iter().for_each(|path| path.empty_values(object));
    }

    fn matches(&self, object: &Value) -> bool {
        self.filters.iter().all(|any| any.iter().any(|condition| condition.holds(object)))
    }

    /// What the object is sorted by.
    fn keys(&self, object: &Value) -> Vec<SortValue> {
        self.sort.iter().map(|field| SortValue::of(&field.path.values(object))).collect()
    }

    /// The order, as it was given.
    pub(crate) fn sort_text(&self) -> String {
        self.sort.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(",")
    }

    fn compare(&self, a: (&[SortValue], &Id), b: (&[SortValue], &Id)) -> Ordering {
        let by_keys = self.sort.iter().zip(a.0.iter().zip(b.0)).map(|(field, (a, b))| {
            let order = a.compare(b);
            if field.is_descending { order.reverse() } else { order }
        });
        by_keys.fold(Ordering::Equal, Ordering::then).then_with(|| a.1.cmp(b.1))
    }
}

impl Condition {
    fn holds(&self, object: &Value) -> bool {
        self.holds_for(self.path.values(object))
    }

    /// Whether it holds for an object with these values at the path.
    pub(crate) fn holds_for<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> bool {
        let mut texts = values.into_iter().filter_map(text_of);
        let is_there = texts.any(|text| match &self.pattern {
            Pattern::Contains(part) => text.contains(part.as_str()),
            Pattern::Equals(whole) => text == *whole,
            Pattern::OneOf(all) => all.contains(&*text),
        });
        is_there != self.is_negated
    }
}

/// A simple value as it is compared; `None` for maps and for null.
fn text_of(value: &Value) -> Option<std::borrow::Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl SortValue {
    /// The first of the values that can be compared.
    pub(crate) fn of(values: &[&Value]) -> Self {
        let simple = values.iter().find_map(|value| match value {
            Value::String(text) => Some(Self::Text(cut(text).to_owned())),
            Value::Number(number) => number.as_f64().map(Self::Number),
            Value::Bool(truth) => Some(Self::Truth(*truth)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        });
        simple.unwrap_or(Self::Missing)
    }

    /// Missing values, truths, numbers, texts; each in its own order.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (a, b) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        }
    }
}

/// Whether it selects by nothing but names and namespaces.
fn is_by_name(selector: &FieldSelector) -> bool {
    let mut fields = selector.fields();
    fields.all(|field| ["metadata.name", "metadata.namespace"].contains(&field))
}

/// The first [`SORT_TEXT_BYTES_MAX`] bytes, at the end of a character.
fn cut(text: &str) -> &str {
    let end = (0..=SORT_TEXT_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

impl Marker {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
    fn decode(token: &str) -> Result<Self, String> {
        let unreadable = || "is not a token of this view; begin again without it".to_owned();
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unreadable());
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| unreadable())?;
        serde_json::from_slice(&bytes).map_err(|_| unreadable())
    }
}

/// `a.b=v,c.d!=w`: one of them must hold. `v` is a part of the value, or in single quotes all of
/// it.
fn filter(text: &str) -> Result<Vec<Condition>, String> {
    split(text)?.into_iter().map(condition).collect()
}

/// Splits at commas outside of quotes.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_quoted {
        return Err("has no second quote".to_owned());
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn condition(text: &str) -> Result<Condition, String> {
    let (path, value) = text.split_once('=').ok_or("needs the form field=value")?;
    let (path, is_negated) = match path.strip_suffix('!') {
        Some(path) => (path, true),
        None => (path, false),
    };
    let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    let pattern = match quoted {
        Some(whole) => Pattern::Equals(whole.to_owned()),
        None => Pattern::Contains(value.to_owned()),
    };
    let path = FieldPath::parse(path).map_err(|why| format!("its field {why}"))?;
    Ok(Condition { path, is_negated, pattern })
}

/// `-a.b,c.d`: by `a.b` from high to low, then by `c.d`.
fn sort(text: &str) -> Result<Vec<SortField>, String> {
    let fields = text.split(',').map(|text| {
        let (path, is_descending) = match text.strip_prefix('-') {
            Some(path) => (path, true),
            None => (text, false),
        };
        let path = FieldPath::parse(path).map_err(|why| format!("its field \"{path}\" {why}"))?;
        Ok(SortField { text: text.to_owned(), path, is_descending })
    });
    fields.collect()
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=PAGE_SIZE_MAX).contains(&number) => Ok(number),
        _ => Err(format!("must be a number from 1 to {PAGE_SIZE_MAX}")),
    }
}

fn wrong(name: &str, value: &str, why: &str) -> ApiError {
    let shown = if value.is_empty() { String::new() } else { format!(" \"{}\"", cut(value)) };
    ApiError::new(400, "InvalidParameter", format!("parameter {name}{shown} {why}")).field(name)
}

#[cfg(test)]
mod tests;
