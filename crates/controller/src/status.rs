//! How controllers write status: whole fields they own, and conditions through [`OwnedCondition`].
//!
//! A write reads the object, changes what is owned, and sends only the difference, bound to the
//! version that was read; when somebody else was faster it starts over. So writers of different
//! conditions of one object never undo each other.

use http::Request;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use kube::{Client, Resource};
use serde_json::{Map, Value, json};

use crate::error::{Attempt, ReconcileError, is_code};

/// Tries to write before giving up on a busy object.
const WRITE_TRIES_MAX: usize = 10;

/// The right to write one condition type of one kind.
///
/// Invariant: each (kind, type) is declared once, as a private constant of the one controller that
/// writes it; `cargo xtask tidy` fails on a second declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedCondition {
    kind: &'static str,
    condition: &'static str,
}

impl OwnedCondition {
    pub const fn of(kind: &'static str, condition: &'static str) -> Self {
        Self { kind, condition }
    }
    pub fn condition(&self) -> &'static str {
        self.condition
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionState {
    pub truth: Truth,
    /// One CamelCase word, or empty.
    pub reason: String,
    pub message: String,
}

impl ConditionState {
    pub fn yes() -> Self {
        Self { truth: Truth::True, reason: String::new(), message: String::new() }
    }
    pub fn no(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::False, reason: reason.to_owned(), message: message.into() }
    }
    pub fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::Unknown, reason: reason.to_owned(), message: message.into() }
    }
}

/// The object to write to.
#[derive(Clone, Debug)]
pub struct Target {
    kind: String,
    path: String,
}

impl Target {
    /// An object of kind `K`; `namespace` is empty for cluster-scoped kinds.
    pub fn of<K: Resource<DynamicType = ()>>(namespace: &str, name: &str) -> Self {
        let namespace = (!namespace.is_empty()).then_some(namespace);
        let path = format!("{}/{name}", K::url_path(&(), namespace));
        Self { kind: K::kind(&()).into_owned(), path }
    }
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// A change of status, to be written at once.
#[derive(Clone, Debug, Default)]
pub struct StatusPatch {
    /// What each is to say; `None`: it is not to be there.
    conditions: Vec<(OwnedCondition, Option<ConditionState>)>,
    fields: Map<String, Value>,
}

impl StatusPatch {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn condition(mut self, owned: OwnedCondition, state: ConditionState) -> Self {
        self.conditions.push((owned, Some(state)));
        self
    }
    /// Removes the condition, where it is.
    pub fn without_condition(mut self, owned: OwnedCondition) -> Self {
        self.conditions.push((owned, None));
        self
    }
    /// Makes `status.<field>` exactly `value`; null removes it. Not for `conditions`.
    pub fn field(mut self, field: &str, value: impl Into<Value>) -> Self {
        assert!(field != "conditions", "conditions are written through OwnedCondition");
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    /// Writes the change. Answers whether anything differed; writes nothing when nothing does.
    ///
    /// # Errors
    /// The object is gone, the API refused, or others kept being faster.
    pub async fn write(&self, client: &Client, target: &Target) -> Result<bool, ReconcileError> {
        self.write_if(client, target, |_| true).await
    }

    /// As [`Self::write`], when `allowed` agrees with the object as it is at the moment of writing.
    /// Answers false when it does not.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_if(
        &self,
        client: &Client,
        target: &Target,
        allowed: impl Fn(&Value) -> bool + Send,
    ) -> Result<bool, ReconcileError> {
        let attempt = || format!("write status of {}", target.path);
        for (owned, _) in &self.conditions {
            assert_eq!(owned.kind, target.kind, "a condition is written on its own kind");
        }
        for _ in 0..WRITE_TRIES_MAX {
            let object = get(client, &target.path).await.attempt(attempt)?;
            if !allowed(&object) {
                return Ok(false);
            }
            let Some(status) = self.difference(&object["status"], &now()) else { return Ok(false) };
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
            match merge_patch(client, &format!("{}/status", target.path), &patch).await {
                Ok(_) => return Ok(true),
                Err(error) if is_code(&error, 409) => {}
                Err(error) => return Err(error).attempt(attempt),
            }
        }
        Err(ReconcileError::other(attempt(), "others kept changing the object"))
    }

    /// The merge patch that makes `current` what is wanted; `None` when it is so already. Pure.
    pub fn difference(&self, current: &Value, now: &str) -> Option<Value> {
        let empty = Value::Object(Map::new());
        let current = if current.is_object() { current } else { &empty };
        let mut wanted = current.clone();
        let map = wanted.as_object_mut().expect("it is an object");
        for (field, value) in &self.fields {
            if value.is_null() {
                map.remove(field);
            } else {
                map.insert(field.clone(), value.clone());
            }
        }
        if !self.conditions.is_empty() {
            let mut list = current["conditions"].as_array().cloned().unwrap_or_default();
            for (owned, state) in &self.conditions {
                match state {
                    Some(state) => set_condition(&mut list, owned.condition, state, now),
                    None => list.retain(|entry| entry["type"] != owned.condition),
                }
            }
            if !list.is_empty() || current["conditions"].is_array() {
                map.insert("conditions".to_owned(), Value::Array(list));
            }
        }
        merge_difference(current, &wanted)
    }
}

/// Sets one entry of a condition list and leaves all others as they are.
fn set_condition(list: &mut Vec<Value>, kind: &str, state: &ConditionState, now: &str) {
    let status = state.truth.word();
    let found = list.iter_mut().find(|entry| entry["type"] == kind);
    let mut entry = json!({"type": kind, "status": status, "lastUpdateTime": now});
    for (field, text) in [("reason", &state.reason), ("message", &state.message)] {
        if !text.is_empty() {
            entry[field] = text.as_str().into();
        }
    }
    let Some(old) = found else {
        entry["lastTransitionTime"] = now.into();
        list.push(entry);
        return;
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let same_status = old["status"] == status;
    let same_text = text(&old["reason"]) == state.reason && text(&old["message"]) == state.message;
    if same_status && same_text {
        return;
    }
    let since = if same_status { text(&old["lastTransitionTime"]) } else { now.to_owned() };
    entry["lastTransitionTime"] = since.into();
    *old = entry;
}

/// The JSON merge patch from `old` to `new`; `None` when they are equal.
pub fn merge_difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            None => drop(patch.insert(key.clone(), value.clone())),
            Some(before) => {
                if let Some(change) = merge_difference(before, value) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    Some(Value::Object(patch))
}

/// The time as conditions carry it.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

pub(crate) async fn merge_patch(
    client: &Client,
    path: &str,
    patch: &Value,
) -> Result<Value, kube::Error> {
    let body = serde_json::to_vec(patch).map_err(kube::Error::SerdeError)?;
    let request = Request::patch(path)
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}
