//! How controllers write status: whole fields that they own, and conditions through
//! [`OwnedCondition`].
//!
//! A write reads the object, changes what the controller owns, and sends only the difference, with
//! the resource version that was read. On a conflict it starts over. So writers of different
//! conditions of one object never undo each other.

use http::Request;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use kube::{Client, Resource};
use serde_json::{Map, Value, json};

use crate::error::{Attempt, ReconcileError, is_code};

/// Attempts to write an object that other writers keep changing.
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
    /// Declares the ownership of condition type `condition` of `kind`.
    pub const fn of(kind: &'static str, condition: &'static str) -> Self {
        Self { kind, condition }
    }
    /// The condition type, such as `Ready`.
    pub fn condition(&self) -> &'static str {
        self.condition
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    /// The status as conditions carry it: `True`, `False` or `Unknown`.
    pub fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The desired status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionState {
    pub truth: Truth,
    /// One CamelCase word, or empty.
    pub reason: String,
    /// For users; may be empty.
    pub message: String,
}

impl ConditionState {
    /// `True`, without reason and message.
    pub fn yes() -> Self {
        Self { truth: Truth::True, reason: String::new(), message: String::new() }
    }
    /// `False`, with a reason (one CamelCase word) and a message for users.
    pub fn no(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::False, reason: reason.to_owned(), message: message.into() }
    }
    /// `Unknown`, with a reason (one CamelCase word) and a message for users.
    pub fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self { truth: Truth::Unknown, reason: reason.to_owned(), message: message.into() }
    }
}

/// The object that a status or a finalizer is written to: its kind and its path in the API.
#[derive(Clone, Debug)]
pub struct StatusTarget {
    kind: String,
    path: String,
}

impl StatusTarget {
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
    /// The desired state of each condition; `None` removes it.
    conditions: Vec<(OwnedCondition, Option<ConditionState>)>,
    fields: Map<String, Value>,
}

impl StatusPatch {
    /// A patch that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the condition. Its transition time changes only when its status does.
    pub fn condition(mut self, owned: OwnedCondition, state: ConditionState) -> Self {
        self.conditions.push((owned, Some(state)));
        self
    }
    /// Removes the condition if the object has it.
    pub fn without_condition(mut self, owned: OwnedCondition) -> Self {
        self.conditions.push((owned, None));
        self
    }
    /// Sets `status.<field>` to exactly `value`; null removes it. Panics for `conditions`, which
    /// are written with [`Self::condition`].
    pub fn field(mut self, field: &str, value: impl Into<Value>) -> Self {
        assert!(field != "conditions", "conditions are written through OwnedCondition");
        self.fields.insert(field.to_owned(), value.into());
        self
    }

    /// Writes the change. Returns whether anything differed; sends no write when nothing did.
    /// Panics when a condition was declared for another kind than that of `target`.
    ///
    /// # Errors
    /// The object does not exist, the API refused the request, or other writers changed the object
    /// during each of 10 attempts. Return the error from the reconcile, which is then retried.
    pub async fn write(
        &self,
        client: &Client,
        target: &StatusTarget,
    ) -> Result<bool, ReconcileError> {
        self.write_if(client, target, |_| true).await
    }

    /// Like [`Self::write`], but writes only if `allowed` returns true for the object in the
    /// resource version that the write is bound to. Returns false otherwise.
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub async fn write_if(
        &self,
        client: &Client,
        target: &StatusTarget,
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
        Err(ReconcileError::other(
            attempt(),
            "other writers changed the object during every attempt",
        ))
    }

    /// The merge patch that turns the status `current` into the desired one; `None` when they
    /// agree. `now` is the time for changed conditions, see [`now`]. Pure.
    pub fn difference(&self, current: &Value, now: &str) -> Option<Value> {
        let empty = Value::Object(Map::new());
        let current = if current.is_object() { current } else { &empty };
        let mut desired = current.clone();
        let map = desired.as_object_mut().expect("it is an object");
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
        merge_difference(current, &desired)
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

/// The current time as conditions carry it: RFC 3339, UTC, in seconds.
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
