//! Conversions between types.

use std::rc::Rc;

use crate::time::{Duration, Timestamp};
use crate::value::{EvalResult, Value, fail};

/// The first double that is no 64-bit integer.
const INT_LIMIT: f64 = 9_223_372_036_854_775_808.0;
/// The first double that is no unsigned 64-bit integer.
const UINT_LIMIT: f64 = 18_446_744_073_709_551_616.0;

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    let [value] = args else {
        return None;
    };
    Some(match (function, value) {
        ("dyn", value) => Ok(value.clone()),
        ("type", value) => Ok(Value::Type(Rc::new(value.to_type()))),
        ("bool", Value::Bool(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("double", Value::Double(_))
        | ("string", Value::Text(_))
        | ("bytes", Value::Bytes(_))
        | ("timestamp", Value::Timestamp(_))
        | ("duration", Value::Duration(_)) => Ok(value.clone()),
        ("bool", Value::Text(text)) => to_bool(text),
        ("int", _) => to_int(value)?,
        ("uint", _) => to_uint(value)?,
        ("double", _) => to_double(value)?,
        ("string", _) => to_text(value)?,
        ("bytes", Value::Text(text)) => Ok(Value::Bytes(text.as_bytes().into())),
        ("timestamp", Value::Text(text)) => match Timestamp::parse(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => fail("type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        },
        ("timestamp", Value::Int(seconds)) => match Timestamp::from_seconds(*seconds) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => fail("timestamp overflow"),
        },
        ("duration", Value::Text(text)) => match Duration::parse(text) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => fail("type conversion error from 'string' to 'google.protobuf.Duration'"),
        },
        // Declared, but no function returns it.
        ("duration", Value::Int(_)) => {
            fail("type conversion error from 'int' to 'google.protobuf.Duration'")
        }
        _ => return None,
    })
}

fn to_bool<'a>(text: &str) -> EvalResult<'a> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        _ => fail("type conversion error from 'string' to 'bool'"),
    }
}

fn to_int<'a>(value: &Value<'a>) -> Option<EvalResult<'a>> {
    let overflow = || fail("integer overflow");
    Some(match value {
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).or_else(|_| overflow()),
        Value::Double(value) if value.abs() < INT_LIMIT => Ok(Value::Int(*value as i64)),
        Value::Double(_) => overflow(),
        Value::Text(text) => {
            let number = text.parse().map(Value::Int);
            number.or_else(|_| fail("type conversion error from 'string' to 'int'"))
        }
        Value::Timestamp(time) => Ok(Value::Int(time.seconds())),
        Value::Duration(duration) => Ok(Value::Int(duration.0)),
        _ => return None,
    })
}

fn to_uint<'a>(value: &Value<'a>) -> Option<EvalResult<'a>> {
    let overflow = || fail("unsigned integer overflow");
    Some(match value {
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).or_else(|_| overflow()),
        Value::Double(value) if (0.0..UINT_LIMIT).contains(value) => Ok(Value::Uint(*value as u64)),
        Value::Double(_) => overflow(),
        Value::Text(text) => {
            let number = text.parse().map(Value::Uint);
            number.or_else(|_| fail("type conversion error from 'string' to 'uint'"))
        }
        _ => return None,
    })
}

fn to_double<'a>(value: &Value<'a>) -> Option<EvalResult<'a>> {
    Some(match value {
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::Text(text) => {
            let number = text.parse().map(Value::Double);
            number.or_else(|_| fail("type conversion error from 'string' to 'double'"))
        }
        _ => return None,
    })
}

fn to_text<'a>(value: &Value<'a>) -> Option<EvalResult<'a>> {
    Some(Ok(Value::text(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(address, bits) => format!("{address}/{bits}"),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(fail("invalid UTF-8 in bytes, cannot convert to string")),
        },
        _ => return None,
    })))
}

/// The shortest text that parses as the same double; large and small ones have an exponent.
pub(super) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}
