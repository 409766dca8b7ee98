//! List options: filters, sort, page. Pure, over resources that are already rendered.

use std::cmp::Ordering;
use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::collection::listing::Page;
use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldType};
use crate::types::urls::encode;

/// Resources per page when the client sets no limit.
pub const PAGE_SIZE_DEFAULT: usize = 1_000;
/// The largest page, also for `limit=-1`.
pub const PAGE_SIZE_MAX: usize = 10_000;

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Name of a filterable field.
    pub field: String,
    pub modifier: Modifier,
    /// At least one. Only `In` and `NotIn` have more.
    pub values: Vec<String>,
}

impl Filter {
    /// The texts that the filter compares with.
    pub fn texts(&self) -> &[String] {
        match self.modifier {
            Modifier::Eq | Modifier::Ne => &self.values[..1],
            Modifier::In | Modifier::NotIn => &self.values,
        }
    }
    /// Whether a resource matches when it has one of the texts; otherwise it matches when it has
    /// none.
    pub fn is_positive(&self) -> bool {
        matches!(self.modifier, Modifier::Eq | Modifier::In)
    }
}

/// How a filter compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    Eq,
    Ne,
    In,
    NotIn,
}

impl Modifier {
    /// As the query spells it (`field_ne=…`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::In => "in",
            Self::NotIn => "notin",
        }
    }
    fn parse(text: &str) -> Option<Self> {
        [Self::Eq, Self::Ne, Self::In, Self::NotIn].into_iter().find(|m| m.as_str() == text)
    }
}

/// The list options of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// All must match.
    pub filters: Vec<Filter>,
    /// Field to sort by; `None`: by id.
    pub sort: Option<String>,
    /// Reverses the order.
    pub descending: bool,
    /// Resources on a page, at least one.
    pub limit: usize,
    /// Id of the first resource of the page.
    pub marker: Option<String>,
}

impl ListQuery {
    /// Reads the options from query parameters. Names that are no filterable field are ignored,
    /// because clients send some.
    pub fn parse(descriptor: &Descriptor, pairs: &[(String, String)]) -> Self {
        let first =
            |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let limit = match first("limit").and_then(|text| text.parse::<i64>().ok()) {
            Some(-1) => PAGE_SIZE_MAX,
            Some(limit) if limit > 0 => {
                usize::try_from(limit).unwrap_or(PAGE_SIZE_MAX).min(PAGE_SIZE_MAX)
            }
            _ => PAGE_SIZE_DEFAULT,
        };
        let sort = first("sort")
            .filter(|name| descriptor.filterable().any(|field| field.name == *name))
            .map(str::to_owned);
        Self {
            filters: filters(descriptor, pairs),
            sort,
            descending: first("order").is_some_and(|order| order.eq_ignore_ascii_case("desc")),
            limit,
            marker: first("marker").filter(|marker| !marker.is_empty()).map(str::to_owned),
        }
    }

    /// The value that a filter requires `field` to equal, if there is one.
    pub fn equal_to(&self, field: &str) -> Option<&str> {
        let is_equality = |f: &&Filter| f.field == field && f.modifier == Modifier::Eq;
        self.filters.iter().find(is_equality).and_then(|f| f.values.first()).map(String::as_str)
    }

    /// Whether the fields of a resource match all filters. An absent field counts as its default.
    pub fn matches(&self, descriptor: &Descriptor, fields: &Map<String, Value>) -> bool {
        self.filters.iter().all(|filter| {
            let default = descriptor.fields.get(&filter.field).and_then(|f| f.default.as_ref());
            let value = fields.get(&filter.field).filter(|value| !value.is_null()).or(default);
            filter.texts().contains(&as_text(value)) == filter.is_positive()
        })
    }

    /// Order of two resources, each with its id. Equal keys are ordered by id.
    pub fn compare(
        &self,
        (id_a, a): (&str, &Map<String, Value>),
        (id_b, b): (&str, &Map<String, Value>),
    ) -> Ordering {
        let by_field = match &self.sort {
            Some(name) => as_text(a.get(name)).cmp(&as_text(b.get(name))),
            None => Ordering::Equal,
        };
        let order = by_field.then_with(|| id_a.cmp(id_b));
        if self.descending { order.reverse() } else { order }
    }

    /// The page among sorted ids. If the marked resource was deleted, the page begins with the one
    /// after it, as far as the order determines which that is; otherwise the list starts from the
    /// beginning.
    pub fn range(&self, ids: &[&str]) -> Range<usize> {
        let begin = |marker: &str| match ids.iter().position(|id| *id == marker) {
            Some(found) => found,
            None if self.sort.is_some() => 0,
            None => ids.partition_point(|id| match self.descending {
                true => *id > marker,
                false => *id < marker,
            }),
        };
        let start = self.marker.as_deref().map_or(0, begin);
        start..ids.len().min(start + self.limit)
    }

    /// The `pagination` object of a collection.
    pub fn pagination(&self, url: &PageUrl<'_>, page: &Page) -> Value {
        let mut out = json!({"limit": self.limit, "total": page.total});
        if page.before == 0 && page.next.is_none() {
            return out;
        }
        out["partial"] = true.into();
        if let Some(marker) = &self.marker {
            out["marker"] = marker.clone().into();
        }
        out["first"] = url.with("marker", None).into();
        for (name, marker) in [("next", &page.next), ("last", &page.last)] {
            if marker.is_some() {
                out[name] = url.with("marker", marker.as_deref()).into();
            }
        }
        if page.before > 0 {
            out["previous"] = url.with("marker", page.previous.as_deref()).into();
        }
        out
    }

    /// The `sort` object of a collection.
    pub fn sort_links(&self, descriptor: &Descriptor, url: &PageUrl<'_>) -> Value {
        let order = |descending: bool| if descending { "desc" } else { "asc" };
        let mut links = Map::new();
        let is_text = |field: &&Field| matches!(field.kind, FieldType::String | FieldType::Enum);
        for field in descriptor.filterable().filter(is_text) {
            let target = url.sorted(&field.name, None);
            links.insert(field.name.clone(), target.into());
        }
        let mut out = json!({"order": order(self.descending), "links": links});
        let reverse = match &self.sort {
            Some(name) => {
                out["name"] = name.clone().into();
                url.sorted(name, Some(order(!self.descending)))
            }
            None => url.with("order", Some(order(!self.descending))),
        };
        out["reverse"] = reverse.into();
        out
    }

    /// The `filters` object: every filterable field, with null or its requested filters.
    pub fn filters_shown(&self, descriptor: &Descriptor) -> Value {
        let mut out = Map::new();
        for field in descriptor.filterable() {
            let requested: Vec<Value> = self
                .filters
                .iter()
                .filter(|filter| filter.field == field.name)
                .map(|f| json!({"modifier": f.modifier.as_str(), "value": f.values.join(",")}))
                .collect();
            let shown = if requested.is_empty() { Value::Null } else { requested.into() };
            out.insert(field.name.clone(), shown);
        }
        out.into()
    }
}

fn filters(descriptor: &Descriptor, pairs: &[(String, String)]) -> Vec<Filter> {
    let mut filters: Vec<Filter> = Vec::new();
    for (key, value) in pairs {
        let Some((field, modifier)) = filter_of(descriptor, key) else { continue };
        let same = |f: &&mut Filter| f.field == field && f.modifier == modifier;
        match filters.iter_mut().find(same) {
            // Only lists of alternatives take more than the first value.
            Some(known) if matches!(modifier, Modifier::In | Modifier::NotIn) => {
                known.values.push(value.clone());
            }
            Some(_) => {}
            None => filters.push(Filter { field, modifier, values: vec![value.clone()] }),
        }
    }
    filters
}

/// `name`, or `name_modifier` split at the last underscore.
fn filter_of(descriptor: &Descriptor, key: &str) -> Option<(String, Modifier)> {
    let field = |name: &str| descriptor.filterable().find(|field| field.name == name);
    if let Some(found) = field(key) {
        return Some((found.name.clone(), Modifier::Eq));
    }
    let (name, modifier) = key.rsplit_once('_')?;
    let found = field(name)?;
    let modifier = Modifier::parse(modifier)?;
    found.kind.modifiers().contains(&modifier.as_str()).then(|| (found.name.clone(), modifier))
}

/// The text that filters and sorting compare.
pub(crate) fn as_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The requested URL of a list, from which the URLs of other pages are made.
pub struct PageUrl<'a> {
    /// Without the query.
    pub url: &'a str,
    /// Decoded query parameters, in order.
    pub pairs: &'a [(String, String)],
}

impl PageUrl<'_> {
    /// The URL with one parameter set, or removed.
    pub fn with(&self, name: &str, value: Option<&str>) -> String {
        self.varied(&[name], value.map(|value| (name, value)).into_iter().collect())
    }
    fn sorted(&self, field: &str, order: Option<&str>) -> String {
        let mut added = vec![("sort", field)];
        added.extend(order.map(|order| ("order", order)));
        self.varied(&["sort", "order", "marker"], added)
    }
    fn varied(&self, without: &[&str], added: Vec<(&str, &str)>) -> String {
        let retained = self.pairs.iter().filter(|(key, _)| !without.contains(&key.as_str()));
        let pairs: Vec<String> = retained
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .chain(added)
            .map(|(key, value)| format!("{}={}", encode(key), encode(value)))
            .collect();
        match pairs.as_slice() {
            [] => self.url.to_owned(),
            pairs => format!("{}?{}", self.url, pairs.join("&")),
        }
    }
}
