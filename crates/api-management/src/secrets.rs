//! Passwords in objects, by the tables.
//!
//! Whoever may read an object reads all of it through the Kubernetes API, whatever the REST view hides.
//! So no object keeps a password: types that have a place for theirs (Secrets) put it there, all others
//! refuse it until they do.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api_meta::status::Cause;
use serde_json::Value;

use crate::table::{Nested, Place};
use crate::types;

const PASSWORD: &str = "password";
/// Told to whoever sends one.
const REFUSAL: &str = "others who may read this object would read it, and this version has no other \
                       place for it yet; leave it out";

/// Name and type of a field.
type Field = (&'static str, &'static str);

/// Of each nested type that has passwords in it, the fields that lead there.
static LEADING: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let own = types::tables().flat_map(|table| table.nested);
    let all: Vec<Nested> = types::shared_types().chain(own).collect();
    let mut leading: BTreeMap<&'static str, Vec<Field>> = BTreeMap::new();
    loop {
        let before = leading.len();
        for nested in &all {
            let leads = |kind| kind == PASSWORD || leading.contains_key(kind);
            let fields = nested.fields.iter().filter(|row| leads(innermost(row.kind)));
            let fields: Vec<Field> = fields.map(|row| (row.name, row.kind)).collect();
            if !fields.is_empty() {
                leading.insert(nested.id, fields);
            }
        }
        if leading.len() == before {
            // Once more would find no further type, nor a field of one.
            return leading;
        }
    }
});

/// A refusal for each password in an object of `kind`. None says its value.
pub fn refused(kind: &str, object: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    for table in types::tables_of_kind(kind) {
        for row in &table.fields {
            let Place::Path(path) = &row.place else { continue };
            let value = path.split('.').try_fold(object, |value, name| value.get(name));
            if let Some(value) = value {
                find(row.kind, value, path, &mut found);
            }
        }
    }
    found.into_iter().map(|path| Cause::forbidden(&path, REFUSAL)).collect()
}

/// Adds the path of each password that `value`, of the type `kind`, has at or below `path`.
fn find(kind: &str, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if kind == PASSWORD && !text.is_empty() => found.push(path.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(inside(kind), item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Object(entries) if kind.starts_with("map[") => {
            for (key, entry) in entries {
                find(inside(kind), entry, &format!("{path}[{key}]"), found);
            }
        }
        Value::Object(fields) => {
            for (name, kind) in LEADING.get(kind).into_iter().flatten() {
                if let Some(value) = fields.get(*name) {
                    find(kind, value, &format!("{path}.{name}"), found);
                }
            }
        }
        _ => {}
    }
}

/// The type of the items of an array or map.
fn inside(kind: &str) -> &str {
    let items = kind.strip_prefix("array[").or_else(|| kind.strip_prefix("map["));
    items.and_then(|items| items.strip_suffix(']')).unwrap_or(kind)
}

fn innermost(kind: &'static str) -> &'static str {
    let within = inside(kind);
    if within == kind { kind } else { innermost(within) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(kind: &str, object: &Value) -> Vec<String> {
        refused(kind, object).into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn passwords_are_found_at_the_top_and_however_deep() {
        let catalog = json!({"spec": {"url": "https://a", "password": "x"}});
        assert_eq!(places("Catalog", &catalog), ["spec.password"]);
        let cluster = json!({"spec": {"rancherKubernetesEngineConfig": {
            "nodes": [{"address": "a"}, {"address": "b", "sshKey": "x"}],
            "privateRegistries": [{"url": "u", "password": "x"}],
            "bastionHost": {"sshKey": ""},
        }}});
        let config = "spec.rancherKubernetesEngineConfig";
        let mut found = places("Cluster", &cluster);
        found.sort();
        let expected = [
            format!("{config}.nodes[1].sshKey"),
            format!("{config}.privateRegistries[0].password"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_password_is_left_alone_and_no_value_is_told() {
        assert!(
            places("Catalog", &json!({"spec": {"url": "https://a", "password": null}})).is_empty()
        );
        assert!(places("Cluster", &json!({"spec": {"description": "sshKey"}})).is_empty());
        let causes = refused("Catalog", &json!({"spec": {"password": "hunter2"}}));
        assert!(!causes[0].message.contains("hunter2"), "{causes:?}");
    }
}
