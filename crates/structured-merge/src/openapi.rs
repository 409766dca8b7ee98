//! Schemas from OpenAPI v3 models: those that kube-apiserver publishes for its own kinds, and those
//! of custom resources.
//!
//! These extensions determine how values merge: `x-kubernetes-list-type`, `-list-map-keys`,
//! `-map-type` and `-preserve-unknown-fields`, and for older types `-patch-strategy` with
//! `-patch-merge-key`. Without them maps are granular and lists atomic.

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value};

use crate::schema::{Atom, ListKind, ListSchema, MapSchema, Scalar, Schema, SchemaBuilder, TypeId};

/// A reference into the models ends with the model's name.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Why models do not describe a schema.
#[derive(Debug, thiserror::Error)]
pub enum OpenApiError {
    #[error("model \"{0}\" is not among the models given")]
    MissingModel(String),
    #[error("{extension} of \"{model}\" has an unknown value: {value}")]
    Extension { model: String, extension: &'static str, value: Value },
}

impl Schema {
    /// Builds the schema of the model `root`. `models` are the `components.schemas` of a document;
    /// only those that can be reached from `root` are read.
    ///
    /// # Errors
    /// A referenced model is missing, or a merge extension has an unknown value. The document is at
    /// fault: the caller uses [`Schema::deduced`] or refuses the definition.
    pub fn from_openapi(models: &JsonMap<String, Value>, root: &str) -> Result<Self, OpenApiError> {
        let mut reader = ModelReader {
            models,
            model: root.to_owned(),
            types: SchemaBuilder::default(),
            known: BTreeMap::new(),
        };
        let root = reader.model(root, None)?;
        Ok(reader.types.build(root))
    }
}

struct ModelReader<'m> {
    models: &'m JsonMap<String, Value>,
    /// The name of the current model, for messages.
    model: String,
    types: SchemaBuilder,
    /// Types by the model's name and the atomicity that the reference states.
    known: BTreeMap<(String, Option<bool>), TypeId>,
}

impl<'m> ModelReader<'m> {
    fn model(&mut self, name: &str, atomic: Option<bool>) -> Result<TypeId, OpenApiError> {
        let key = (name.to_owned(), atomic);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let id = self.types.reserve();
        self.known.insert(key, id);
        let mut atom = match name {
            QUANTITY => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
            RAW_EXTENSION => any_atomic(),
            _ => {
                let model = self.models.get(name);
                let model = model.ok_or_else(|| OpenApiError::MissingModel(name.to_owned()))?;
                let outer = std::mem::replace(&mut self.model, name.to_owned());
                let atom = self.atom(model, false)?;
                self.model = outer;
                atom
            }
        };
        if let (Some(atomic), Some(map)) = (atomic, &mut atom.map) {
            map.atomic = atomic;
        }
        self.types.define(id, atom);
        Ok(id)
    }

    /// The type of a property, of items or of additional properties.
    fn reference(&mut self, schema: &'m Value, preserve: bool) -> Result<TypeId, OpenApiError> {
        let single = schema["allOf"].as_array().filter(|all| all.len() == 1).map(|all| &all[0]);
        let target = schema["$ref"].as_str().or_else(|| single?["$ref"].as_str());
        if let Some(target) = target {
            let name = target.rsplit('/').next().unwrap_or(target);
            let atomic = self.map_type(schema)?;
            return self.model(name, atomic);
        }
        let atom = self.atom(schema, preserve)?;
        Ok(self.types.add(atom))
    }

    fn atom(&mut self, schema: &'m Value, preserve: bool) -> Result<Atom, OpenApiError> {
        let preserve = preserve || schema["x-kubernetes-preserve-unknown-fields"] == true;
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        Ok(match schema["type"].as_str() {
            None => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, preserve)?),
                map: Some(self.map(schema, preserve)?),
            },
            Some("object") => Atom { map: Some(self.map(schema, preserve)?), ..Atom::default() },
            Some("array") => Atom { list: Some(self.list(schema, preserve)?), ..Atom::default() },
            Some("integer" | "number") => scalar(Scalar::Numeric),
            Some("boolean") => scalar(Scalar::Boolean),
            Some("string") => match schema["format"].as_str() {
                None | Some("" | "byte") => scalar(Scalar::String),
                Some(_) => scalar(Scalar::Untyped),
            },
            Some(_) => scalar(Scalar::Untyped),
        })
    }

    fn map(&mut self, schema: &'m Value, preserve: bool) -> Result<MapSchema, OpenApiError> {
        let mut map =
            MapSchema { atomic: self.map_type(schema)?.unwrap_or(false), ..MapSchema::default() };
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            map.fields.insert(name.clone(), self.reference(property, preserve)?);
            let default = &property["default"];
            if !(default.is_null() || default.is_object() || default.is_array()) {
                map.defaults.insert(name.clone(), default.clone());
            }
            // Fields that are always serialized, though clients need not set them.
            let is_zero = default.as_object().is_some_and(JsonMap::is_empty) || *default == 0;
            if is_zero {
                map.zeros.insert(name.clone(), default.clone());
            }
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let zero = map.defaults.get(name).cloned().unwrap_or_default();
            map.zeros.entry(name.to_owned()).or_insert(zero);
        }
        map.others = match &schema["additionalProperties"] {
            Value::Null if preserve || map.fields.is_empty() => Some(TypeId::DEDUCED),
            Value::Bool(true) => Some(TypeId::DEDUCED),
            Value::Null | Value::Bool(false) => None,
            others => Some(self.reference(others, preserve)?),
        };
        Ok(map)
    }

    fn list(&mut self, schema: &'m Value, preserve: bool) -> Result<ListSchema, OpenApiError> {
        let items = match &schema["items"] {
            Value::Null => TypeId::ATOMIC,
            items => self.reference(items, preserve)?,
        };
        let list_type = &schema["x-kubernetes-list-type"];
        let strategy = &schema["x-kubernetes-patch-strategy"];
        let kind = match (list_type.as_str(), strategy.as_str()) {
            (Some("atomic"), _) | (None, None | Some("retainKeys")) => ListKind::Atomic,
            (Some("set"), _) => ListKind::Set,
            (Some("map"), _) => self.keyed_list(schema)?,
            (None, Some("merge" | "merge,retainKeys")) => {
                match schema["x-kubernetes-patch-merge-key"].as_str() {
                    Some(key) => ListKind::Keyed(vec![key.to_owned()]),
                    None => ListKind::Set,
                }
            }
            (Some(_), _) => return Err(self.unknown_value("x-kubernetes-list-type", list_type)),
            (None, Some(_)) => {
                return Err(self.unknown_value("x-kubernetes-patch-strategy", strategy));
            }
        };
        Ok(ListSchema { items, kind })
    }

    fn keyed_list(&self, schema: &Value) -> Result<ListKind, OpenApiError> {
        let names = &schema["x-kubernetes-list-map-keys"];
        let keys = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        if keys.is_empty() {
            return Err(self.unknown_value("x-kubernetes-list-map-keys", names));
        }
        Ok(ListKind::Keyed(keys))
    }

    /// Whether `x-kubernetes-map-type` makes a map atomic; `None` when it is absent.
    fn map_type(&self, schema: &Value) -> Result<Option<bool>, OpenApiError> {
        match &schema["x-kubernetes-map-type"] {
            Value::Null => Ok(None),
            value if value == "atomic" => Ok(Some(true)),
            value if value == "granular" => Ok(Some(false)),
            value => Err(self.unknown_value("x-kubernetes-map-type", value)),
        }
    }

    fn unknown_value(&self, extension: &'static str, value: &Value) -> OpenApiError {
        OpenApiError::Extension { model: self.model.clone(), extension, value: value.clone() }
    }
}

fn any_atomic() -> Atom {
    Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(ListSchema { items: TypeId::ATOMIC, kind: ListKind::Atomic }),
        map: Some(MapSchema { others: Some(TypeId::ATOMIC), atomic: true, ..MapSchema::default() }),
    }
}
