//! Types that are added and removed at run time, as `dynamicSchema` objects describe them.
//!
//! The options of a driver become an embedded type. Another object of the kind, one that embeds,
//! adds a field with that type to the type that takes the options of the driver.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::types::field::{Field, FieldLocation, FieldType, StructType};
use crate::types::registry::Registry;

/// Why an object describes no type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchema {
    #[error("spec cannot be read: {0}")]
    Unreadable(String),
    #[error("spec.embed needs spec.embedType, the type that gets the fields")]
    NoEmbedType,
    #[error("spec.schemaName or metadata.name must name the type")]
    NoName,
    #[error("field \"{field}\" has the type \"{kind}\", which is none")]
    UnknownType { field: String, kind: String },
}

/// What a `dynamicSchema` object adds.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSchema {
    /// The type that is added, or the one that receives the fields.
    pub id: String,
    /// The fields are added to an existing type.
    pub embeds: bool,
    /// The fields of the type, or those that are added.
    pub fields: Vec<Field>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    schema_name: String,
    embed: bool,
    embed_type: String,
    resource_fields: BTreeMap<String, DescribedField>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DescribedField {
    #[serde(rename = "type")]
    kind: String,
    default: Values,
    create: bool,
    update: bool,
    required: bool,
    nullable: bool,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min: Option<i64>,
    max: Option<i64>,
    options: Vec<String>,
    valid_chars: String,
    invalid_chars: String,
    description: Option<String>,
}

/// One default for each type that can have one; the type of the field selects which applies.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Values {
    string_value: String,
    int_value: i64,
    bool_value: bool,
    string_slice_value: Option<Vec<String>>,
}

impl Values {
    fn of(self, kind: &FieldType) -> Option<Value> {
        match kind {
            FieldType::Boolean => Some(self.bool_value.into()),
            FieldType::Int => Some(self.int_value.into()),
            FieldType::Array(_) => self.string_slice_value.map(Value::from),
            _ => Some(self.string_value).filter(|text| !text.is_empty()).map(Value::from),
        }
    }
}

impl DynamicSchema {
    /// Reads the stored object.
    ///
    /// # Errors
    /// The object describes no type; report the reason on the object.
    pub fn of(object: &Value) -> Result<Self, InvalidSchema> {
        let spec = Some(&object["spec"]).filter(|spec| !spec.is_null());
        let spec = spec.map_or_else(|| Ok(Spec::default()), Spec::deserialize);
        let spec = spec.map_err(|error| InvalidSchema::Unreadable(error.to_string()))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let id = match (spec.embed, spec.schema_name) {
            (true, _) if spec.embed_type.is_empty() => return Err(InvalidSchema::NoEmbedType),
            (true, _) => spec.embed_type,
            (false, id) if !id.is_empty() => id,
            (false, _) if name.is_empty() => return Err(InvalidSchema::NoName),
            (false, _) => name.to_owned(),
        };
        let fields = spec.resource_fields.into_iter().map(|(name, field)| field.into_field(name));
        Ok(Self { id, embeds: spec.embed, fields: fields.collect::<Result<_, _>>()? })
    }

    /// Adds the type, or its fields to the existing type. `false`: the existing type is not in the
    /// registry.
    pub fn add(&self, registry: &mut Registry, version: &str) -> bool {
        if self.embeds {
            return registry.add_fields(version, &self.id, self.fields.iter().cloned());
        }
        registry.insert_type(version, StructType::new(&self.id, self.fields.clone()));
        true
    }

    /// Removes what [`Self::add`] added.
    pub fn remove(&self, registry: &mut Registry, version: &str) {
        if self.embeds {
            let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
            registry.remove_fields(version, &self.id, &names);
        } else {
            registry.remove_type(version, &self.id);
        }
    }
}

impl DescribedField {
    fn into_field(self, name: String) -> Result<Field, InvalidSchema> {
        let Some(kind) = FieldType::parse(&self.kind) else {
            return Err(InvalidSchema::UnknownType { field: name, kind: self.kind });
        };
        let mut field = Field::new(&name, kind);
        field.location = Some(FieldLocation::path(&format!("spec.{name}")));
        field.default = self.default.of(&field.kind);
        (field.create, field.update) = (self.create, self.update);
        (field.required, field.nullable) = (self.required, self.nullable);
        (field.min_length, field.max_length) = (self.min_length, self.max_length);
        (field.min, field.max) = (self.min, self.max);
        (field.valid_chars, field.invalid_chars) = (self.valid_chars, self.invalid_chars);
        field.options = self.options;
        field.description = self.description;
        field.dynamic = true;
        Ok(field)
    }
}
