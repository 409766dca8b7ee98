//! Values as Go prints them: in messages (`%v`, `%q`, `%#v`) and in the scalars of its JSON
//! encoder. Clients see these texts, so they are part of the interface.

use std::fmt::Write as _;

use api_meta::go_text::quoted;
use serde_json::Value;

use crate::value::{Num, num};

/// The text of a decoded value that Go's `%v` prints.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match num(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(float) => general(float),
        },
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// The text of a decoded value that Go's `%#v` prints.
pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        scalar => plain(scalar),
    }
}

/// The name of the Go type that a value decodes into.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) => match num(number) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The text of a value within a path: strings are quoted, everything else is as in [`plain`].
pub fn in_path(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_path).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", in_path(value))).collect()
        }
        scalar => plain(scalar),
    }
}

/// Go's `%g` with the fewest digits: with an exponent below 1e-4 and from 1e6.
fn general(float: f64) -> String {
    if float == 0.0 {
        return fixed(float);
    }
    let (digits, exponent) = scientific(float);
    if (-4..6).contains(&exponent) {
        return fixed(float);
    }
    with_exponent(float, &digits, exponent, 2)
}

/// The text of a float that Go's JSON encoders write.
pub fn json_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let (digits, exponent) = scientific(float);
        let width = if exponent < 0 { 1 } else { 2 };
        return with_exponent(float, &digits, exponent, width);
    }
    fixed(float)
}

/// The fewest decimal digits that identify the float, and the exponent of the first.
fn scientific(float: f64) -> (String, i32) {
    let text = format!("{:e}", float.abs());
    let (mantissa, exponent) = text.split_once('e').expect("this format has an exponent");
    (mantissa.replace('.', ""), exponent.parse().expect("the exponent of a float is small"))
}

fn fixed(float: f64) -> String {
    format!("{float}")
}

fn with_exponent(float: f64, digits: &str, exponent: i32, width: usize) -> String {
    let minus = if float < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{minus}{first}{point}{rest}e{sign}{:0width$}", exponent.abs())
}

/// Appends a JSON string as Go writes it inside a key or value of a path element. `escape_html`
/// escapes `<`, `>` and `&` too.
pub fn json_string(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if (char as u32) < 0x20 => {
                push_formatted(out, format_args!("\\u{:04x}", char as u32))
            }
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape_html => {
                push_formatted(out, format_args!("\\u{:04x}", char as u32));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

fn push_formatted(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string succeeds");
}
