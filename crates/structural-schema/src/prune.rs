//! Finds and removes unknown fields.

use serde_json::Value;

use crate::metadata;
use crate::schema::{Additional, NodeId, Schema, SchemaNode, VALUE_DEPTH_MAX, join};

/// The treatment of one field of an object.
enum FieldAction {
    Keep,
    /// Descend with this schema; `None` is a schema without fields.
    Visit(Option<NodeId>),
    Metadata,
    Unknown,
}

fn classify(node: Option<&SchemaNode>, whole_object: bool, key: &str) -> FieldAction {
    if whole_object {
        match key {
            "apiVersion" | "kind" => return FieldAction::Keep,
            "metadata" => return FieldAction::Metadata,
            _ => {}
        }
    }
    let Some(node) = node else {
        return FieldAction::Unknown;
    };
    match (node.property(key), node.additional) {
        (Some(id), _) | (None, Additional::Schema(id)) => FieldAction::Visit(Some(id)),
        (None, _) if node.preserve_unknown => FieldAction::Keep,
        (None, Additional::Any) => FieldAction::Visit(None),
        (None, Additional::None) => FieldAction::Unknown,
    }
}

impl Schema {
    /// Removes the fields that the schema does not declare. Whole objects retain `apiVersion`,
    /// `kind` and known metadata. Idempotent.
    pub fn prune(&self, value: &mut Value) {
        self.prune_at(Some(self.root), self.resource, value, 0);
    }

    /// Paths of the fields that [`Schema::prune`] would remove: `spec.x`, `spec.list[0].y`. In the
    /// order of the object.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find_unknown(Some(self.root), self.resource, value, "", &mut found);
        found
    }

    /// Like [`Schema::unknown_fields`], for the value of one field: only fields that the schema
    /// declares are known at its root.
    pub(crate) fn unknown_below(&self, id: NodeId, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find_unknown(Some(id), false, value, "", &mut found);
        found
    }

    fn prune_at(&self, id: Option<NodeId>, resource: bool, value: &mut Value, depth: usize) {
        if depth > VALUE_DEPTH_MAX {
            return;
        }
        let node = id.map(|id| self.node_for(id, value));
        let whole_object = resource || node.is_some_and(|node| node.embedded);
        match value {
            Value::Object(fields) => {
                fields.retain(|key, child| match classify(node, whole_object, key) {
                    FieldAction::Keep => true,
                    FieldAction::Unknown => false,
                    FieldAction::Metadata => {
                        metadata::prune(child);
                        true
                    }
                    FieldAction::Visit(id) => {
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
        id: Option<NodeId>,
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
                        FieldAction::Keep => {}
                        FieldAction::Unknown => out.push(join(path, key)),
                        FieldAction::Metadata => {
                            metadata::unknown_fields(child, &join(path, key), out)
                        }
                        FieldAction::Visit(id) if child.is_object() || child.is_array() => {
                            self.find_unknown(id, false, child, &join(path, key), out);
                        }
                        FieldAction::Visit(_) => {}
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

/// Whether items stay as they are: in lists below "preserve unknown" without an item schema.
fn keeps_items(node: Option<&SchemaNode>) -> bool {
    node.is_some_and(|node| node.preserve_unknown && node.items.is_none())
}
