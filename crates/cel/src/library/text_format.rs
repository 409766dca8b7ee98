//! `"…%s…".format([…])`.

use crate::limits::{TEXT_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::value::{Failure, List, Map, Outcome, Value, fail};

/// Digits behind the point where none are asked for.
const PRECISION: usize = 6;
/// Digits behind the point that can be asked for.
const PRECISION_MAX: usize = 1000;

pub(super) fn format<'a>(template: &str, args: &List<'a>) -> Outcome<'a> {
    let mut out = String::new();
    let mut next = 0;
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        let precision = match rest.strip_prefix('.') {
            None => None,
            Some(tail) => {
                let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
                let digits = tail[..end].parse().ok().filter(|digits| *digits <= PRECISION_MAX);
                let Some(digits) = digits else {
                    return fail("could not parse precision specifier");
                };
                rest = &tail[end..];
                Some(digits)
            }
        };
        let Some(clause) = rest.chars().next() else {
            return fail("unexpected end of string");
        };
        rest = &rest[clause.len_utf8()..];
        let Some(arg) = args.get(next) else {
            return fail(format!("index {next} out of range"));
        };
        next += 1;
        one(clause, precision, &arg?, &mut out)?;
        if out.len() > TEXT_BYTES_MAX {
            return Err(Failure::Cost);
        }
    }
    out.push_str(rest);
    Ok(Value::text(out))
}

fn one(
    clause: char,
    precision: Option<usize>,
    value: &Value<'_>,
    out: &mut String,
) -> Result<(), Failure> {
    let wrong = |text: &str| {
        fail(format!("error during formatting: {text}, was given {}", value.to_type()))
    };
    let digits = precision.unwrap_or(PRECISION);
    let text = match (clause, value) {
        ('s', value) => return plain(value, out, 0),
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('d', _) => return wrong("decimal clause can only be used on integers"),
        ('f', _) => match as_double(value) {
            Some(value) => format!("{value:.digits$}"),
            None => return wrong("fixed-point clause can only be used on doubles"),
        },
        ('e', _) => match as_double(value) {
            Some(value) => scientific(value, digits),
            None => return wrong("scientific clause can only be used on doubles"),
        },
        ('b', Value::Int(value)) if *value < 0 => format!("-{:b}", value.unsigned_abs()),
        ('b', Value::Int(value)) => format!("{value:b}"),
        ('b', Value::Uint(value)) => format!("{value:b}"),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('b', _) => return wrong("only integers and bools can be formatted as binary"),
        ('o', Value::Int(value)) if *value < 0 => format!("-{:o}", value.unsigned_abs()),
        ('o', Value::Int(value)) => format!("{value:o}"),
        ('o', Value::Uint(value)) => format!("{value:o}"),
        ('o', _) => return wrong("octal clause can only be used on integers"),
        ('x' | 'X', _) => {
            let lower = match value {
                Value::Int(value) if *value < 0 => format!("-{:x}", value.unsigned_abs()),
                Value::Int(value) => format!("{value:x}"),
                Value::Uint(value) => format!("{value:x}"),
                Value::Text(text) => hex(text.as_bytes()),
                Value::Bytes(bytes) => hex(bytes),
                _ => {
                    return wrong(
                        "only integers, byte buffers, and strings can be formatted as hex",
                    );
                }
            };
            if clause == 'X' { lower.to_uppercase() } else { lower }
        }
        (other, _) => return fail(format!("unrecognized formatting clause \"{other}\"")),
    };
    out.push_str(&text);
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        _ => None,
    }
}

/// `1.5e+03`: the exponent with a sign and at least two digits.
fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// A value as `%s` writes it.
fn plain(value: &Value<'_>, out: &mut String, depth: usize) -> Result<(), Failure> {
    if depth > VALUE_DEPTH_MAX || out.len() > TEXT_BYTES_MAX {
        return Err(Failure::Cost);
    }
    match value {
        Value::Text(text) => out.push_str(text),
        Value::Bytes(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Uint(value) => out.push_str(&value.to_string()),
        Value::Double(value) => out.push_str(&super::convert::double_text(*value)),
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Duration(duration) => out.push_str(&duration.to_string()),
        Value::Type(named) => out.push_str(&named.to_string()),
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                inner(&item?, out, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => entries(map, out, depth)?,
        other => {
            return fail(format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, \
                 ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                other.to_type()
            ));
        }
    }
    Ok(())
}

/// A value inside a list or map: texts are quoted there.
fn inner(value: &Value<'_>, out: &mut String, depth: usize) -> Result<(), Failure> {
    match value {
        Value::Text(text) => {
            out.push_str(&super::text::quote(text));
            Ok(())
        }
        other => plain(other, out, depth),
    }
}

/// Entries in the order of their keys.
fn entries(map: &Map<'_>, out: &mut String, depth: usize) -> Result<(), Failure> {
    let mut texts = Vec::new();
    for key in map.keys() {
        let mut name = String::new();
        inner(&key, &mut name, depth + 1)?;
        if let Some(value) = map.get(&key) {
            texts.push((name, value?));
        }
    }
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    out.push('{');
    for (index, (name, value)) in texts.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push(':');
        inner(value, out, depth + 1)?;
    }
    out.push('}');
    Ok(())
}
