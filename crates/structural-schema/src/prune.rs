//! Unknown fields: found, and removed.

use serde_json::Value;

use crate::metadata;
use crate::schema::{Additional, Id, Node, Schema, VALUE_DEPTH_MAX, join};

/// What becomes of one field of an object.
enum Field {
    Keep,
    /// Looked into with this schema; `None` knows no fields at all.
    Visit(Option<Id>),
    Metadata,
    Unknown,
}

fn classify(node: Option<&Node>, whole_object: bool, key: &str) -> Field {
    if whole_object {
        match key {
            "apiVersion" | "kind" => return Field::Keep,
            "metadata" => return Field::Metadata,
            _ => {}
        }
    }
    let Some(node) = node else {
        return Field::Unknown;
    };
    match (node.property(key), node.additional) {
        (Some(id), _) | (None, Additional::Schema(id)) => Field::Visit(Some(id)),
        (None, _) if node.preserve_unknown => Field::Keep,
        (None, Additional::Any) => Field::Visit(None),
        (None, Additional::None) => Field::Unknown,
    }
}

impl Schema {
    /// Removes the fields that the schema does not declare. `apiVersion`, `kind` and known metadata
    /// stay in whole objects. Idempotent.
    pub fn prune(&self, value: &mut Value) {
        self.prune_at(Some(self.root), self.resource, value, 0);
    }

    /// Paths of the fields that [`Schema::prune`] would remove: `spec.x`, `spec.list[0].y`. Sorted
    /// as the object is.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find_unknown(Some(self.root), self.resource, value, "", &mut found);
        found
    }

    /// A field's value stands alone: nothing is known at its root but what the schema declares.
    pub(crate) fn unknown_below(&self, id: Id, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find_unknown(Some(id), false, value, "", &mut found);
        found
    }

    fn prune_at(&self, id: Option<Id>, resource: bool, value: &mut Value, depth: usize) {
        if depth > VALUE_DEPTH_MAX {
            return;
        }
        let node = id.map(|id| self.node_for(id, value));
        let whole_object = resource || node.is_some_and(|node| node.embedded);
        match value {
            Value::Object(fields) => {
                fields.retain(|key, child| match classify(node, whole_object, key) {
                    Field::Keep => true,
                    Field::Unknown => false,
                    Field::Metadata => {
                        metadata::prune(child);
                        true
                    }
                    Field::Visit(id) => {
                        self.prune_at(id, false, child, depth + 1);
                        true
                    }
                });
            }
            Value::Array(items) => {
                if keeps_items(node) {
                    return;
                }
                let id = node.and_then(|node| node.items);
                for item in items {
                    self.prune_at(id, false, item, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn find_unknown(
        &self,
        id: Option<Id>,
        resource: bool,
        value: &Value,
        path: &str,
        out: &mut Vec<String>,
    ) {
        let node = id.map(|id| self.node_for(id, value));
        let whole_object = resource || node.is_some_and(|node| node.embedded);
        match value {
            Value::Object(fields) => {
                for (key, child) in fields {
                    match classify(node, whole_object, key) {
                        Field::Keep => {}
                        Field::Unknown => out.push(join(path, key)),
                        Field::Metadata => metadata::unknown(child, &join(path, key), out),
                        Field::Visit(id) if child.is_object() || child.is_array() => {
                            self.find_unknown(id, false, child, &join(path, key), out);
                        }
                        Field::Visit(_) => {}
                    }
                }
            }
            Value::Array(items) => {
                if keeps_items(node) {
                    return;
                }
                let id = node.and_then(|node| node.items);
                for (index, item) in items.iter().enumerate() {
                    if item.is_object() || item.is_array() {
                        self.find_unknown(id, false, item, &format!("{path}[{index}]"), out);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Lists under "preserve unknown" without an item schema stay as they are.
fn keeps_items(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.preserve_unknown && node.items.is_none())
}
