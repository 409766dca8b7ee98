//! Lists with an identity: sets of scalars, and maps keyed by some fields of their items.

use std::collections::HashSet;

use api_meta::status::Cause;
use serde_json::{Map, Value};

use crate::schema::{ListType, Schema, SchemaNode};

/// The key of an item of a map-type list: its key fields, with defaults. `None` when the item is
/// not an object.
pub(crate) fn item_key(schema: &Schema, list: &SchemaNode, item: &Value) -> Option<Value> {
    let fields = item.as_object()?;
    let rules = list.rules.as_ref()?;
    let mut key = Map::new();
    for name in &rules.list_keys {
        let default = || {
            let property = schema.node(list.items?).property(name)?;
            schema.node(property).default.as_deref()
        };
        if let Some(value) = fields.get(&**name).or_else(default) {
            key.insert(name.to_string(), value.clone());
        }
    }
    Some(Value::Object(key))
}

/// One cause for each item that repeats an earlier one.
pub(crate) fn duplicates(
    schema: &Schema,
    list: &SchemaNode,
    items: &[Value],
    path: &str,
    out: &mut Vec<Cause>,
) {
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = match list.list_type {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map => match item_key(schema, list, item) {
                // Items without any key are reported separately.
                Some(key) if key.as_object().is_some_and(|key| !key.is_empty()) => key,
                _ => continue,
            },
        };
        // Serialized maps have sorted keys, so equal values have equal texts.
        if !seen.insert(key.to_string()) {
            out.push(Cause::duplicate(format!("{path}[{index}]"), &key));
        }
    }
}
