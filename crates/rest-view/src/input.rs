//! Validates what a client sent against the fields: types, limits, required and writable fields.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, FieldType};
use crate::types::registry::Registry;

static NOTHING: Value = Value::Null;
/// Characters of refused text that the error message repeats.
const SHOWN_CHARACTERS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOperation {
    Create,
    Update,
}

/// Validates the input of a resource. Returns only fields that may be written now, with defaults
/// filled in on create.
///
/// # Errors
/// 422 with the first invalid field.
pub(crate) fn check(
    descriptor: &Descriptor,
    registry: &Registry,
    body: &Map<String, Value>,
    operation: WriteOperation,
) -> Result<Map<String, Value>, ApiError> {
    let checker = InputChecker { registry, version: &descriptor.version };
    let fields = descriptor.fields.values().map(|field| {
        // The namespace of these types follows from the parent.
        let from_parent = descriptor.parent_field.is_some() && field.name == "namespaceId";
        (field, field.required && !from_parent)
    });
    checker.fields(fields, body, operation)
}

/// Validates the input of an action.
///
/// # Errors
/// 422 with the first invalid field.
pub(crate) fn check_struct(
    registry: &Registry,
    version: &str,
    id: &str,
    body: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let Some(kind) = registry.struct_type(version, id) else { return Ok(body.clone()) };
    let checker = InputChecker { registry, version };
    let fields = kind.fields.iter().map(|field| (field, field.required));
    checker.fields(fields, body, WriteOperation::Create)
}

struct InputChecker<'a> {
    registry: &'a Registry,
    version: &'a str,
}

impl InputChecker<'_> {
    fn fields<'f>(
        &self,
        fields: impl Iterator<Item = (&'f Field, bool)>,
        body: &Map<String, Value>,
        operation: WriteOperation,
    ) -> Result<Map<String, Value>, ApiError> {
        let mut out = Map::new();
        for (field, required) in fields {
            let writable = match operation {
                WriteOperation::Create => field.create,
                WriteOperation::Update => field.update,
            };
            if !writable {
                continue;
            }
            let sent = body.get(&field.name).map(|value| plain(&field.kind, value));
            let is_create = operation == WriteOperation::Create;
            let is_empty_list =
                required && sent.and_then(Value::as_array).is_some_and(Vec::is_empty);
            let says_nothing = |value: &Value| match field.kind {
                FieldType::Password => value.is_null() || value == "",
                _ => value.is_null() || is_blank(value),
            };
            let missing = is_empty_list || sent.is_none_or(says_nothing);
            let is_null = body.get(&field.name).is_some_and(Value::is_null);
            if is_null && !field.nullable && field.default.is_none() {
                return Err(not_nullable(field));
            }
            if is_create && missing && field.default.is_some() {
                out.insert(field.name.clone(), field.default.clone().unwrap_or_default());
                continue;
            }
            if is_create && missing && required {
                let text = format!("missing required {}", field.name);
                return Err(ApiError::invalid_field("MissingRequired", &field.name, text));
            }
            match sent {
                None => {}
                // Null removes on update, and has no effect on create.
                Some(Value::Null) if field.nullable || field.default.is_some() => {
                    let replacement = field.default.clone().unwrap_or_default();
                    out.extend((!is_create).then(|| (field.name.clone(), replacement)));
                }
                Some(Value::Null) => return Err(not_nullable(field)),
                Some(value) => {
                    let value = self.value(field, &field.kind, value, operation)?;
                    limits(field, &value)?;
                    out.insert(field.name.clone(), value);
                }
            }
        }
        Ok(out)
    }

    fn value(
        &self,
        field: &Field,
        kind: &FieldType,
        value: &Value,
        operation: WriteOperation,
    ) -> Result<Value, ApiError> {
        let wrong = || {
            let text = format!("field \"{}\" must be of type {kind}", field.name);
            ApiError::invalid_field("InvalidFormat", &field.name, text)
        };
        match kind {
            FieldType::Json => Ok(value.clone()),
            FieldType::Boolean => match value {
                Value::Bool(_) => Ok(value.clone()),
                Value::String(text) => text.parse::<bool>().map(Value::from).map_err(|_| wrong()),
                _ => Err(wrong()),
            },
            FieldType::Int => match value {
                Value::Number(n) if n.is_i64() => Ok(value.clone()),
                Value::Number(n) => whole(n.as_f64()).map(Value::from).ok_or_else(wrong),
                Value::String(text) => {
                    text.trim().parse::<i64>().map(Value::from).map_err(|_| wrong())
                }
                _ => Err(wrong()),
            },
            FieldType::Float => match value {
                Value::Number(_) => Ok(value.clone()),
                Value::String(text) => {
                    text.trim().parse::<f64>().map(Value::from).map_err(|_| wrong())
                }
                _ => Err(wrong()),
            },
            FieldType::IntOrString => match value {
                Value::Number(_) => Ok(value.clone()),
                Value::String(text) => {
                    Ok(text.parse::<i64>().map_or_else(|_| value.clone(), Value::from))
                }
                _ => Err(wrong()),
            },
            FieldType::Array(of) if **of == FieldType::String && is_labels(field, value) => {
                self.value(field, &FieldType::Map(of.clone()), value, operation)
            }
            FieldType::Array(of) => self.list(field, of, value, operation)?.ok_or_else(wrong),
            FieldType::Map(of) => {
                let entries = value.as_object().ok_or_else(wrong)?;
                let entries = entries.iter().map(|(key, entry)| match entry {
                    Value::Null => Ok((key.clone(), Value::Null)),
                    // Such maps contain whole files, whose final newline matters.
                    Value::String(_) if **of == FieldType::String => {
                        Ok((key.clone(), entry.clone()))
                    }
                    entry => Ok((key.clone(), self.value(field, of, entry, operation)?)),
                });
                Ok(Value::Object(entries.collect::<Result<_, ApiError>>()?))
            }
            FieldType::Struct(id) => {
                let entries = value.as_object().ok_or_else(wrong)?;
                let Some(kind) = self.registry.struct_type(self.version, id) else {
                    return Ok(value.clone());
                };
                let fields = kind.fields.iter().map(|field| (field, field.required));
                Ok(self.fields(fields, entries, operation)?.into())
            }
            _ => text(field, kind, value).unwrap_or_else(|| Err(wrong())),
        }
    }

    /// A list of values of one kind; nothing if it is none.
    fn list(
        &self,
        field: &Field,
        of: &FieldType,
        value: &Value,
        operation: WriteOperation,
    ) -> Result<Option<Value>, ApiError> {
        // A single item is accepted as a list of one.
        let alone = match value {
            Value::String(_) | Value::Number(_) | Value::Bool(_) => Some([value.clone()]),
            _ => None,
        };
        let items = match (&alone, value.as_array()) {
            (Some(only), _) => only.as_slice(),
            (None, Some(items)) => items,
            (None, None) => return Ok(None),
        };
        let items = items.iter().map(|item| match item {
            Value::Null if *of != FieldType::Json => Err(not_nullable(field)),
            item => self.value(field, of, item, operation),
        });
        items.collect::<Result<_, _>>().map(|items| Some(Value::Array(items)))
    }
}

/// Labels among the options of cluster drivers are lists of `key=value`. Clients that know their
/// fields by heart, such as the Terraform provider, send and expect an object.
fn is_labels(field: &Field, value: &Value) -> bool {
    value.is_object() && field.name.to_ascii_lowercase().ends_with("labels")
}

fn not_nullable(field: &Field) -> ApiError {
    let text = format!("field \"{}\" must not be null", field.name);
    ApiError::invalid_field("NotNullable", &field.name, text)
}

/// The value that a form means, which sends a list for each field. Blank text counts as null,
/// except where text is a valid value.
fn plain<'a>(kind: &FieldType, value: &'a Value) -> &'a Value {
    use FieldType::{Array, Base64, IntOrString, Json, Map, Password, String, Struct};
    let value = match (kind, value.as_array().map(Vec::as_slice)) {
        (Array(_) | Map(_) | Struct(_) | Json, _) => return value,
        (_, Some([only])) => only,
        _ => value,
    };
    match kind {
        String | Password | Base64 | IntOrString => value,
        _ if is_blank(value) => &NOTHING,
        _ => value,
    }
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn whole(number: Option<f64>) -> Option<i64> {
    let number = number.filter(|n| n.fract() == 0.0 && n.abs() < 9e15)?;
    Some(number as i64)
}

/// Text of any kind, trimmed and checked. `None`: not text.
fn text(field: &Field, kind: &FieldType, value: &Value) -> Option<Result<Value, ApiError>> {
    let text = match value {
        Value::String(text) if *kind == FieldType::Password => text.clone(),
        Value::String(text) => text.trim().to_owned(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return None,
    };
    let refuse = |code: &str, must: &str| {
        let message = format!("field \"{}\" {must}, but is \"{}\"", field.name, shortened(&text));
        Some(Err(ApiError::invalid_field(code, &field.name, message)))
    };
    match kind {
        FieldType::DnsLabel if !is_dns_label(&text) => refuse(
            "InvalidFormat",
            "must be at most 63 lower-case letters, digits or '-', with a letter or digit at both \
             ends",
        ),
        FieldType::DnsLabelRestricted
            if !is_dns_label(&text) || text.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            refuse(
                "InvalidFormat",
                "must be at most 63 lower-case letters, digits or '-', begin with a letter and \
                 end with a letter or digit",
            )
        }
        FieldType::Hostname if text.len() > 253 || !text.split('.').all(is_dns_label) => {
            refuse("InvalidFormat", "must be a DNS name in lower case")
        }
        FieldType::Date if text.parse::<Timestamp>().is_err() => {
            refuse("InvalidDateFormat", "must be a time as in 2006-01-02T15:04:05Z")
        }
        FieldType::Enum | FieldType::String
            if !field.options.is_empty() && !field.options.contains(&text) =>
        {
            refuse("InvalidOption", &format!("must be one of: {}", field.options.join(", ")))
        }
        _ => Some(Ok(text.into())),
    }
}

/// The beginning of the text, enough to recognise it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_dns_label(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inside)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn limits(field: &Field, value: &Value) -> Result<(), ApiError> {
    let refuse = |code: &str, must: String| {
        let text = format!("field \"{}\" must {must}", field.name);
        Err(ApiError::invalid_field(code, &field.name, text))
    };
    if let Some(items) = value.as_array() {
        return items.iter().try_for_each(|item| limits(field, item));
    }
    if let Some(text) = value.as_str() {
        let forbidden = |c: &char| {
            let outside = !field.valid_chars.is_empty() && !field.valid_chars.contains(*c);
            outside || field.invalid_chars.contains(*c)
        };
        if let Some(found) = text.chars().find(forbidden) {
            return refuse("InvalidCharacters", format!("not have the character {found:?}"));
        }
        let length = text.chars().count() as u64;
        if let Some(min) = field.min_length.filter(|min| length < *min) {
            return refuse("MinLengthExceeded", format!("have at least {min} characters"));
        }
        if let Some(max) = field.max_length.filter(|max| length > *max) {
            return refuse("MaxLengthExceeded", format!("have at most {max} characters"));
        }
    }
    if let Some(number) = value.as_i64() {
        if let Some(min) = field.min.filter(|min| number < *min) {
            return refuse("MinLimitExceeded", format!("be at least {min}"));
        }
        if let Some(max) = field.max.filter(|max| number > *max) {
            return refuse("MaxLimitExceeded", format!("be at most {max}"));
        }
    }
    Ok(())
}
