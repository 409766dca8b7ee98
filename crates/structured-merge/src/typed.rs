//! An object with its type, and what can be done with the two together.

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
use crate::schema::{Atom, List, ListKind, Map, Scalar, Schema};
use crate::set::FieldSet;

/// An object under a schema.
#[derive(Clone, Debug)]
pub struct Typed<'a> {
    pub value: Cow<'a, Value>,
    pub schema: &'a Schema,
}

/// Whether an associative list may hold an item twice. Stored objects may (older servers let
/// them in); what is applied may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Refuse,
    Allow,
}

/// One place where a value does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From the object's root; empty for the object itself.
    pub path: String,
    pub message: String,
}

/// All places where a value does not fit its type. Prints as kube-apiserver answers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl std::error::Error for Problems {}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.message),
            path => write!(out, "{path}: {}", self.message),
        }
    }
}

impl fmt::Display for Problems {
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

/// Problems as they are met on a walk, with the path the walk is at.
#[derive(Default)]
struct Walk {
    path: Vec<PathElement>,
    problems: Vec<Problem>,
}

impl Walk {
    fn problem(&mut self, message: impl Into<String>) {
        let path = self.path.iter().map(ToString::to_string).collect();
        self.problems.push(Problem { path, message: message.into() });
    }

    fn into_result(self) -> Result<(), Problems> {
        if self.problems.is_empty() { Ok(()) } else { Err(Problems(self.problems)) }
    }
}

impl<'a> Typed<'a> {
    /// Takes a value as it is, known to fit or not.
    pub fn unchecked(value: Cow<'a, Value>, schema: &'a Schema) -> Self {
        Self { value, schema }
    }

    /// Checks a value against its type.
    ///
    /// # Errors
    /// Every place that does not fit.
    pub fn new(
        value: Cow<'a, Value>,
        schema: &'a Schema,
        duplicates: Duplicates,
    ) -> Result<Self, Problems> {
        let typed = Self::unchecked(value, schema);
        validate::validate(schema, &typed.value, duplicates)?;
        Ok(typed)
    }

    /// The paths of all parts of the value that have one owner as a whole, from the root down.
    pub fn atomics(&self) -> Vec<String> {
        atomics::atomics(self.schema, &self.value)
    }

    /// The paths that somebody who states this value owns.
    pub fn field_set(&self) -> FieldSet {
        field_set::field_set(self.schema, &self.value)
    }

    /// What differs in `new`, which has the same schema.
    ///
    /// # Errors
    /// Both sides fit their type neither, or an item of an associative list has no identity.
    pub fn compare(&self, new: &Self) -> Result<Comparison, Problems> {
        compare::compare(self.schema, &self.value, &new.value)
    }

    /// This value with everything that `wish` states laid over it. Lists keep the order of the
    /// wish where it says one.
    ///
    /// # Errors
    /// As [`Typed::compare`].
    pub fn merge(&self, wish: &Self) -> Result<Self, Problems> {
        let value = merge::merge(self.schema, &self.value, &wish.value)?;
        Ok(Self { value: Cow::Owned(value), schema: self.schema })
    }

    /// This value without the items and fields at the paths of `set`.
    pub(crate) fn without(&self, set: &FieldSet) -> Self {
        let value = remove::remove(self.schema, self.schema.root(), &self.value, set);
        Self { value: Cow::Owned(value), schema: self.schema }
    }
}

/// What a value is taken for.
#[derive(Clone, Copy, PartialEq)]
enum Shape<'s> {
    Map(&'s Map),
    Scalar(Scalar),
    List(&'s List),
    /// The schema says nothing at all. Not made by a finished builder.
    Nothing,
}

/// Chooses among what a type allows by the form of the value.
fn shape<'s>(atom: &'s Atom, value: Option<&Value>) -> Shape<'s> {
    let by_value = match value {
        Some(Value::Object(_)) => atom.map.as_ref().map(Shape::Map),
        Some(Value::Array(_)) => atom.list.as_ref().map(Shape::List),
        Some(Value::Null) | None => None,
        Some(_) => atom.scalar.map(Shape::Scalar),
    };
    by_value
        .or(atom.map.as_ref().map(Shape::Map))
        .or(atom.scalar.map(Shape::Scalar))
        .or(atom.list.as_ref().map(Shape::List))
        .unwrap_or(Shape::Nothing)
}

/// Why a value is not of a scalar type. Null is of every type.
fn scalar_problem(scalar: Scalar, value: &Value) -> Option<String> {
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

/// The path element of a list's item; lists without identity have none.
fn item_element(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
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
    list: &List,
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
