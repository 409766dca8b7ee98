//! Definitions of types, as OpenAPI v3.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIResourceList, DeleteOptions, ListMeta, ObjectMeta, Status,
};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use structured_merge::{OpenApiError, Schema};

use super::builtin::{builtin, generator};
use super::marks;
use crate::resource::Resource;
use crate::strategy::PublishedSchema;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const API_VERSION_DESCRIPTION: &str = "APIVersion defines the versioned schema of this \
    representation of an object. Servers should convert recognized schemas to the latest internal \
    value, and may reject unrecognized values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND_DESCRIPTION: &str = "Kind is a string value representing the REST resource this object \
    represents. Servers may infer this from the endpoint the client submits requests to. Cannot be \
    updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md\
    #types-kinds";
const LIST_METADATA_DESCRIPTION: &str = "Standard list metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md\
    #types-kinds";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const METADATA_DESCRIPTION: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Name of a definition in `io.k8s.apimachinery.pkg.apis.meta.v1`.
pub fn meta(kind: &str) -> String {
    format!("{META}.{kind}")
}

/// A `$ref` to the definition of this name.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A member of `x-kubernetes-group-version-kind`.
pub fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// Name of the definition of a resource's kind.
pub fn definition_name(resource: &Resource) -> String {
    match builtin(&resource.group, &resource.version, &resource.kind) {
        Some(builtin) if !resource.custom => builtin.definition(),
        _ => own_name(&resource.group, &resource.version, &resource.kind),
    }
}

/// `ex.org`, `v1`, `Foo` → `org.ex.v1.Foo`.
fn own_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').filter(|part| !part.is_empty()).rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// All definitions that the documents of these resources refer to, by name.
pub fn components<'a>(resources: impl Iterator<Item = &'a Resource>) -> Map<String, Value> {
    let mut generator = generator();
    collect::<ObjectMeta>(&mut generator);
    collect::<ListMeta>(&mut generator);
    collect::<DeleteOptions>(&mut generator);
    collect::<Status>(&mut generator);
    collect::<APIResourceList>(&mut generator);
    let mut own = Map::new();
    let mut kinds = BTreeMap::new();
    for resource in resources {
        let name = definition_name(resource);
        let kind = gvk(&resource.group, &resource.version, &resource.kind);
        if resource.verbs.contains(&"list") {
            own.insert(format!("{name}List"), list(resource, &name));
        }
        let builtin = builtin(&resource.group, &resource.version, &resource.kind);
        match builtin.filter(|_| !resource.custom) {
            Some(builtin) => builtin.collect(&mut generator),
            None => {
                own.insert(name.clone(), own_definition(resource));
            }
        }
        kinds.insert(name, kind);
        for (group, version, kind) in resource.subresources.iter().filter_map(|sub| sub.gvk) {
            if let Some(builtin) = super::builtin(group, version, kind) {
                builtin.collect(&mut generator);
                kinds.insert(builtin.definition(), gvk(group, version, kind));
            }
        }
    }
    let mut definitions = openapi_definitions(&mut generator);
    definitions.extend(own);
    definitions.insert(
        meta("Patch"),
        json!({"type": "object", "description": "A patch document of the type that the request's \
            Content-Type names."}),
    );
    for (name, kind) in kinds {
        if let Some(definition) = definitions.get_mut(&name) {
            definition["x-kubernetes-group-version-kind"] = json!([kind]);
        }
    }
    definitions
}

/// The definitions that the generator has collected, as OpenAPI v3; takes them out of the
/// generator.
pub fn openapi_definitions(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let definitions = generator.take_definitions(false).into_iter();
    let finished = definitions.map(|(name, definition)| {
        let definition = finish(&name, definition);
        (name, definition)
    });
    finished.collect()
}

fn collect<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// Converts a definition from JSON schema, as the Rust types describe it, to OpenAPI v3.
fn finish(name: &str, mut definition: Value) -> Value {
    let short = name.rsplit('.').next().unwrap_or(name);
    let description = definition["description"].take();
    match short {
        "IntOrString" => {
            let types = [json!({"type": "integer"}), json!({"type": "string"})];
            definition = json!({"format": "int-or-string", "oneOf": types});
        }
        "Quantity" => {
            let types = [json!({"type": "string"}), json!({"type": "number"})];
            definition = json!({"oneOf": types});
        }
        // Several JSON types: OpenAPI cannot express them.
        "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => definition = json!({}),
        _ => {
            wrap_references(&mut definition);
            marks::annotate(name, &mut definition);
        }
    }
    let map = definition.as_object_mut().expect("definitions are objects");
    map.remove("description");
    if !description.is_null() {
        map.insert("description".to_owned(), description);
    }
    definition
}

/// OpenAPI v3.0 ignores the siblings of a `$ref`, so it is wrapped.
fn wrap_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.len() > 1
                && let Some(reference) = map.remove("$ref")
            {
                if reference.is_string() {
                    map.insert("allOf".to_owned(), json!([{"$ref": reference}]));
                    return;
                }
                // A property of that name.
                map.insert("$ref".to_owned(), reference);
            }
            map.values_mut().for_each(wrap_references);
        }
        Value::Array(items) => items.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

/// Gives a schema the fields that every object has.
fn add_object_fields(schema: &mut Value) {
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let properties = &mut schema["properties"];
    properties["apiVersion"] = json!({"type": "string", "description": API_VERSION_DESCRIPTION});
    properties["kind"] = json!({"type": "string", "description": KIND_DESCRIPTION});
    properties["metadata"] = json!({
        "description": METADATA_DESCRIPTION, "allOf": [reference(&meta("ObjectMeta"))]});
}

/// The definition of a custom resource: its own schema, or any object.
fn own_definition(resource: &Resource) -> Value {
    match resource.strategy.published_schema() {
        Some(published) => {
            let mut schema = whole(published);
            mark_selectable(resource, &mut schema);
            schema
        }
        None => {
            let mut schema =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            add_object_fields(&mut schema);
            schema
        }
    }
}

fn whole(published: &PublishedSchema) -> Value {
    let mut schema = published.to_json();
    add_object_fields(&mut schema);
    schema
}

/// The schema by which objects of a custom resource merge and their fields have owners.
///
/// # Errors
/// The schema has an unknown list or map type, which validation of the definition rules out.
pub fn merge_schema(published: &PublishedSchema) -> Result<Schema, OpenApiError> {
    const ROOT: &str = "custom";
    let mut generator = generator();
    collect::<ObjectMeta>(&mut generator);
    let mut models = openapi_definitions(&mut generator);
    models.insert(ROOT.to_owned(), whole(published));
    Schema::from_openapi(&models, ROOT)
}

fn list(resource: &Resource, item: &str) -> Value {
    let description = format!("{} is a list of {}", resource.list_kind, resource.kind);
    let mut list = json!({
        "description": description, "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION_DESCRIPTION},
            "kind": {"type": "string", "description": KIND_DESCRIPTION},
            "metadata": {"allOf": [reference(&meta("ListMeta"))],
                "description": LIST_METADATA_DESCRIPTION},
            "items": {"type": "array", "items": reference(item),
                "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural)},
        },
        "x-kubernetes-group-version-kind":
            [gvk(&resource.group, &resource.version, &resource.list_kind)],
    });
    mark_selectable(resource, &mut list);
    list
}

/// Adds the fields by which objects may be selected.
fn mark_selectable(resource: &Resource, schema: &mut Value) {
    let fields = resource.selectable_fields.iter().filter(|field| resource.custom && field.offered);
    let fields: Vec<Value> = fields.map(|field| json!({"fieldPath": field.label})).collect();
    if !fields.is_empty() {
        schema["x-kubernetes-selectable-fields"] = fields.into();
    }
}
