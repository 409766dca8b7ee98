//! Schema objects, generated from descriptors: clients build their forms and types from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::types::action::Action;
use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldType, StructType};
use crate::types::registry::{ApiVersion, NamedType, Registry};
use crate::types::urls::Urls;

/// The schemas of a version, by id: of the types that can be listed or read, and of all types that
/// these refer to.
///
/// `schemas_path`: path below which the caller reads them (`/v3`, `/v3/clusters/c-abcde`).
pub(crate) fn all(
    registry: &Registry,
    version: &ApiVersion,
    schemas_path: &str,
    urls: &Urls,
) -> Vec<Value> {
    let builder = SchemaBuilder { version, schemas_path, urls };
    let schema = |id: String| match registry.find_named(&version.path, &id) {
        Some(NamedType::Type(descriptor)) => Some(builder.of_descriptor(descriptor)),
        Some(NamedType::Struct(kind)) => Some(builder.of_struct(kind)),
        None => None,
    };
    reachable(registry, &version.path).into_iter().filter_map(schema).collect()
}

/// Ids of the types that can be listed or read, and of the types that their fields and actions
/// refer to.
pub(crate) fn reachable(registry: &Registry, version: &str) -> BTreeSet<String> {
    let seen = |d: &&Arc<Descriptor>| d.methods.list || d.methods.get;
    let mut open: Vec<String> =
        registry.descriptors_of(version).filter(seen).map(|d| d.id.clone()).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        match registry.find_named(version, &id) {
            Some(NamedType::Type(descriptor)) => {
                open.extend(descriptor.fields.values().filter_map(named_by));
                let actions = descriptor.actions.iter().chain(&descriptor.collection_actions);
                let types = actions.flat_map(|action| [&action.input, &action.output]);
                open.extend(types.flatten().cloned());
            }
            Some(NamedType::Struct(kind)) => open.extend(kind.fields.iter().filter_map(named_by)),
            None => continue,
        }
        found.insert(id);
        open.retain(|id| !found.contains(id));
    }
    found
}

fn named_by(field: &Field) -> Option<String> {
    match field.kind.innermost() {
        FieldType::Struct(id) | FieldType::Reference(id) => Some(id.clone()),
        _ => None,
    }
}

/// One schema, by id or plural in any case.
pub(crate) fn one(
    registry: &Registry,
    version: &ApiVersion,
    schemas_path: &str,
    urls: &Urls,
    name: &str,
) -> Option<Value> {
    let builder = SchemaBuilder { version, schemas_path, urls };
    if let Some(descriptor) = registry.find(&version.path, name) {
        return Some(builder.of_descriptor(descriptor));
    }
    let mut types = registry.types_of(&version.path);
    types.find(|kind| kind.id.eq_ignore_ascii_case(name)).map(|kind| builder.of_struct(kind))
}

struct SchemaBuilder<'a> {
    version: &'a ApiVersion,
    schemas_path: &'a str,
    urls: &'a Urls,
}

impl SchemaBuilder<'_> {
    fn of_descriptor(&self, descriptor: &Descriptor) -> Value {
        let mut links = json!({"self": self.self_url(&descriptor.id)});
        if descriptor.methods.list {
            links["collection"] = self.collection_url(descriptor).into();
        }
        let fields: Map<String, Value> = descriptor
            .fields
            .values()
            .map(|field| (field.name.clone(), field_schema(field)))
            .collect();
        let filters: Map<String, Value> = descriptor
            .filterable()
            .map(|field| (field.name.clone(), json!({"modifiers": field.kind.modifiers()})))
            .collect();
        json!({
            "id": descriptor.id,
            "type": "schema",
            "baseType": descriptor.base_type(),
            "pluralName": descriptor.plural,
            "version": self.version_object(),
            "links": links,
            "resourceFields": fields,
            "resourceMethods": descriptor.methods.resource(),
            "collectionMethods": descriptor.methods.collection(),
            "resourceActions": actions(&descriptor.actions),
            "collectionActions": actions(&descriptor.collection_actions),
            "collectionFilters": filters,
        })
    }

    fn of_struct(&self, kind: &StructType) -> Value {
        let fields: Map<String, Value> =
            kind.fields.iter().map(|field| (field.name.clone(), field_schema(field))).collect();
        json!({
            "id": kind.id,
            "type": "schema",
            "baseType": kind.id,
            "pluralName": plural(&kind.id),
            "version": self.version_object(),
            "links": {"self": self.self_url(&kind.id)},
            "resourceFields": fields,
            "resourceMethods": [],
            "collectionMethods": [],
            "resourceActions": {},
            "collectionActions": {},
            "collectionFilters": {},
        })
    }

    fn self_url(&self, id: &str) -> String {
        self.urls.path(&format!("{}/schemas/{id}", self.schemas_path))
    }

    /// Collections inside one resource are below it.
    fn collection_url(&self, descriptor: &Descriptor) -> String {
        let plural = descriptor.plural.to_lowercase();
        self.urls.path(&format!("{}/{plural}", self.schemas_path))
    }

    fn version_object(&self) -> Value {
        let mut version = json!({
            "group": self.version.group,
            "version": self.version.version,
            "path": self.version.path,
        });
        if let Some(parent) = &self.version.parent_type {
            version["subContext"] = true.into();
            let outer = self.version.path.rsplit_once('/').map_or("", |(outer, _)| outer);
            version["filterField"] = format!("{outer}/schemas/{parent}").into();
        }
        version
    }
}

fn field_schema(field: &Field) -> Value {
    let mut out = json!({
        "type": field.kind.to_string(),
        "create": field.create,
        "update": field.update,
    });
    let flags = [
        ("nullable", field.nullable),
        ("required", field.required),
        ("writeOnly", field.write_only),
        ("dynamicField", field.dynamic),
    ];
    for (name, _) in flags.into_iter().filter(|(_, on)| *on) {
        out[name] = true.into();
    }
    if let Some(default) = &field.default {
        out["default"] = default.clone();
    }
    if !field.options.is_empty() {
        out["options"] = field.options.clone().into();
    }
    let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
    let limits = [
        ("minLength", field.min_length.map(Value::from)),
        ("maxLength", field.max_length.map(Value::from)),
        ("min", field.min.map(Value::from)),
        ("max", field.max.map(Value::from)),
        ("validChars", text(&field.valid_chars)),
        ("invalidChars", text(&field.invalid_chars)),
        ("description", field.description.clone().map(Value::from)),
    ];
    for (name, value) in limits {
        if let Some(value) = value {
            out[name] = value;
        }
    }
    out
}

fn actions(actions: &[Action]) -> Value {
    let entry = |action: &Action| {
        let mut out = Map::new();
        if let Some(input) = &action.input {
            out.insert("input".to_owned(), input.clone().into());
        }
        if let Some(output) = &action.output {
            out.insert("output".to_owned(), output.clone().into());
        }
        (action.name.clone(), Value::Object(out))
    };
    Value::Object(actions.iter().map(entry).collect())
}

/// English plural, as clients derive it from schemas.
fn plural(id: &str) -> String {
    if let Some(stem) = id.strip_suffix('y').filter(|s| !s.ends_with(['a', 'e', 'o', 'u'])) {
        return format!("{stem}ies");
    }
    if ["s", "ch", "x"].iter().any(|end| id.ends_with(end)) {
        return format!("{id}es");
    }
    format!("{id}s")
}
