//! Messages, which expressions of mutations make: objects, named by the path of their field
//! (`Object`, `Object.spec`), and operations of a JSON patch (`JSONPatch`).
//!
//! Nothing is declared of the fields of objects. Whether an object fits its kind is found out where
//! it is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Type;
use crate::value::{Failure, List, Map, Value, fail};

/// The type of an object as a whole. Those of its fields begin with it.
pub const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// Which types and functions expressions know beside their inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Those of every expression.
    Rules,
    /// Messages and the functions for them as well.
    Mutations,
}

/// A message that an expression made.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    name: Arc<str>,
    fields: BTreeMap<Box<str>, Value<'a>>,
}

/// The type of this name, if it is one of a message.
pub(crate) fn named(name: &str) -> Option<Type> {
    let path =
        name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    (path || name == JSON_PATCH).then(|| Type::Message(name.into()))
}

/// Whether only [`Vocabulary::Mutations`] has the function.
pub(crate) fn is_function(name: &str) -> bool {
    name.starts_with("jsonpatch.")
}

/// What a field of a message may hold.
pub(crate) fn field_type(message: &str, field: &str) -> Type {
    match (message, field) {
        (JSON_PATCH, "op" | "path" | "from") => Type::Text,
        (JSON_PATCH, "value") => Type::Dyn,
        (JSON_PATCH, _) => Type::Error,
        _ => Type::Dyn,
    }
}

impl<'a> Message<'a> {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), fields: BTreeMap::new() }
    }

    pub(crate) fn set(&mut self, field: &str, value: Value<'a>) {
        self.fields.insert(field.into(), value);
    }

    pub(crate) fn unset(&mut self, field: &str) {
        self.fields.remove(field);
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fields that are set, by their names in JSON.
    pub fn fields(&self) -> &BTreeMap<Box<str>, Value<'a>> {
        &self.fields
    }

    /// What the checker could not see of dynamic values.
    pub(crate) fn check(&self) -> Result<(), Failure> {
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

    /// Whether the objects inside are named by the paths of their fields, as in
    /// `Object{spec: Object.spec{}}`. Items of lists and values of maps are named as the list or map.
    ///
    /// # Errors
    /// Every name that is another, a line each, in the words of Kubernetes.
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

/// What Go calls a value that is no text.
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
