//! The entries of `metadata.managedFields`, decoded and encoded.

use std::collections::BTreeMap;

use api_meta::go_text::quoted;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::encoding::DecodeError;
use crate::go_text;
use crate::managers::{Managers, VersionedSet};
use crate::set::FieldSet;

/// The decoded `managedFields` of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    pub managers: Managers,
    /// When each manager last changed the object. Has no time for a manager that only came to own
    /// existing values.
    pub times: BTreeMap<String, Timestamp>,
}

/// Why entries cannot be decoded. On an update a server then continues without them.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    #[error("managedFields is not a list of entries")]
    NotAList,
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    #[error("invalid fieldsType {kind} in managed fields entry {at}")]
    FieldsType { kind: Value, at: usize },
    #[error("time of managed fields entry {at} is not valid: {source}")]
    Time { at: usize, source: jiff::Error },
    #[error("fields of managed fields entry {at} are not valid: {source}")]
    Fields { at: usize, source: DecodeError },
}

impl ManagedFields {
    /// Decodes `metadata.managedFields`. An absent list is empty.
    ///
    /// # Errors
    /// Describes the first entry that is not valid. The caller ignores the list, or refuses an
    /// apply.
    pub fn decode(entries: &Value) -> Result<Self, EntryError> {
        let mut out = Self::default();
        if entries.is_null() {
            return Ok(out);
        }
        let entries = entries.as_array().ok_or(EntryError::NotAList)?;
        for (at, entry) in entries.iter().enumerate() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let operation = text("operation");
            if !matches!(operation, "Apply" | "Update") {
                return Err(EntryError::Operation);
            }
            if text("apiVersion").is_empty() {
                return Err(EntryError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(EntryError::MissingFieldsType(at)),
                kind => return Err(EntryError::FieldsType { kind: kind.into(), at }),
            }
            let (manager, version) = (text("manager"), text("apiVersion"));
            let id = identity(manager, operation, version, text("subresource"));
            let set = FieldSet::from_value(&entry["fieldsV1"])
                .map_err(|source| EntryError::Fields { at, source })?;
            if let Some(time) = entry["time"].as_str() {
                let time = time.parse().map_err(|source| EntryError::Time { at, source })?;
                out.times.insert(id.clone(), time);
            }
            let applied = operation == "Apply";
            let owner = VersionedSet { set, api_version: version.to_owned(), applied };
            out.managers.insert(id, owner);
        }
        Ok(out)
    }

    /// The list for `metadata.managedFields`, in kube-apiserver's order; `None` when there are no
    /// managers.
    pub fn encode(&self) -> Option<Value> {
        let mut entries: Vec<(SortKey, Value)> =
            self.managers.iter().map(|(id, owner)| self.entry(id, owner)).collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    fn entry(&self, id: &str, owner: &VersionedSet) -> (SortKey, Value) {
        let identity: Value = serde_json::from_str(id).expect("an identity is a JSON object");
        let text = |name: &str| identity[name].as_str().unwrap_or_default().to_owned();
        let operation = if owner.applied { "Apply" } else { "Update" };
        let mut entry = Map::new();
        let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        set("manager", text("manager").into());
        set("operation", operation.into());
        set("apiVersion", owner.api_version.clone().into());
        let time = self.times.get(id);
        if let Some(time) = time {
            set("time", time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        }
        set("fieldsType", "FieldsV1".into());
        set("fieldsV1", owner.set.to_value());
        if !text("subresource").is_empty() {
            set("subresource", text("subresource").into());
        }
        let seconds = time.map_or(0, |time| time.as_second());
        let key =
            (operation, seconds, text("manager"), owner.api_version.clone(), text("subresource"));
        (key, Value::Object(entry))
    }

    /// Whether the list of a request body resets the entries: one empty entry, or for a built-in
    /// kind an empty list. For a custom resource, an empty list counts as absent.
    pub(super) fn is_reset(entries: &Value, compiled: bool) -> bool {
        match entries.as_array().map(Vec::as_slice) {
            Some([]) => compiled,
            Some([only]) => *only == json!({}),
            _ => false,
        }
    }
}

/// Operation, seconds, manager, version, subresource.
type SortKey = (&'static str, i64, String, String, String);

/// The identity of a manager: a JSON object, so that it sorts as in kube-apiserver. The identity of
/// an applier is the same in every version.
pub(super) fn identity(
    manager: &str,
    operation: &str,
    api_version: &str,
    subresource: &str,
) -> String {
    let api_version = if operation == "Apply" { "" } else { api_version };
    let fields = [
        ("manager", manager),
        ("operation", operation),
        ("apiVersion", api_version),
        ("subresource", subresource),
    ];
    let mut out = String::from("{");
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        if out.len() > 1 {
            out.push(',');
        }
        go_text::json_string(&mut out, name, true);
        out.push(':');
        go_text::json_string(&mut out, value, true);
    }
    out.push('}');
    out
}

/// An identity as conflicts name it: `"kubectl" using apps/v1`.
pub(super) fn display_identity(id: &str) -> String {
    let identity: Value = serde_json::from_str(id).unwrap_or_default();
    let text = |name: &str| identity[name].as_str().unwrap_or_default();
    let mut out = quoted(text("manager"));
    if !text("subresource").is_empty() {
        out.push_str(" with subresource ");
        out.push_str(&quoted(text("subresource")));
    }
    if text("operation") == "Update" {
        out.push_str(" using ");
        out.push_str(text("apiVersion"));
    }
    out
}
