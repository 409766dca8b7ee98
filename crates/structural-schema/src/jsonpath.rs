//! The simple JSON paths of printer columns, scale subresources and selectable fields.
//!
//! `.spec.a`, `.a\.b`, `['a.b']`, `[0]`, `[-1]`, `[*]`, `.*`, and filters that compare one field
//! with a constant: `[?(@.type=="Ready")]`, or test its presence: `[?(@.type)]`. No recursion, no
//! slices, no unions.

use std::cmp::Ordering;

use serde_json::Value;

/// Longest text of a path, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Index(i64),
    All,
    Filter { left: Vec<PathStep>, test: Option<(Comparison, Value)> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    #[error("path is longer than {PATH_BYTES_MAX} bytes")]
    TooLong,
    #[error("unexpected text at \"{0}\"")]
    Unexpected(String),
    #[error("unterminated bracket")]
    Unterminated,
    #[error("invalid filter \"{0}\"")]
    Filter(String),
}

impl JsonPath {
    /// Parses a path such as `.spec.replicas`. Braces around it and a leading `$` are accepted.
    ///
    /// # Errors
    /// The text is longer than [`PATH_BYTES_MAX`] or not such a path. A definition with it is
    /// refused.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(JsonPathError::TooLong);
        }
        let inner = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
        let inner = inner.unwrap_or(text);
        let inner = inner.strip_prefix('$').unwrap_or(inner);
        steps(inner).map(Self)
    }

    /// All values at the path, in document order.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        find(&self.0, value)
    }

    /// The first value at the path; `None` when there is none.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).into_iter().next()
    }

    /// The field names when the path consists only of fields; else `None`.
    pub fn fields(&self) -> Option<Vec<String>> {
        self.0
            .iter()
            .map(|step| match step {
                PathStep::Field(name) => Some(name.clone()),
                _ => None,
            })
            .collect()
    }
}

fn find<'a>(steps: &[PathStep], value: &'a Value) -> Vec<&'a Value> {
    let mut current = vec![value];
    for step in steps {
        current = current.into_iter().flat_map(|value| advance(step, value)).collect();
    }
    current
}

fn advance<'a>(step: &PathStep, value: &'a Value) -> Vec<&'a Value> {
    match step {
        PathStep::Field(name) => value.get(name).into_iter().collect(),
        PathStep::Index(index) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let index = if *index < 0 { *index + items.len() as i64 } else { *index };
            usize::try_from(index).ok().and_then(|index| items.get(index)).into_iter().collect()
        }
        PathStep::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        },
        PathStep::Filter { left, test } => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter(|item| holds(left, test.as_ref(), item)).collect()
        }
    }
}

fn holds(left: &[PathStep], test: Option<&(Comparison, Value)>, item: &Value) -> bool {
    let found = find(left, item);
    let Some((comparison, expected)) = test else {
        return !found.is_empty();
    };
    found.into_iter().any(|value| {
        let order = match (value, expected) {
            (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        };
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    })
}

fn steps(text: &str) -> Result<Vec<PathStep>, JsonPathError> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = bracket_end(inner).ok_or(JsonPathError::Unterminated)?;
            steps.push(bracket(&inner[..end])?);
            rest = &inner[end + 1..];
            continue;
        }
        // Only the first field may have no dot.
        let field = match rest.strip_prefix('.') {
            Some(field) => field,
            None if steps.is_empty() => rest,
            None => return Err(JsonPathError::Unexpected(rest.to_owned())),
        };
        if field.starts_with('.') {
            return Err(JsonPathError::Unexpected(rest.to_owned()));
        }
        let (name, tail) = field_name(field);
        match name.as_str() {
            "*" => steps.push(PathStep::All),
            "" if tail.starts_with('[') || (tail.is_empty() && text == ".") => {}
            "" => return Err(JsonPathError::Unexpected(rest.to_owned())),
            _ => steps.push(PathStep::Field(name)),
        }
        rest = tail;
    }
    Ok(steps)
}

/// A name up to the next dot or bracket; a backslash takes the next character literally.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, &text[index..]),
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => name.push(c),
        }
    }
    (name, "")
}

/// Position of the matching closing bracket. Skips nested brackets and brackets in quotes.
fn bracket_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(text: &str) -> Result<PathStep, JsonPathError> {
    let text = text.trim();
    if text == "*" {
        return Ok(PathStep::All);
    }
    if let Some(name) = unquote(text) {
        return Ok(PathStep::Field(name));
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        return parse_filter(filter.trim());
    }
    text.parse().map(PathStep::Index).map_err(|_| JsonPathError::Unexpected(text.to_owned()))
}

fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text[1..].strip_suffix(quote)?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    Some(out)
}

fn parse_filter(text: &str) -> Result<PathStep, JsonPathError> {
    let invalid = || JsonPathError::Filter(text.to_owned());
    let body = text.strip_prefix('@').ok_or_else(invalid)?;
    let Some((at, operator, comparison)) = find_operator(body) else {
        return Ok(PathStep::Filter { left: steps(body.trim())?, test: None });
    };
    let left = steps(body[..at].trim())?;
    let right = body[at + operator.len()..].trim();
    let constant = match unquote(right) {
        Some(text) => Value::String(text),
        None => match right {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => serde_json::from_str::<serde_json::Number>(right)
                .map(Value::Number)
                .map_err(|_| invalid())?,
        },
    };
    Ok(PathStep::Filter { left, test: Some((comparison, constant)) })
}

fn find_operator(body: &str) -> Option<(usize, &'static str, Comparison)> {
    const OPERATORS: [(&str, Comparison); 6] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let quoted = body.find(['"', '\'']).unwrap_or(body.len());
    let found = OPERATORS.iter().filter_map(|(text, comparison)| {
        body[..quoted].find(text).map(|at| (at, *text, *comparison))
    });
    found.min_by_key(|(at, text, _)| (*at, std::cmp::Reverse(text.len())))
}
