//! From tables to the definition of the kind that stores their objects.
//!
//! Fields have their types; nested types are open objects. The REST view validates their contents;
//! what is written through the Kubernetes API is stored whole, as clients of this API expect.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

use super::{Row, RowLocation, Stored, TypeTable};
use crate::{GROUP, VERSION, types};

/// The definition of the kind in which `tables` store their objects; all must name the same one.
///
/// Defaults are not part of it: see [`crate::schema::structural`]. `None` when there is no such
/// kind.
pub fn crd(tables: &[TypeTable]) -> Option<CustomResourceDefinition> {
    let first = tables.first()?;
    let Stored::Kind { kind, plural } = first.stored else { return None };
    let mut columns = vec![json!({
        "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
    })];
    let named = first.fields.iter().find(|row| row.name == "name");
    if let Some(RowLocation::Path(path)) = named.map(|row| &row.location)
        && first.has_display_name()
    {
        let column =
            json!({"name": "Display Name", "type": "string", "jsonPath": format!(".{path}")});
        columns.insert(0, column);
    }
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema(tables)},
    });
    if has_status(tables) {
        version["subresources"] = json!({"status": {}});
    }
    let scope = if is_namespaced(first) { "Namespaced" } else { "Cluster" };
    let definition = json!({
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "scope": scope,
            "versions": [version],
        },
    });
    Some(serde_json::from_value(definition).expect("the fields are those of a definition"))
}

/// Whether the stored objects have namespaces.
pub fn is_namespaced(table: &TypeTable) -> bool {
    table.namespaced || table.namespace.is_some() || matches!(table.stored, Stored::Secret { .. })
}

fn has_status(tables: &[TypeTable]) -> bool {
    let in_status = |row: &Row| match &row.location {
        RowLocation::Path(path) => path == "status" || path.starts_with("status."),
        _ => false,
    };
    tables.iter().any(|table| table.is_unimplemented || table.fields.iter().any(in_status))
}

/// The structural schema of the objects that `tables` describe.
pub fn schema(tables: &[TypeTable]) -> Value {
    let mut root = object(Map::new());
    for row in tables.iter().flat_map(|table| &table.fields) {
        if let RowLocation::Path(path) = &row.location
            && !path.starts_with("metadata.")
        {
            put(&mut root, path, of_row(row));
        }
    }
    if has_status(tables) {
        let conditions = json!({"type": "array", "nullable": true, "items": open()});
        put(&mut root, "status.conditions", conditions);
    }
    root
}

/// Adds to the schema of a struct what the tables define beyond it. What the struct defines stays,
/// except that nested types, which it may define in part, are open.
pub fn complete(kind: &str, structural: Value) -> Value {
    let tables = types::tables_of_kind(kind);
    if tables.is_empty() {
        return structural;
    }
    let mut schema = schema(&tables);
    lay_over(&mut schema, structural);
    schema
}

fn lay_over(base: &mut Value, over: Value) {
    let Value::Object(mut over) = over else { return };
    let is_open = base["x-kubernetes-preserve-unknown-fields"] == true;
    if let Some(Value::Object(properties)) = over.remove("properties") {
        for (name, property) in properties {
            match base["properties"].get_mut(&name) {
                Some(known) => lay_over(known, property),
                None => base["properties"][name] = property,
            }
        }
    }
    for (key, value) in over {
        // What lists and maps contain is laid over like the object itself.
        match base.get_mut(&key) {
            Some(known) if known.is_object() && value.is_object() => lay_over(known, value),
            _ => base[key] = value,
        }
    }
    if is_open {
        base["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
}

fn object(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties})
}

fn open() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// At most two levels are described; a deeper path makes its second level an open object.
fn put(root: &mut Value, path: &str, schema: Value) {
    let mut keys = path.split('.');
    let (Some(first), second, third) = (keys.next(), keys.next(), keys.next()) else { return };
    let Some(second) = second else {
        root["properties"][first] = schema;
        return;
    };
    let section = &mut root["properties"][first];
    if section.is_null() {
        *section = object(Map::new());
        section["nullable"] = true.into();
    }
    // A section that is a nested type as a whole is open already.
    if section["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let schema = if third.is_some() { nullable(open()) } else { schema };
    section["properties"][second] = schema;
}

fn nullable(mut schema: Value) -> Value {
    schema["nullable"] = true.into();
    schema
}

fn of_row(row: &Row) -> Value {
    let mut schema = nullable(of_type(row.kind));
    // Only the view validates texts with options.
    if row.kind == "enum" {
        // Clients clear a choice with the empty text.
        let options = row.options.iter().copied().chain([""]);
        schema["enum"] = options.map(Value::from).collect();
    }
    if schema["type"] == "integer" {
        for (name, limit) in [("minimum", row.min), ("maximum", row.max)] {
            if let Some(limit) = limit {
                schema[name] = limit.into();
            }
        }
    }
    schema
}

fn of_type(kind: &str) -> Value {
    let inside = |prefix: &str| kind.strip_prefix(prefix)?.strip_suffix(']');
    if let Some(of) = inside("array[") {
        return json!({"type": "array", "items": of_type(of)});
    }
    if let Some(of) = inside("map[") {
        return json!({"type": "object", "additionalProperties": of_type(of)});
    }
    if kind.starts_with("reference[") {
        return json!({"type": "string"});
    }
    match kind {
        "string" | "password" | "dnsLabel" | "dnsLabelRestricted" | "hostname" | "base64"
        | "date" | "enum" => json!({"type": "string"}),
        "int" => json!({"type": "integer"}),
        "float" => json!({"type": "number"}),
        "boolean" => json!({"type": "boolean"}),
        "intOrString" => json!({"x-kubernetes-int-or-string": true}),
        "json" => json!({"x-kubernetes-preserve-unknown-fields": true}),
        _ => open(),
    }
}
