//! Why a body is not valid JSON, in Go's messages, which clients and users know.

use serde_json::Value;
use serde_json::error::Category;

/// Levels of nesting that an object may have. The JSON parser accepts 127, and the server adds
/// some: [`OWNERS_DEPTH`], three for a review that contains the object, and so on.
pub const DEPTH_MAX: usize = 100;
/// Additional levels of `managedFields` compared with the fields that they describe.
pub const OWNERS_DEPTH: usize = 5;
/// The message for a body with more than [`DEPTH_MAX`] levels.
pub const TOO_DEEP: &str = "exceeded max depth";

/// Levels of nesting: 0 for a number, 1 for a list of numbers.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Like [`depth`], but `managedFields` count like the fields that they describe.
pub fn object_depth(object: &Value) -> usize {
    let Some(members) = object.as_object() else { return depth(object) };
    let others = members.iter().filter(|(key, _)| *key != "metadata");
    let others = others.map(|(_, value)| 1 + depth(value));
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let metadata = metadata.map(|(key, value)| match key.as_str() {
        "managedFields" => (2 + depth(value)).saturating_sub(OWNERS_DEPTH),
        _ => 2 + depth(value),
    });
    others.chain(metadata).max().unwrap_or(1)
}

/// The message for a `serde_json` failure on `body`, like that of `encoding/json`.
pub fn syntax_problem(body: &[u8], error: &serde_json::Error) -> String {
    if error.classify() == Category::Eof || body.iter().all(u8::is_ascii_whitespace) {
        return "unexpected end of JSON input".to_owned();
    }
    if error.to_string().starts_with("recursion limit exceeded") {
        return TOO_DEEP.to_owned();
    }
    let line = body.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1));
    let rest = line.and_then(|line| line.get(error.column().saturating_sub(1)..));
    let character = rest.and_then(|rest| {
        let text = String::from_utf8_lossy(&rest[..rest.len().min(4)]);
        text.chars().next()
    });
    let Some(character) = character else {
        return "unexpected end of JSON input".to_owned();
    };
    let text = error.to_string();
    let position = if text.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if text.starts_with("trailing characters") {
        "after top-level value"
    } else if text.starts_with("expected `:`") {
        "after object key"
    } else if text.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.starts_with("expected `,` or `]`") {
        "after array element"
    } else {
        "looking for beginning of value"
    };
    format!("invalid character {} {position}", quoted(character))
}

fn quoted(character: char) -> String {
    match character {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        control if control.is_control() => format!("'{}'", control.escape_default()),
        other => format!("'{other}'"),
    }
}

/// Go's name of the JSON type of a value in its messages.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go prints it with `%v`: `map[a:1 b:[x y]]`.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let items: Vec<String> =
                map.iter().map(|(k, v)| format!("{k}:{}", go_text(v))).collect();
            format!("map[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}
