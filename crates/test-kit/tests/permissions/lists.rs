//! Lists of one type for one user: totals, pages, markers, orders and filters.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::objects::Type;
use super::setup::{Setup, TestUser};

/// Fields that lists are filtered by, where a type has them.
const FILTERED: [&str; 8] =
    ["name", "uuid", "creatorId", "description", "clusterId", "projectId", "created", "url"];

/// The objects of a type that are visible to a user, and the hidden ones.
pub struct Seen<'a> {
    setup: &'a Setup,
    who: TestUser,
    kind: &'a Type,
    shown: Vec<Value>,
    hidden: Vec<Value>,
    /// Queries of the lists so far.
    queries: Mutex<Vec<String>>,
}

fn ids<'a>(items: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    items.into_iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The information in a page, without the parts that repeat the request.
fn gist(page: &Value) -> Value {
    let ids: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|i| &i["id"]).collect();
    let links: Vec<&String> = page["pagination"].as_object().unwrap().keys().collect();
    json!({"ids": ids, "total": page["pagination"]["total"], "links": links})
}

impl<'a> Seen<'a> {
    /// `hidden`: as shown to users with the right to read them.
    pub fn new(
        setup: &'a Setup,
        who: TestUser,
        kind: &'a Type,
        shown: Vec<Value>,
        hidden: Vec<Value>,
    ) -> Self {
        Self { setup, who, kind, shown, hidden, queries: Mutex::default() }
    }

    /// The queries of all lists since the last call.
    pub fn take_queries(&mut self) -> Vec<String> {
        std::mem::take(self.queries.get_mut().unwrap())
    }

    async fn list(&self, query: &str) -> Value {
        let path = format!("{}?{query}", self.kind.path());
        self.queries.lock().unwrap().push(query.to_owned());
        let (status, body) = self.setup.get(self.who, &path).await;
        assert_eq!(status, 200, "{:?} {path}: {body}", self.who);
        body
    }

    /// Every list is the same as it would be without the hidden objects.
    pub async fn check(&self) {
        self.check_pages().await;
        if self.hidden.is_empty() {
            return;
        }
        let first = &self.hidden[0];
        self.check_filters(first).await;
        // All of the following compare positions, which needs several objects.
        if !self.shown.is_empty() {
            self.check_markers(&self.hidden[self.hidden.len() / 2]).await;
        }
    }

    async fn check_pages(&self) {
        let (shown, limit) = (ids(&self.shown), self.shown.len().div_ceil(2).max(1));
        let mut query = format!("limit={limit}");
        let mut found = BTreeSet::new();
        loop {
            let page = self.list(&query).await;
            let total = &page["pagination"]["total"];
            assert_eq!(*total, shown.len(), "{:?} {} {query}", self.who, self.kind.id);
            found.extend(ids(page["data"].as_array().unwrap()));
            match page["pagination"]["next"].as_str() {
                Some(next) => query = next.split_once('?').unwrap().1.to_owned(),
                None => break,
            }
        }
        assert_eq!(found, shown, "{:?} {}", self.who, self.kind.id);
    }

    /// A page with a hidden object as marker is the same as one with a missing object.
    async fn check_markers(&self, hidden: &Value) {
        let hidden = hidden["id"].as_str().unwrap();
        for order in ["", "order=desc", "sort=name", "sort=created&order=desc"] {
            // Next to each other in the order of ids, so that nothing is between them.
            let from = |marker: &str| format!("{order}&limit=2&marker={}", encode(marker));
            let at = gist(&self.list(&from(hidden)).await);
            let beside = gist(&self.list(&from(&format!("{hidden}!"))).await);
            assert_eq!(at, beside, "{:?} {} {order} {hidden}", self.who, self.kind.id);
        }
    }

    /// Filters by values of a hidden object return only visible objects with these values.
    async fn check_filters(&self, hidden: &Value) {
        let filters = &self.kind.schema["collectionFilters"];
        for field in FILTERED {
            let value = self.text(hidden, field);
            if value.is_empty() {
                continue;
            }
            for modifier in filters[field]["modifiers"].as_array().into_iter().flatten() {
                let modifier = modifier.as_str().unwrap();
                // Where nothing is visible, one filter is enough.
                if self.shown.is_empty() && modifier != "eq" {
                    continue;
                }
                let query = format!("{field}_{modifier}={}", encode(&value));
                let page = self.list(&query).await;
                let expected = matches!(modifier, "eq" | "in");
                let fits = |item: &&Value| (self.text(item, field) == value) == expected;
                let expected = ids(self.shown.iter().filter(fits));
                let about = format!("{:?} {} {query}", self.who, self.kind.id);
                assert_eq!(ids(page["data"].as_array().unwrap()), expected, "{about}");
                assert_eq!(page["pagination"]["total"], expected.len(), "{about}");
            }
        }
    }

    /// The text that filters compare.
    fn text(&self, item: &Value, field: &str) -> String {
        let default = &self.kind.schema["resourceFields"][field]["default"];
        match if item[field].is_null() { default } else { &item[field] } {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}
