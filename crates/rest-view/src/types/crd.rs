//! Fields from a CRD's schema: what the descriptor does not say is read from `openAPIV3Schema`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldLocation, FieldType, StructType};

/// Nested objects deeper than this become `json`.
const DEPTH_MAX: usize = 16;

/// Fields and embedded types that a schema adds to a descriptor.
#[derive(Default)]
pub(crate) struct Derived {
    pub fields: Vec<Field>,
    pub types: Vec<StructType>,
}

/// Fields for the properties that no field of `descriptor` shows yet.
pub(crate) fn derive(descriptor: &Descriptor, schema: &Value) -> Derived {
    let shown = descriptor.fields.values().filter_map(|field| field.location.as_ref());
    let placed: BTreeSet<Vec<String>> = shown
        .chain(&descriptor.hidden)
        .filter_map(|location| match location {
            // A field of a nested property covers the whole property.
            FieldLocation::Path(path) => Some(path.iter().take(2).cloned().collect()),
            _ => None,
        })
        .collect();
    let mut derived = Derived::default();
    let mut add = |section: Option<&str>, properties: &Value, writable: bool| {
        for (name, property) in properties.as_object().into_iter().flatten() {
            let skipped = ["apiVersion", "kind", "metadata", "spec", "status"];
            if section.is_none() && skipped.contains(&name.as_str()) {
                continue;
            }
            let path: Vec<String> =
                section.into_iter().chain([name.as_str()]).map(str::to_owned).collect();
            if placed.contains(&path) || descriptor.fields.contains_key(name) {
                continue;
            }
            let parent = format!("{}{}", descriptor.id, capitalised(name));
            let mut field = field_of(name, property, &parent, &mut derived.types, 0)
                .location(FieldLocation::Path(path));
            (field.create, field.update) = (writable, writable);
            derived.fields.push(field);
        }
    };
    add(None, &schema["properties"], true);
    add(Some("spec"), &schema["properties"]["spec"]["properties"], true);
    add(Some("status"), &schema["properties"]["status"]["properties"], false);
    derived
}

fn field_of(
    name: &str,
    property: &Value,
    type_name: &str,
    types: &mut Vec<StructType>,
    depth: usize,
) -> Field {
    let kind = type_of(property, type_name, types, depth);
    let mut field = Field::new(name, kind);
    field.default = property.get("default").cloned();
    field.nullable = true;
    if field.kind == FieldType::Enum {
        let options = property["enum"].as_array().into_iter().flatten();
        field.options = options.filter_map(|o| o.as_str().map(str::to_owned)).collect();
    }
    field.description = property["description"].as_str().map(str::to_owned);
    field
}

fn type_of(
    property: &Value,
    type_name: &str,
    types: &mut Vec<StructType>,
    depth: usize,
) -> FieldType {
    if property["x-kubernetes-int-or-string"] == true {
        return FieldType::IntOrString;
    }
    match property["type"].as_str().unwrap_or_default() {
        "string" if property["enum"].is_array() => FieldType::Enum,
        "string" => match property["format"].as_str().unwrap_or_default() {
            "date-time" => FieldType::Date,
            "password" => FieldType::Password,
            "byte" => FieldType::Base64,
            _ => FieldType::String,
        },
        "integer" => FieldType::Int,
        "number" => FieldType::Float,
        "boolean" => FieldType::Boolean,
        "array" if depth < DEPTH_MAX => {
            FieldType::array(type_of(&property["items"], type_name, types, depth + 1))
        }
        "object" if depth < DEPTH_MAX => object_type(property, type_name, types, depth),
        _ => FieldType::Json,
    }
}

fn object_type(
    property: &Value,
    type_name: &str,
    types: &mut Vec<StructType>,
    depth: usize,
) -> FieldType {
    if property["x-kubernetes-preserve-unknown-fields"] == true {
        return FieldType::map(FieldType::Json);
    }
    if let Some(properties) = property["properties"].as_object().filter(|p| !p.is_empty()) {
        let fields = properties
            .iter()
            .map(|(name, nested)| {
                let nested_name = format!("{type_name}{}", capitalised(name));
                field_of(name, nested, &nested_name, types, depth + 1).create_update()
            })
            .collect();
        types.push(StructType::new(type_name, fields));
        return FieldType::of(type_name);
    }
    match &property["additionalProperties"] {
        Value::Object(_) => {
            FieldType::map(type_of(&property["additionalProperties"], type_name, types, depth + 1))
        }
        _ => FieldType::map(FieldType::Json),
    }
}

/// The embedded type `id` of an object schema, and those nested in it.
pub(crate) fn derive_struct(id: &str, schema: &Value) -> Vec<StructType> {
    let mut types = Vec::new();
    object_type(schema, id, &mut types, 0);
    types
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}
