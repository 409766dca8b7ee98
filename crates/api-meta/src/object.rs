//! The metadata of a dynamic object, read and modified in place.

use serde_json::{Map, Value};

/// Group and version of an `apiVersion`. The group of the core API is empty.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Accessors for the JSON of an object. Reading an absent field, or one of the wrong type, returns
/// the empty value.
pub trait ObjectExt {
    /// `apiVersion`.
    fn api_version(&self) -> &str;
    /// `kind`.
    fn kind(&self) -> &str;
    /// `metadata.name`.
    fn name(&self) -> &str;
    /// `metadata.namespace`; empty for cluster-scoped objects.
    fn namespace(&self) -> &str;
    /// `metadata.uid`.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// `metadata.generation`; 0 when absent.
    fn generation(&self) -> i64;
    /// Whether the object has a deletion timestamp.
    fn is_terminating(&self) -> bool;
    /// `metadata.finalizers`, in order.
    fn finalizers(&self) -> Vec<&str>;
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// `metadata.<field>` as text; empty when absent.
    fn meta_str(&self, field: &str) -> &str;
    /// The metadata map, created when absent.
    fn meta_mut(&mut self) -> &mut Map<String, Value>;
    /// Sets `metadata.<field>`.
    fn set_meta(&mut self, field: &str, value: impl Into<Value>);
    /// Removes `metadata.<field>` and returns it.
    fn remove_meta(&mut self, field: &str) -> Option<Value>;
}

impl ObjectExt for Value {
    fn api_version(&self) -> &str {
        self["apiVersion"].as_str().unwrap_or_default()
    }
    fn kind(&self) -> &str {
        self["kind"].as_str().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.meta_str("name")
    }
    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    fn generation(&self) -> i64 {
        self["metadata"]["generation"].as_i64().unwrap_or_default()
    }
    fn is_terminating(&self) -> bool {
        self["metadata"]["deletionTimestamp"].is_string()
    }
    fn finalizers(&self) -> Vec<&str> {
        let list = self["metadata"]["finalizers"].as_array();
        list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self["metadata"]["labels"].get(key)?.as_str()
    }
    fn annotation(&self, key: &str) -> Option<&str> {
        self["metadata"]["annotations"].get(key)?.as_str()
    }
    fn meta_str(&self, field: &str) -> &str {
        self["metadata"][field].as_str().unwrap_or_default()
    }
    fn meta_mut(&mut self) -> &mut Map<String, Value> {
        if !self.is_object() {
            *self = Value::Object(Map::new());
        }
        let object = self.as_object_mut().expect("made an object above");
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        metadata.as_object_mut().expect("made an object above")
    }
    fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        self.meta_mut().insert(field.to_owned(), value.into());
    }
    fn remove_meta(&mut self, field: &str) -> Option<Value> {
        self.meta_mut().remove(field)
    }
}
