//! An object with its type, and the operations on both together.

mod atomics;
mod compare;
mod field_set;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::borrow::Cow;
use std::fmt;

use api_meta::go_text::quoted;
use serde_json::Value;

pub use compare::Comparison;
pub(crate) use reconcile::reconcile;

use crate::element::PathElement;
use crate::go_text;
use crate::schema::{Atom, ListKind, ListSchema, MapSchema, Scalar, Schema};
use crate::set::FieldSet;

/// An object with its schema.
#[derive(Clone, Debug)]
pub struct Typed<'a> {
    pub value: Cow<'a, Value>,
    pub schema: &'a Schema,
}

/// Whether an associative list may contain duplicate items. Stored objects may (older servers
/// accepted them); apply configurations may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Refuse,
    Allow,
}

/// A value that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The path from the object's root; empty for the object itself.
    pub path: String,
    pub message: String,
}

/// All values that do not fit their type. The text is that of kube-apiserver's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationErrors(pub Vec<ValidationError>);

impl std::error::Error for ValidationErrors {}

impl fmt::Display for ValidationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.message),
            path => write!(out, "{path}: {}", self.message),
        }
    }
}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(out),
            all => {
                out.write_str("errors:")?;
                all.iter().try_for_each(|problem| write!(out, "\n  {problem}"))
            }
        }
    }
}

/// The errors of a walk, with the current path.
#[derive(Default)]
struct Walk {
    path: Vec<PathElement>,
    errors: Vec<ValidationError>,
}

impl Walk {
    fn push_error(&mut self, message: impl Into<String>) {
        let path = self.path.iter().map(ToString::to_string).collect();
        self.errors.push(ValidationError { path, message: message.into() });
    }

    fn into_result(self) -> Result<(), ValidationErrors> {
        if self.errors.is_empty() { Ok(()) } else { Err(ValidationErrors(self.errors)) }
    }
}

impl<'a> Typed<'a> {
    /// Takes a value without validation.
    pub fn unchecked(value: Cow<'a, Value>, schema: &'a Schema) -> Self {
        Self { value, schema }
    }

    /// Validates a value against its type.
    ///
    /// # Errors
    /// Every value that does not fit its type, in the order of the walk.
    pub fn new(
        value: Cow<'a, Value>,
        schema: &'a Schema,
        duplicates: Duplicates,
    ) -> Result<Self, ValidationErrors> {
        let typed = Self::unchecked(value, schema);
        validate::validate(schema, &typed.value, duplicates)?;
        Ok(typed)
    }

    /// The paths of all parts of the value that are owned as a whole, from the root down.
    pub fn atomics(&self) -> Vec<String> {
        atomics::atomics(self.schema, &self.value)
    }

    /// The paths that a manager owns when it states this value.
    pub fn field_set(&self) -> FieldSet {
        field_set::field_set(self.schema, &self.value)
    }

    /// The differences from this value to `new`, which must have the same schema.
    ///
    /// # Errors
    /// A scalar fits its type on neither side, or an item of an associative list has no identity.
    /// Validate both values first with [`Typed::new`].
    pub fn compare(&self, new: &Self) -> Result<Comparison, ValidationErrors> {
        compare::compare(self.schema, &self.value, &new.value)
    }

    /// This value merged with the apply configuration `config`, whose values take precedence. Lists
    /// have the order of `config` where it states one.
    ///
    /// # Errors
    /// The same as [`Typed::compare`], and duplicate items in `config`.
    pub fn merge(&self, config: &Self) -> Result<Self, ValidationErrors> {
        let value = merge::merge(self.schema, &self.value, &config.value)?;
        Ok(Self { value: Cow::Owned(value), schema: self.schema })
    }

    /// This value without the items and fields at the paths of `set`.
    pub(crate) fn without(&self, set: &FieldSet) -> Self {
        let value = remove::remove(self.schema, self.schema.root(), &self.value, set);
        Self { value: Cow::Owned(value), schema: self.schema }
    }
}

/// The part of an [`Atom`] that applies to a value.
#[derive(Clone, Copy, PartialEq)]
enum TypeShape<'s> {
    Map(&'s MapSchema),
    Scalar(Scalar),
    List(&'s ListSchema),
    /// The schema allows no value. A complete builder does not produce it.
    Nothing,
}

/// Selects the part of a type that fits the JSON type of the value.
fn shape<'s>(atom: &'s Atom, value: Option<&Value>) -> TypeShape<'s> {
    let by_value = match value {
        Some(Value::Object(_)) => atom.map.as_ref().map(TypeShape::Map),
        Some(Value::Array(_)) => atom.list.as_ref().map(TypeShape::List),
        Some(Value::Null) | None => None,
        Some(_) => atom.scalar.map(TypeShape::Scalar),
    };
    by_value
        .or(atom.map.as_ref().map(TypeShape::Map))
        .or(atom.scalar.map(TypeShape::Scalar))
        .or(atom.list.as_ref().map(TypeShape::List))
        .unwrap_or(TypeShape::Nothing)
}

/// Why a value is not of a scalar type. Null is valid for every type.
fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    let shown = || format!("&{{{}}}", go_text::plain(value));
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, _) => {
            Some(format!("expected numeric (int or float), got {}", go_text::type_name(value)))
        }
        (Scalar::String, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_text::syntax(value)
        )),
        (Scalar::Boolean, _) => Some(format!("expected boolean, got {}", shown())),
        (Scalar::Untyped, _) => Some(format!("expected any scalar, got {}", shown())),
    }
}

/// The path element of a list's item, or why it has none. Items of atomic lists have none.
fn item_element(schema: &Schema, list: &ListSchema, item: &Value) -> Result<PathElement, String> {
    match &list.kind {
        ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKind::Keyed(keys) => keyed_element(schema, list, keys, item),
        ListKind::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err("associative list without keys has an element that's an explicit \
                                null"
                .to_owned()),
            scalar => Ok(PathElement::Value(scalar.clone())),
        },
    }
}

fn keyed_element(
    schema: &Schema,
    list: &ListSchema,
    keys: &[String],
    item: &Value,
) -> Result<PathElement, String> {
    let Value::Object(item) = item else {
        let what = if item.is_null() { "a null element" } else { "non-map elements" };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let defaults = schema.atom(list.items).map.as_ref().map(|map| &map.defaults);
    let fields: Vec<(String, Value)> = keys
        .iter()
        .filter_map(|key| {
            let default = || defaults?.get(key);
            Some((key.clone(), item.get(key).or_else(default)?.clone()))
        })
        .collect();
    if fields.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::key(fields))
}
