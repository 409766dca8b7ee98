//! `"…%s…".format([…])`, with numbers in upstream's English format.

pub(crate) mod template;

use api_meta::go_text::quoted;

use self::template::{Clause, Piece, pieces};
use crate::limits::{TEXT_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::value::{EvalFailure, EvalResult, List, Map, Value, fail};

/// Default number of digits behind the decimal point.
const PRECISION: usize = 6;

/// The prefix of the reason why a value cannot be formatted.
pub(crate) const DURING: &str = "error during formatting: ";

pub(super) fn format<'a>(template: &str, args: &List<'a>) -> EvalResult<'a> {
    let mut out = String::new();
    let mut next = 0;
    for piece in pieces(template) {
        if let Piece::Text(text) = piece {
            out.push_str(text);
            continue;
        }
        let Some(arg) = args.get(next) else {
            return fail(out_of_range(next));
        };
        next += 1;
        match piece {
            Piece::Clause(Ok(clause)) => {
                let arg = arg?;
                one(clause, &arg, &mut out)?;
            }
            Piece::Clause(Err(error)) => return fail(error),
            _ => return fail(UNEXPECTED_END),
        }
        if out.len() > TEXT_BYTES_MAX {
            return Err(EvalFailure::Cost);
        }
    }
    Ok(Value::text(out))
}

pub(crate) const UNEXPECTED_END: &str = "unexpected end of string";

pub(crate) fn out_of_range(index: usize) -> String {
    format!("index {index} out of range")
}

/// Why a clause does not accept a value of the type.
pub(crate) fn mismatch(kind: u8, found: &str) -> String {
    let rule = match kind {
        b'd' => "decimal clause can only be used on integers",
        b'f' => "fixed-point clause can only be used on doubles",
        b'e' => "scientific clause can only be used on doubles",
        b'b' => "only integers and bools can be formatted as binary",
        b'o' => "octal clause can only be used on integers",
        b'x' | b'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
             types, durations, and timestamps"
        }
    };
    format!("{DURING}{rule}, was given {found}")
}

fn one(clause: Clause, value: &Value<'_>, out: &mut String) -> Result<(), EvalFailure> {
    let digits = clause.precision.unwrap_or(PRECISION);
    let text = match (clause.kind, value) {
        (b's', value) => return plain(value, out, 0),
        (b'd', Value::Int(value)) => Some(value.to_string()),
        (b'd', Value::Uint(value)) => Some(value.to_string()),
        (b'f', _) => as_double(value).map(|value| fixed_point(value, digits)),
        (b'e', _) => as_double(value).map(|value| scientific(value, digits)),
        (b'b', Value::Int(value)) if *value < 0 => Some(format!("-{:b}", value.unsigned_abs())),
        (b'b', Value::Int(value)) => Some(format!("{value:b}")),
        (b'b', Value::Uint(value)) => Some(format!("{value:b}")),
        (b'b', Value::Bool(value)) => Some(u8::from(*value).to_string()),
        (b'o', Value::Int(value)) if *value < 0 => Some(format!("-{:o}", value.unsigned_abs())),
        (b'o', Value::Int(value)) => Some(format!("{value:o}")),
        (b'o', Value::Uint(value)) => Some(format!("{value:o}")),
        (b'x', _) => hexadecimal(value),
        (b'X', _) => hexadecimal(value).map(|text| text.to_uppercase()),
        _ => None,
    };
    match text {
        Some(text) => {
            out.push_str(&text);
            Ok(())
        }
        None => fail(mismatch(clause.kind, value.to_type().name())),
    }
}

fn hexadecimal(value: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(match value {
        Value::Int(value) if *value < 0 => format!("-{:x}", value.unsigned_abs()),
        Value::Int(value) => format!("{value:x}"),
        Value::Uint(value) => format!("{value:x}"),
        Value::Text(text) => bytes(text.as_bytes()),
        Value::Bytes(found) => bytes(found),
        _ => return None,
    })
}

/// A number, from a number or from the name of one without digits, such as `NaN`.
fn as_double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::Text(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn without_digits(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// `1,234.500000`.
fn fixed_point(value: f64, digits: usize) -> String {
    if let Some(text) = without_digits(value) {
        return text.to_owned();
    }
    let text = format!("{value:.digits$}");
    let start = usize::from(text.starts_with('-'));
    let end = text.find('.').unwrap_or(text.len());
    let mut out = String::with_capacity(text.len() + text.len() / 3);
    for (at, c) in text.char_indices() {
        if at > start && at < end && (end - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1.500000×10⁰³`: the exponent has at least two digits. Upstream uses the requested digits behind
/// the decimal point as the width.
fn scientific(value: f64, width: usize) -> String {
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = match without_digits(value) {
        Some(text) => text.to_owned(),
        None => {
            let text = format!("{value:.PRECISION$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ("⁻", rest),
                None => ("", exponent),
            };
            let digits = format!("{exponent:0>2}");
            let digits: String =
                digits.bytes().map(|digit| SUPERSCRIPTS[usize::from(digit - b'0')]).collect();
            format!("{mantissa}×10{sign}{digits}")
        }
    };
    format!("{text:>width$}")
}

fn too_large(out: &str, depth: usize) -> Result<(), EvalFailure> {
    if depth > VALUE_DEPTH_MAX || out.len() > TEXT_BYTES_MAX {
        Err(EvalFailure::Cost)
    } else {
        Ok(())
    }
}

/// A value as `%s` formats it.
fn plain(value: &Value<'_>, out: &mut String, depth: usize) -> Result<(), EvalFailure> {
    too_large(out, depth)?;
    match value {
        Value::Text(text) => out.push_str(text),
        Value::Bytes(bytes) => out.push_str(utf8(bytes)?),
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Uint(value) => out.push_str(&value.to_string()),
        Value::Double(value) => out.push_str(&super::convert::double_text(*value)),
        Value::Timestamp(time) => out.push_str(&time.to_string()),
        Value::Duration(duration) => out.push_str(&duration.to_string()),
        Value::Type(named) => out.push_str(named.name()),
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
        other => return fail(mismatch(b's', other.to_type().name())),
    }
    Ok(())
}

fn utf8(bytes: &[u8]) -> Result<&str, EvalFailure> {
    std::str::from_utf8(bytes).or_else(|_| {
        fail(format!(
            "{DURING}could not convert argument \"invalid UTF-8 in bytes, cannot convert to \
             string\" to string"
        ))
    })
}

/// A value inside a list or map, in the syntax of expressions.
fn inner(value: &Value<'_>, out: &mut String, depth: usize) -> Result<(), EvalFailure> {
    let text = match value {
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => format!("b{}", quoted(utf8(bytes)?)),
        Value::Double(value) if value.is_nan() => quoted("NaN"),
        Value::Double(value) if value.is_infinite() => {
            quoted(if *value > 0.0 { "+Inf" } else { "-Inf" })
        }
        Value::Double(value) => format!("{value:.PRECISION$}"),
        Value::Timestamp(time) => format!("timestamp(\"{time}\")"),
        Value::Duration(duration) => format!("duration(\"{duration}\")"),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Type(_)
        | Value::List(_)
        | Value::Map(_) => return plain(value, out, depth),
        other => {
            let kind = other.to_type();
            return fail(format!("{DURING}no formatting function for {}", kind.name()));
        }
    };
    out.push_str(&text);
    Ok(())
}

/// Entries sorted by their keys.
fn entries(map: &Map<'_>, out: &mut String, depth: usize) -> Result<(), EvalFailure> {
    let mut texts = Vec::new();
    for key in map.keys() {
        let mut name = String::new();
        if matches!(key, Value::Double(_)) {
            let kind = key.to_type();
            return fail(format!(
                "{DURING}no formatting function for map key of type {}",
                kind.name()
            ));
        }
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
