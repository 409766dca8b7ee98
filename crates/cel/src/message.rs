//! Messages, which expressions of mutations produce: objects, whose types are named by the path of
//! their field (`Object`, `Object.spec`), and operations of a JSON patch (`JSONPatch`).
//!
//! The fields of objects have no declared types. An object is validated against its kind where it
//! is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Type;
use crate::value::{EvalFailure, List, Map, Value, fail};

/// The type name of a whole object. The type names of its fields begin with it.
pub const OBJECT: &str = "Object";
/// The type name of an operation of a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// The types and functions that expressions can use, in addition to their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// The types and functions of every expression.
    Rules,
    /// Messages and their functions in addition.
    Mutations,
}

/// A message that an expression produced.
#[derive(Clone, Debug)]
pub struct MessageValue<'a> {
    name: Arc<str>,
    fields: BTreeMap<Box<str>, Value<'a>>,
}

/// The message type of this name, if there is one.
pub(crate) fn message_type(name: &str) -> Option<Type> {
    let path =
        name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    (path || name == JSON_PATCH).then(|| Type::Message(name.into()))
}

/// Whether only [`Vocabulary::Mutations`] has this function.
pub(crate) fn is_function(name: &str) -> bool {
    name.starts_with("jsonpatch.")
}

/// The type of a field of a message.
pub(crate) fn field_type(message: &str, field: &str) -> Type {
    match (message, field) {
        (JSON_PATCH, "op" | "path" | "from") => Type::Text,
        (JSON_PATCH, "value") => Type::Dyn,
        (JSON_PATCH, _) => Type::Error,
        _ => Type::Dyn,
    }
}

impl<'a> MessageValue<'a> {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), fields: BTreeMap::new() }
    }

    pub(crate) fn set(&mut self, field: &str, value: Value<'a>) {
        self.fields.insert(field.into(), value);
    }

    pub(crate) fn unset(&mut self, field: &str) {
        self.fields.remove(field);
    }

    /// The type name, such as `Object.spec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields that are set, by their JSON names.
    pub fn fields(&self) -> &BTreeMap<Box<str>, Value<'a>> {
        &self.fields
    }

    /// Checks the types of dynamic values, which the type checker does not know.
    pub(crate) fn check(&self) -> Result<(), EvalFailure> {
        if &*self.name != JSON_PATCH {
            return Ok(());
        }
        for (field, value) in &self.fields {
            match (&**field, value) {
                ("op" | "path" | "from", Value::Text(_)) | ("value", _) => {}
                ("op" | "path" | "from", other) => {
                    let found = go_type(other);
                    return fail(format!(
                        "unexpected type {found} for JSONPatchType '{field}' field"
                    ));
                }
                _ => return fail(format!("unexpected JSONPatchType field: {field}")),
            }
        }
        Ok(())
    }

    /// Checks that the types of nested objects are named by the paths of their fields, as in
    /// `Object{spec: Object.spec{}}`. Items of lists and values of maps have the type name of the
    /// list or map.
    ///
    /// # Errors
    /// One line per wrong name, in the text of kube-apiserver.
    pub(crate) fn check_names(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        self.find_misnamed(&self.name, &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    fn find_misnamed(&self, path: &str, problems: &mut Vec<String>) {
        let name = &*self.name;
        if name != path {
            problems.push(format!(
                "unexpected type name {name:?}, expected {path:?}, which matches field name path \
                 from root Object type"
            ));
        }
        for (field, value) in &self.fields {
            find_misnamed(value, &format!("{path}.{field}"), problems);
        }
    }
}

fn find_misnamed(value: &Value<'_>, path: &str, problems: &mut Vec<String>) {
    match value {
        Value::Message(message) => message.find_misnamed(path, problems),
        Value::List(List::Made(items)) => {
            items.iter().for_each(|item| find_misnamed(item, path, problems));
        }
        Value::Map(Map::Made(made)) => {
            made.entries().iter().for_each(|(_, value)| find_misnamed(value, path, problems));
        }
        _ => {}
    }
}

/// The Go type of a value that is no text.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(List::Made(_)) => "[]ref.Val",
        Value::List(_) => "[]interface {}",
        Value::Map(Map::Made(_)) => "map[ref.Val]ref.Val",
        _ => "map[string]interface {}",
    }
}
