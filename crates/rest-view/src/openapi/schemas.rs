//! Components of types and embedded types.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Components, VersionPart, reference};
use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldType};
use crate::types::registry::{NamedType, Registry};

/// Fields that every resource has, whatever its type declares.
const OF_EVERY_RESOURCE: [&str; 5] = ["id", "type", "baseType", "links", "actions"];
/// Characters with a meaning between the brackets of a pattern.
const SPECIAL_IN_BRACKETS: &str = r"\]^-[";
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const DNS_LABEL_RESTRICTED: &str = "^[a-z]([-a-z0-9]*[a-z0-9])?$";

/// What a schema is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Responses, and the bodies of updates.
    Shown,
    /// Bodies of creates and actions.
    Create,
}

/// Ids of the embedded types of which a create must have some field, or some field of a field.
pub(super) fn demanding(registry: &Registry, version: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    loop {
        let demands = |field: &Field| match field.kind.innermost() {
            _ if !field.create => false,
            _ if is_required(field) => true,
            FieldType::Struct(id) => found.contains(id),
            _ => false,
        };
        let more = registry.types_of(version).filter(|kind| kind.fields.iter().any(demands));
        let more: BTreeSet<String> = more.map(|kind| kind.id.clone()).collect();
        if more == found {
            return found.into_iter().collect();
        }
        found = more;
    }
}

/// A create without it is refused.
fn is_required(field: &Field) -> bool {
    field.create && field.required && field.default.is_none()
}

impl VersionPart<'_> {
    pub(super) fn add_schemas(&self, components: &mut Components) {
        let schemas = &mut components.schemas;
        for id in &self.ids {
            let name = self.name(id);
            match self.registry.find_named(&self.version.path, id) {
                Some(NamedType::Type(descriptor)) => {
                    if descriptor.methods.list {
                        schemas.insert(format!("{name}Collection"), collection_of(&name));
                    }
                    if descriptor.methods.create {
                        let create = self.create_of(descriptor);
                        schemas.insert(format!("{name}Create"), create);
                    }
                    schemas.insert(name, self.shown(descriptor));
                }
                Some(NamedType::Struct(kind)) => {
                    let fields = || kind.fields.iter();
                    if self.demanding.contains(id) {
                        let required = fields().filter(|field| is_required(field));
                        let create = self.object(fields(), Use::Create, required);
                        schemas.insert(format!("{name}Create"), create);
                    }
                    schemas.insert(name, self.object(fields(), Use::Shown, [].iter()));
                }
                None => {}
            }
        }
    }

    fn shown(&self, descriptor: &Descriptor) -> Value {
        let is_own = |field: &&Field| !OF_EVERY_RESOURCE.contains(&field.name.as_str());
        let fields = descriptor.fields.values().filter(is_own);
        let own = self.object(fields, Use::Shown, [].iter());
        json!({"allOf": [reference("Resource"), own]})
    }

    fn create_of(&self, descriptor: &Descriptor) -> Value {
        // The namespace of such types follows from the parent.
        let from_parent =
            |field: &Field| descriptor.parent_field.is_some() && field.name == "namespaceId";
        let required =
            descriptor.fields.values().filter(|field| is_required(field) && !from_parent(field));
        self.object(descriptor.fields.values(), Use::Create, required)
    }

    fn object<'f>(
        &self,
        fields: impl Iterator<Item = &'f Field>,
        purpose: Use,
        required: impl Iterator<Item = &'f Field>,
    ) -> Value {
        let mut properties = Map::new();
        for field in fields.filter(|field| purpose == Use::Shown || field.create) {
            properties.insert(field.name.clone(), self.property(field, purpose));
            if field.kind == FieldType::Date && purpose == Use::Shown {
                let at = json!({
                    "type": "integer", "format": "int64", "readOnly": true,
                    "description": format!("`{}` in milliseconds since the epoch.", field.name),
                });
                properties.insert(format!("{}TS", field.name), at);
            }
        }
        let mut out = json!({"type": "object", "properties": properties});
        let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
        if !required.is_empty() {
            out["required"] = required.into();
        }
        out
    }

    fn property(&self, field: &Field, purpose: Use) -> Value {
        let mut schema = self.of_type(&field.kind, purpose);
        limit(&mut schema, field);
        let nullable = match purpose {
            Use::Shown => field.nullable || matches!(field.kind, FieldType::Reference(_)),
            // Null has the same effect as leaving it out.
            Use::Create => !is_required(field) && (field.nullable || field.default.is_some()),
        };
        choose(&mut schema, field, nullable);
        let mut more = Map::new();
        let writable = field.create || field.update;
        let flags = [
            // A field of any JSON type accepts null without a declaration.
            ("nullable", nullable && field.kind != FieldType::Json),
            ("readOnly", !writable),
            ("writeOnly", writable && field.kind == FieldType::Password && purpose == Use::Shown),
        ];
        for (name, _) in flags.into_iter().filter(|(_, on)| *on) {
            more.insert(name.to_owned(), true.into());
        }
        // A default beyond the limits is left out.
        let counts = |default: &&Value| !default.is_null() && is_within_limits(field, default);
        if let Some(default) = field.default.as_ref().filter(counts) {
            more.insert("default".to_owned(), default.clone());
        }
        if let Some(text) = description(&schema, field, purpose) {
            more.insert("description".to_owned(), text.into());
        }
        if schema.get("$ref").is_some() && !more.is_empty() {
            // Keys beside a `$ref` are ignored.
            schema = json!({"allOf": [schema]});
        }
        if let Value::Object(schema) = &mut schema {
            schema.extend(more);
        }
        schema
    }

    fn of_type(&self, kind: &FieldType, purpose: Use) -> Value {
        let label = |pattern: &str| match purpose {
            // Objects that were created through another API may have other names.
            Use::Shown => json!({"type": "string"}),
            Use::Create => json!({"type": "string", "maxLength": 63, "pattern": pattern}),
        };
        match kind {
            FieldType::String | FieldType::Enum => json!({"type": "string"}),
            FieldType::Password => json!({"type": "string", "format": "password"}),
            FieldType::DnsLabel => label(DNS_LABEL),
            FieldType::DnsLabelRestricted => label(DNS_LABEL_RESTRICTED),
            FieldType::Hostname => json!({"type": "string", "format": "hostname"}),
            FieldType::Int => json!({"type": "integer", "format": "int64"}),
            FieldType::Float => json!({"type": "number", "format": "double"}),
            FieldType::Boolean => json!({"type": "boolean"}),
            FieldType::Json => json!({}),
            FieldType::Base64 => json!({"type": "string", "format": "byte"}),
            FieldType::IntOrString => {
                json!({"anyOf": [{"type": "integer", "format": "int64"}, {"type": "string"}]})
            }
            FieldType::Date => json!({"type": "string", "format": "date-time"}),
            FieldType::Reference(to) => {
                json!({"type": "string", "description": format!("Id of a `{to}`.")})
            }
            FieldType::Array(of) => json!({"type": "array", "items": self.of_type(of, purpose)}),
            FieldType::Map(of) => {
                json!({"type": "object", "additionalProperties": self.of_type(of, purpose)})
            }
            FieldType::Struct(id) => self.of_struct(id, purpose),
        }
    }

    fn of_struct(&self, id: &str, purpose: Use) -> Value {
        if !self.ids.iter().any(|known| known == id) {
            return json!({"type": "object"});
        }
        let demands = self.demanding.iter().any(|demanding| demanding == id);
        match purpose {
            Use::Create if demands => reference(&format!("{}Create", self.name(id))),
            _ => reference(&self.name(id)),
        }
    }

    /// What an action takes.
    pub(super) fn input(&self, id: &str) -> Value {
        self.of_struct(id, Use::Create)
    }

    /// What an action returns.
    pub(super) fn output(&self, id: &str) -> Value {
        match id {
            "collection" => reference("Collection"),
            id => self.of_struct(id, Use::Shown),
        }
    }
}

/// Limits count for the items of lists.
fn limit(schema: &mut Value, field: &Field) {
    if schema.get("items").is_some() {
        return limit(&mut schema["items"], field);
    }
    let limits = [
        ("minLength", field.min_length.map(Value::from)),
        ("maxLength", field.max_length.map(Value::from)),
        ("minimum", field.min.map(Value::from)),
        ("maximum", field.max.map(Value::from)),
        ("pattern", pattern(field).map(Value::from)),
    ];
    for (name, value) in limits {
        if let Some(value) = value {
            schema[name] = value;
        }
    }
}

fn is_within_limits(field: &Field, value: &Value) -> bool {
    let Some(number) = value.as_i64() else { return true };
    field.min.is_none_or(|min| number >= min) && field.max.is_none_or(|max| number <= max)
}

/// Text of only the valid and none of the invalid characters.
fn pattern(field: &Field) -> Option<String> {
    let escaped = |characters: &mut dyn Iterator<Item = char>| {
        let escape = |c: char| match SPECIAL_IN_BRACKETS.contains(c) {
            true => vec!['\\', c],
            false => vec![c],
        };
        characters.flat_map(escape).collect::<String>()
    };
    let invalid = |c: &char| field.invalid_chars.contains(*c);
    match (field.valid_chars.is_empty(), field.invalid_chars.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("^[^{}]*$", escaped(&mut field.invalid_chars.chars()))),
        (false, _) => {
            let mut valid = field.valid_chars.chars().filter(|c| !invalid(c));
            Some(format!("^[{}]*$", escaped(&mut valid)))
        }
    }
}

/// Choices count for the texts in lists and maps.
fn choose(schema: &mut Value, field: &Field, nullable: bool) {
    if field.options.is_empty() {
        return;
    }
    for inner in ["items", "additionalProperties"] {
        if schema.get(inner).is_some() {
            return choose(&mut schema[inner], field, false);
        }
    }
    if schema["type"] != "string" {
        return;
    }
    let mut options: Vec<Value> = field.options.iter().cloned().map(Value::from).collect();
    let default = field.default.iter().filter(|default| default.is_string()).cloned();
    options.extend(default.filter(|default| !field.options.iter().any(|option| default == option)));
    if nullable {
        options.push(Value::Null);
    }
    schema["enum"] = options.into();
}

fn description(schema: &Value, field: &Field, purpose: Use) -> Option<String> {
    let shown = purpose == Use::Shown;
    let notes = [
        (shown && field.write_only, "Answered only by a create."),
        (shown && field.kind == FieldType::Password, "Never answered."),
        (shown && field.create && !field.update, "Cannot be changed."),
        (shown && !field.create && field.update, "Not taken by a create."),
    ];
    let notes = notes.into_iter().filter(|(on, _)| *on).map(|(_, text)| text.to_owned());
    let described = field.description.clone().filter(|text| !text.is_empty());
    let of_type = schema["description"].as_str().map(str::to_owned);
    let parts: Vec<String> = described.into_iter().chain(of_type).chain(notes).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn collection_of(name: &str) -> Value {
    let own = json!({
        "type": "object",
        "properties": {"data": {"type": "array", "items": reference(name)}},
        "required": ["data"],
    });
    json!({"allOf": [reference("Collection"), own]})
}

/// The schemas that all responses share.
pub(super) fn of_every_version() -> Map<String, Value> {
    let urls = json!({
        "type": "object", "readOnly": true,
        "additionalProperties": {"type": "string", "format": "uri"},
    });
    let text = json!({"type": "string"});
    let known = |is: &str| json!({"type": "string", "readOnly": true, "description": is});
    Map::from_iter([
        (
            "Resource".to_owned(),
            json!({
                "type": "object",
                "properties": {
                    "id": known("Names the resource in paths and references."),
                    "type": known("Id of its type."),
                    "baseType": known("Id of the type that its collection is of."),
                    "links": urls,
                    "actions": urls,
                },
                "required": ["id", "type", "baseType", "links"],
            }),
        ),
        (
            "Collection".to_owned(),
            json!({
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["collection"]},
                    "resourceType": text,
                    "links": urls,
                    "actions": urls,
                    "createTypes": urls,
                    "pagination": reference("Pagination"),
                    "sort": {"type": "object", "additionalProperties": true},
                    "filters": {"type": "object", "additionalProperties": true},
                    "data": {"type": "array", "items": reference("Resource")},
                },
                "required": ["type", "data"],
            }),
        ),
        (
            "Pagination".to_owned(),
            json!({
                "type": "object",
                "properties": {
                    "limit": {"type": "integer"},
                    "total": {"type": "integer", "description": "Matches on all pages."},
                    "partial": {"type": "boolean", "description": "There are other pages."},
                    "marker": text,
                    "first": text, "previous": text, "next": text, "last": text,
                },
            }),
        ),
        ("Error".to_owned(), error()),
    ])
}

fn error() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["error"]},
            "baseType": text,
            "code": {"type": "string", "description": "What programs switch on."},
            "status": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "description": "That of HTTP; text where nobody is logged in.",
            },
            "message": text,
            "fieldName": {"type": "string", "description": "The field that was refused."},
        },
        "required": ["type", "status", "message"],
    })
}
