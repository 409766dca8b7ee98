//! Lists of one type as one person asks for them: totals, pages, markers, orders and filters.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::objects::Type;
use super::places::{Person, Places};

/// Fields that lists are filtered by, where a type has them.
const FILTERED: [&str; 8] =
    ["name", "uuid", "creatorId", "description", "clusterId", "projectId", "created", "url"];

/// What a person sees of a type, and what is hidden from them.
pub struct Seen<'a> {
    places: &'a Places,
    who: Person,
    kind: &'a Type,
    shown: Vec<Value>,
    hidden: Vec<Value>,
    /// Queries of the lists so far.
    asked: Mutex<Vec<String>>,
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

/// What there is to be learned from a page, but for the words of the question.
fn gist(page: &Value) -> Value {
    let ids: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|i| &i["id"]).collect();
    let links: Vec<&String> = page["pagination"].as_object().unwrap().keys().collect();
    json!({"ids": ids, "total": page["pagination"]["total"], "links": links})
}

impl<'a> Seen<'a> {
    /// `hidden`: as those see it who may.
    pub fn new(
        places: &'a Places,
        who: Person,
        kind: &'a Type,
        shown: Vec<Value>,
        hidden: Vec<Value>,
    ) -> Self {
        Self { places, who, kind, shown, hidden, asked: Mutex::default() }
    }

    /// The queries of all lists since the last time.
    pub fn take_asked(&mut self) -> Vec<String> {
        std::mem::take(self.asked.get_mut().unwrap())
    }

    async fn list(&self, query: &str) -> Value {
        let path = format!("{}?{query}", self.kind.path());
        self.asked.lock().unwrap().push(query.to_owned());
        let (status, body) = self.places.get(self.who, &path).await;
        assert_eq!(status, 200, "{:?} {path}: {body}", self.who);
        body
    }

    /// Nothing that any list says differs from what it said if there were nothing hidden.
    pub async fn check(&self) {
        self.check_pages().await;
        if self.hidden.is_empty() {
            return;
        }
        let first = &self.hidden[0];
        self.check_filters(first).await;
        // All of what follows looks for a place among others.
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

    /// A page that begins at something hidden is one that begins at nothing.
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

    /// Asking for values of something hidden finds what is shown and has them.
    async fn check_filters(&self, hidden: &Value) {
        let filters = &self.kind.schema["collectionFilters"];
        for field in FILTERED {
            let value = self.text(hidden, field);
            if value.is_empty() {
                continue;
            }
            for modifier in filters[field]["modifiers"].as_array().into_iter().flatten() {
                let modifier = modifier.as_str().unwrap();
                // Where nothing is shown, the others find as little as one.
                if self.shown.is_empty() && modifier != "eq" {
                    continue;
                }
                let query = format!("{field}_{modifier}={}", encode(&value));
                let page = self.list(&query).await;
                let wanted = matches!(modifier, "eq" | "in");
                let fits = |item: &&Value| (self.text(item, field) == value) == wanted;
                let expected = ids(self.shown.iter().filter(fits));
                let about = format!("{:?} {} {query}", self.who, self.kind.id);
                assert_eq!(ids(page["data"].as_array().unwrap()), expected, "{about}");
                assert_eq!(page["pagination"]["total"], expected.len(), "{about}");
            }
        }
    }

    /// As filters compare it.
    fn text(&self, item: &Value, field: &str) -> String {
        let default = &self.kind.schema["resourceFields"][field]["default"];
        match if item[field].is_null() { default } else { &item[field] } {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}
