//! From a Rust type to the structural schema of its CRD.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::kind::Kind;
use crate::table::definition;

/// The schema of an object whose fields Drover does not define: stored whole, never pruned.
pub fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// As [`open_object`], for lists of such objects.
pub fn open_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

/// The structural schema of an object of type `T`.
///
/// `apiVersion`, `kind` and `metadata` are left to the API server. Defaults are dropped: a schema
/// default would write every absent field into every object; what must be filled in is filled in at
/// admission. Number formats that only Rust knows are dropped too.
pub fn structural<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("required");
    }
    schema
}

/// The schema of a kind: of its struct, and of the fields that only its table knows.
pub fn complete<K: Kind>() -> JSONSchemaProps {
    let schema = definition::complete(K::KIND, structural::<K>());
    serde_json::from_value(schema).expect("schemars and tables make schemas that are schemas")
}

fn tidy(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    map.remove("default");
    if map.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        map.remove("format");
    }
    if let Some(text) = map.get("description").and_then(Value::as_str) {
        let flat = text.replace('\n', " ");
        map.insert("description".to_owned(), flat.into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(key) {
            tidy(child);
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(tidy);
    }
}
