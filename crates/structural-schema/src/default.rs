//! Defaults, and nulls that mean "absent".

use serde_json::Value;

use crate::schema::{Additional, NodeId, Schema, SchemaNode, VALUE_DEPTH_MAX};

/// The treatment of nulls that are not allowed and that no default replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Removed,
    Kept,
}

impl Schema {
    /// Sets absent fields to their defaults, then removes nulls that the schema does not allow.
    ///
    /// A default inside an absent object applies only when the object itself has a default. A null
    /// that is not allowed counts as absent. Idempotent.
    pub fn default(&self, value: &mut Value) {
        self.default_at(self.root, Nulls::Removed, self.resource, value, 0);
    }

    /// Like [`Schema::default`], but retains nulls that no default replaces, so that validation
    /// refuses them.
    pub fn default_keeping_nulls(&self, value: &mut Value) {
        self.default_at(self.root, Nulls::Kept, self.resource, value, 0);
    }

    fn default_at(
        &self,
        id: NodeId,
        nulls: Nulls,
        resource: bool,
        value: &mut Value,
        depth: usize,
    ) {
        if depth > VALUE_DEPTH_MAX {
            return;
        }
        let node = self.node(id);
        match value {
            Value::Object(fields) => {
                let whole_object = resource || node.embedded;
                for (name, id) in &node.properties {
                    let child = self.node(*id);
                    let Some(default) = &child.default else {
                        continue;
                    };
                    let absent = fields.get(&**name).is_none_or(|value| child.rejects_null(value));
                    if absent && !(whole_object && is_type_or_metadata(name)) {
                        fields.insert(name.to_string(), (**default).clone());
                    }
                }
                fields.retain(|key, value| {
                    if whole_object && is_type_or_metadata(key) {
                        return true;
                    }
                    let child = match (node.property(key), node.additional) {
                        (Some(id), _) | (None, Additional::Schema(id)) => id,
                        _ => return true,
                    };
                    if !self.fill(child, value) {
                        return nulls == Nulls::Kept;
                    }
                    self.default_at(child, nulls, false, value, depth + 1);
                    true
                });
            }
            Value::Array(items) => {
                let Some(child) = node.items else {
                    return;
                };
                for item in items {
                    // A null in a list cannot be removed without moving the items after it;
                    // validation refuses it.
                    self.fill(child, item);
                    self.default_at(child, nulls, false, item, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Replaces a null that is not allowed by the default. Returns false when there is no default.
    fn fill(&self, id: NodeId, value: &mut Value) -> bool {
        let node: &SchemaNode = self.node(id);
        if !node.rejects_null(value) {
            return true;
        }
        match &node.default {
            Some(default) => {
                *value = (**default).clone();
                true
            }
            None => false,
        }
    }
}

fn is_type_or_metadata(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}
