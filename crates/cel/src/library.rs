//! The functions, by subject.

mod collections;
mod convert;
mod lists;
mod moments;
mod network;
mod numbers;
mod patterns;
pub(crate) mod semver;
pub(crate) mod text;
pub(crate) mod text_format;
pub(crate) mod url;

use crate::authorization;
use crate::eval::Evaluator;
use crate::format;
use crate::operators;
use crate::types::Type;
use crate::value::{EvalFailure, EvalResult, NO_SUCH_OVERLOAD, Value, fail, no_such_overload};

/// The result of a function on values; the receiver is the first.
pub(crate) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &str,
    args: Vec<Value<'a>>,
) -> EvalResult<'a> {
    if let Some(result) = operators::call(evaluator, function, &args) {
        return match (result, args.first()) {
            (Err(EvalFailure::Error(error)), Some(first)) if error == NO_SUCH_OVERLOAD => {
                operators::refuse(function, first)
            }
            (result, _) => result,
        };
    }
    let args = args.as_slice();
    let result = optionals(function, args)
        .or_else(|| convert::call(function, args))
        .or_else(|| text::call(function, args))
        .or_else(|| patterns::call(evaluator, function, args))
        .or_else(|| moments::call(function, args))
        .or_else(|| collections::call(evaluator, function, args))
        .or_else(|| lists::call(evaluator, function, args))
        .or_else(|| numbers::call(function, args))
        .or_else(|| network::call(function, args))
        .or_else(|| url::call(function, args))
        .or_else(|| semver::call(function, args))
        .or_else(|| format::call(function, args))
        .or_else(|| authorization::call(function, args));
    match result.unwrap_or_else(no_such_overload) {
        Err(EvalFailure::Error(error)) if error == NO_SUCH_OVERLOAD => refuse(function, args),
        other => other,
    }
}

/// The error of a function that does not accept these values.
fn refuse<'a>(function: &str, args: &[Value<'a>]) -> EvalResult<'a> {
    match function {
        _ if matches!(args, [Value::Cidr(..), Value::Text(_)]) => no_such_overload(),
        "contains" | "startsWith" | "endsWith" | "matches" | "find" | "findAll" => {
            no_such_overload()
        }
        "size" | "sort" => fail(format!("{NO_SUCH_OVERLOAD}: {function}")),
        _ => {
            let types: Vec<_> = args.iter().map(Value::to_type).collect();
            let names: Vec<_> = types.iter().map(Type::name).collect();
            fail(match (function, names.as_slice()) {
                ("flatten", [list]) => format!("{NO_SUCH_OVERLOAD}: {list}.flatten()"),
                _ => format!("{NO_SUCH_OVERLOAD}: {function}({})", names.join(", ")),
            })
        }
    }
}

fn optionals<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(match (function, args) {
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) if is_zero(value) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) => Ok(Value::some(value.clone())),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(Some(value))]) => Ok((**value).clone()),
        ("value", [Value::Optional(None)]) => fail("optional.none() dereference"),
        _ => return None,
    })
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::Text(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.0 == 0,
        _ => false,
    }
}
