//! A stored object as the server caches it: the bytes exactly as served, and the few facts that
//! lists, watches and selectors need without parsing.

use std::sync::Arc;

use api_meta::labels::Labels;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use storage::{KeyValue, Revision};

/// A field that field selectors may name.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// Its name in selectors.
    pub label: String,
    /// Path from the object's root.
    pub path: Vec<String>,
    /// A second path, read when the first one leads to no value; empty when there is none.
    pub fallback: Vec<String>,
    /// Its text when no path leads to a value: the zero value, which JSON omits.
    pub unset: &'static str,
    /// Offered by this version of the kind; else it is here for the selectors of another version.
    pub offered: bool,
}

/// An object at one revision. Immutable and shared.
#[derive(Debug)]
pub struct Stored {
    /// In the storage.
    pub key: Arc<str>,
    /// Of its last change.
    pub revision: Revision,
    /// JSON in the storage version with `metadata.resourceVersion` in place.
    pub bytes: Bytes,
    pub name: Box<str>,
    /// Empty for cluster-scoped objects.
    pub namespace: Box<str>,
    pub uid: Box<str>,
    /// Whether the object has a time of deletion.
    pub is_terminating: bool,
    /// Offset of the end of the kind in the bytes; 0 when they name none.
    kind_end: usize,
    /// Sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the resource's selectable fields, in its order.
    pub fields: Box<[Box<str>]>,
}

/// A stored value that is not an object. Lists skip it; it can still be deleted.
#[derive(Debug, thiserror::Error)]
#[error("stored value of \"{key}\" is not an object: {source}")]
pub struct Undecodable {
    pub key: Arc<str>,
    source: serde_json::Error,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: &'a RawValue,
}

impl Envelope<'_> {
    /// Offset of the end of the kind in `bytes`, which the envelope borrows from.
    fn kind_end(&self, bytes: &[u8]) -> usize {
        let end = self.kind.map(|kind| kind.get().as_bytes().as_ptr_range().end as usize);
        end.map_or(0, |end| end - bytes.as_ptr() as usize)
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Header {
    name: Box<str>,
    namespace: Box<str>,
    uid: Box<str>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    labels: std::collections::BTreeMap<Box<str>, Box<str>>,
}

impl Stored {
    /// Decodes a value as the storage holds it: without a resource version. `fields` are the
    /// selectable fields of the resource.
    ///
    /// # Errors
    /// The value is not a JSON object with metadata: skip it.
    pub fn decode(value: &KeyValue, fields: &[SelectableField]) -> Result<Self, Undecodable> {
        Self::assemble(value.key.clone(), value.mod_revision, &value.value, fields)
            .map_err(|source| Undecodable { key: value.key.clone(), source })
    }

    fn assemble(
        key: Arc<str>,
        revision: Revision,
        stored: &[u8],
        fields: &[SelectableField],
    ) -> Result<Self, serde_json::Error> {
        let envelope: Envelope<'_> = serde_json::from_slice(stored)?;
        let metadata = envelope.metadata.get();
        let header: Header = serde_json::from_str(metadata)?;
        // The raw value borrows from `stored`, so the distance of the addresses is its offset.
        let brace = metadata.as_ptr() as usize - stored.as_ptr() as usize;
        let fields = if fields.is_empty() {
            Box::default()
        } else {
            let object: Value = serde_json::from_slice(stored)?;
            fields.iter().map(|field| field_value(&object, field)).collect()
        };
        let bytes = splice_version(stored, brace, revision, metadata);
        let kind_end = match envelope.kind_end(stored) {
            end if end > brace => end + bytes.len() - stored.len(),
            end => end,
        };
        Ok(Self {
            key,
            revision,
            bytes,
            kind_end,
            name: header.name,
            namespace: header.namespace,
            uid: header.uid,
            is_terminating: header.deletion_timestamp.is_some(),
            labels: header.labels.into_iter().collect(),
            fields,
        })
    }

    /// The same state at another revision, as a DELETED event shows it.
    pub fn at_revision(&self, revision: Revision) -> Self {
        let mut object = self.value();
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        Self { revision, ..self.with_value(&object) }
    }

    /// The same object in the representation of another version, which does not change what
    /// selectors match.
    pub fn with_value(&self, object: &Value) -> Self {
        let bytes = to_bytes(object);
        let envelope: Option<Envelope<'_>> = serde_json::from_slice(&bytes).ok();
        let kind_end = envelope.map_or(0, |envelope| envelope.kind_end(&bytes));
        Self {
            key: self.key.clone(),
            revision: self.revision,
            bytes,
            kind_end,
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            uid: self.uid.clone(),
            is_terminating: self.is_terminating,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
        }
    }

    /// The bytes without API version and kind, as two consecutive parts: the items of typed lists.
    /// `None` when the bytes are of another version or kind, or not in the order in which objects
    /// are stored.
    pub fn untyped(&self, api_version: &str, kind: &str) -> Option<[&[u8]; 2]> {
        let bytes = &self.bytes[..];
        let version =
            bytes.strip_prefix(b"{\"apiVersion\":\"")?.strip_prefix(api_version.as_bytes())?;
        let start = bytes.len() - version.strip_prefix(b"\"")?.len();
        let (before, rest) = bytes.split_at_checked(self.kind_end)?;
        let before = before.strip_suffix(b"\"")?.strip_suffix(kind.as_bytes())?;
        let before = before.strip_suffix(b",\"kind\":\"")?.get(start..)?;
        // Each part begins with the comma behind the member that is left out, and the whole with
        // none.
        Some(match before {
            [] => [rest.strip_prefix(b",")?, &[]],
            [b',', before @ ..] => [before, rest],
            _ => return None,
        })
    }

    /// The object as a tree. Costs about ten times the bytes: parse late, drop early.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("the bytes were parsed when they were cached")
    }

    /// The JSON of the member `metadata`, as it is in the bytes.
    pub fn metadata_json(&self) -> &str {
        let envelope: Envelope<'_> = serde_json::from_slice(&self.bytes)
            .expect("the bytes were parsed when they were cached");
        envelope.metadata.get()
    }
}

impl Labels for Stored {
    fn label_value(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

/// The text of a field, as selectors compare it.
fn field_value(object: &Value, field: &SelectableField) -> Box<str> {
    let text_at = |path: &Vec<String>| -> Box<str> {
        match path.iter().fold(object, |at, step| &at[step.as_str()]) {
            Value::String(text) => text.as_str().into(),
            Value::Null => Box::default(),
            other => other.to_string().into(),
        }
    };
    let paths = [&field.path, &field.fallback].into_iter().filter(|path| !path.is_empty());
    paths.map(text_at).find(|text| !text.is_empty()).unwrap_or_else(|| field.unset.into())
}

fn splice_version(stored: &[u8], brace: usize, revision: Revision, metadata: &str) -> Bytes {
    let comma = if metadata[1..].trim_start().starts_with('}') { "" } else { "," };
    let member = format!("\"resourceVersion\":\"{revision}\"{comma}");
    let mut bytes = Vec::with_capacity(stored.len() + member.len());
    bytes.extend_from_slice(&stored[..=brace]);
    bytes.extend_from_slice(member.as_bytes());
    bytes.extend_from_slice(&stored[brace + 1..]);
    Bytes::from(bytes)
}

/// The bytes of an object for the storage: without resource version, keys sorted. Removes the
/// resource version from `object` too.
pub fn to_storage(object: &mut Value) -> Bytes {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    to_bytes(object)
}

/// The compact JSON of a tree, keys sorted.
pub fn to_bytes(object: &Value) -> Bytes {
    Bytes::from(serde_json::to_vec(object).expect("a JSON tree serialises"))
}
/// A random (version 4) UUID.
pub fn new_uid() -> String {
    let bits: u128 = rand::random();
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
