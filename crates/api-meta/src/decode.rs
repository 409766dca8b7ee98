//! Why a body is no JSON, in Go's words, because clients and people know them.

use serde_json::Value;
use serde_json::error::Category;

/// The message for a `serde_json` failure on `body`.
pub fn syntax_problem(body: &[u8], error: &serde_json::Error) -> String {
    if error.classify() == Category::Eof || body.iter().all(u8::is_ascii_whitespace) {
        return "unexpected end of JSON input".to_owned();
    }
    if error.to_string().starts_with("recursion limit exceeded") {
        return "exceeded max depth".to_owned();
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
    let place = if text.starts_with("key must be a string") {
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
    format!("invalid character {} {place}", quoted(character))
}

fn quoted(character: char) -> String {
    match character {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        control if control.is_control() => format!("'{}'", control.escape_default()),
        other => format!("'{other}'"),
    }
}

/// What Go calls the JSON type of a value in its complaints.
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
