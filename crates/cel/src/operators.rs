//! Operators on values.

use std::cmp::Ordering;

use crate::ast::operator;
use crate::declared::ListIdentity;
use crate::equality::{compare, equal, has_order, item_key};
use crate::eval::Evaluator;
use crate::limits::{ELEMENTS_MAX, TEXT_BYTES_MAX};
use crate::time::Duration;
use crate::value::{
    EvalFailure, EvalResult, List, Map, NO_SUCH_OVERLOAD, Value, fail, no_such_overload,
};

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const DURATION_OVERFLOW: &str = INT_OVERFLOW;
const TIMESTAMP_OVERFLOW: &str = "timestamp overflow";

/// The position in a list for an index; `None` for a value that is no number.
pub(crate) fn position(index: &Value<'_>) -> Option<i64> {
    match index {
        Value::Int(at) => Some(*at),
        Value::Uint(at) => Some(i64::try_from(*at).unwrap_or(-1)),
        Value::Double(at) if at.fract() == 0.0 => Some(*at as i64),
        _ => None,
    }
}

/// The result of an operator; `None` for other functions.
pub(crate) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &str,
    args: &[Value<'a>],
) -> Option<EvalResult<'a>> {
    Some(match (function, args) {
        (operator::NOT, [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        (operator::NEGATE, [Value::Int(value)]) => {
            or_overflow(value.checked_neg().map(Value::Int), INT_OVERFLOW)
        }
        (operator::NEGATE, [Value::Double(value)]) => Ok(Value::Double(-value)),
        (operator::EQUALS, [a, b]) => equal(a, b, &mut evaluator.work, 0).map(Value::Bool),
        (operator::NOT_EQUALS, [a, b]) => {
            equal(a, b, &mut evaluator.work, 0).map(|same| Value::Bool(!same))
        }
        (operator::LESS, [a, b]) => compare_with(a, b, Ordering::is_lt),
        (operator::LESS_EQUALS, [a, b]) => compare_with(a, b, Ordering::is_le),
        (operator::GREATER, [a, b]) => compare_with(a, b, Ordering::is_gt),
        (operator::GREATER_EQUALS, [a, b]) => compare_with(a, b, Ordering::is_ge),
        (operator::IN, [value, within]) => contains(evaluator, value, within),
        (operator::ADD, [a, b]) => add(a, b),
        (operator::SUBTRACT, [a, b]) => subtract(a, b),
        (operator::MULTIPLY, [Value::Int(a), Value::Int(b)]) => {
            or_overflow(a.checked_mul(*b).map(Value::Int), INT_OVERFLOW)
        }
        (operator::MULTIPLY, [Value::Uint(a), Value::Uint(b)]) => {
            or_overflow(a.checked_mul(*b).map(Value::Uint), UINT_OVERFLOW)
        }
        (operator::MULTIPLY, [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a * b)),
        (operator::DIVIDE, [Value::Int(_), Value::Int(0)])
        | (operator::DIVIDE, [Value::Uint(_), Value::Uint(0)]) => fail("division by zero"),
        (operator::DIVIDE, [Value::Int(a), Value::Int(b)]) => {
            or_overflow(a.checked_div(*b).map(Value::Int), INT_OVERFLOW)
        }
        (operator::DIVIDE, [Value::Uint(a), Value::Uint(b)]) => Ok(Value::Uint(a / b)),
        (operator::DIVIDE, [Value::Double(a), Value::Double(b)]) => Ok(Value::Double(a / b)),
        (operator::MODULO, [Value::Int(_), Value::Int(0)])
        | (operator::MODULO, [Value::Uint(_), Value::Uint(0)]) => fail("modulus by zero"),
        (operator::MODULO, [Value::Int(a), Value::Int(b)]) => {
            or_overflow(a.checked_rem(*b).map(Value::Int), INT_OVERFLOW)
        }
        (operator::MODULO, [Value::Uint(a), Value::Uint(b)]) => Ok(Value::Uint(a % b)),
        (name, _) if name.contains('_') && !name.contains('.') => no_such_overload(),
        _ => return None,
    })
}

/// The error of an operator that does not accept `first`. Upstream names the operator when the type
/// does not support it at all, except for texts and times, which refuse it themselves.
pub(crate) fn refuse<'a>(function: &str, first: &Value<'a>) -> EvalResult<'a> {
    let is_number = matches!(first, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    let takes = match function {
        operator::ADD => has_order(first) && !matches!(first, Value::Bool(_)) || is_list(first),
        operator::SUBTRACT | operator::MULTIPLY | operator::DIVIDE => is_number,
        operator::MODULO => matches!(first, Value::Int(_) | Value::Uint(_)),
        operator::LESS | operator::LESS_EQUALS | operator::GREATER | operator::GREATER_EQUALS => {
            has_order(first)
        }
        operator::NEGATE => matches!(first, Value::Int(_) | Value::Double(_)),
        _ => true,
    };
    let refuses = matches!(first, Value::Text(_) | Value::Timestamp(_) | Value::Duration(_));
    match takes || refuses {
        true => no_such_overload(),
        false => fail(format!("{NO_SUCH_OVERLOAD}: {function}")),
    }
}

fn is_list(value: &Value<'_>) -> bool {
    matches!(value, Value::List(_))
}

fn or_overflow<'a>(value: Option<Value<'a>>, overflow: &str) -> EvalResult<'a> {
    value.map_or_else(|| fail(overflow), Ok)
}

fn compare_with<'a>(a: &Value<'a>, b: &Value<'a>, holds: fn(Ordering) -> bool) -> EvalResult<'a> {
    compare(a, b).map(|order| Value::Bool(holds(order)))
}

fn contains<'a>(
    evaluator: &mut Evaluator<'a>,
    value: &Value<'a>,
    within: &Value<'a>,
) -> EvalResult<'a> {
    match within {
        // The keys of input values are texts.
        Value::Map(Map::Given { .. } | Map::Object { .. }) if !matches!(value, Value::Text(_)) => {
            no_such_overload()
        }
        Value::Map(map) => Ok(Value::Bool(map.get(value).is_some())),
        Value::List(list) => {
            for item in list.iter() {
                if equal(value, &item?, &mut evaluator.work, 0)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        _ => no_such_overload(),
    }
}

fn add<'a>(a: &Value<'a>, b: &Value<'a>) -> EvalResult<'a> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            or_overflow(a.checked_add(*b).map(Value::Int), INT_OVERFLOW)
        }
        (Value::Uint(a), Value::Uint(b)) => {
            or_overflow(a.checked_add(*b).map(Value::Uint), UINT_OVERFLOW)
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::Text(a), Value::Text(b)) => {
            if a.len() + b.len() > TEXT_BYTES_MAX {
                return Err(EvalFailure::Cost);
            }
            Ok(Value::text([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            if a.len() + b.len() > TEXT_BYTES_MAX {
                return Err(EvalFailure::Cost);
            }
            Ok(Value::Bytes([&**a, &**b].concat().into()))
        }
        (Value::List(a), Value::List(b)) => concatenate(a, b),
        (Value::Duration(a), Value::Duration(b)) => {
            let sum = a.0.checked_add(b.0).map(|sum| Value::Duration(Duration(sum)));
            or_overflow(sum, DURATION_OVERFLOW)
        }
        (Value::Timestamp(time), Value::Duration(length))
        | (Value::Duration(length), Value::Timestamp(time)) => {
            or_overflow(time.plus(*length).map(Value::Timestamp), TIMESTAMP_OVERFLOW)
        }
        _ => no_such_overload(),
    }
}

/// Concatenates two lists. In sets and lists with keys, an item of the second list replaces the
/// identical item of the first.
fn concatenate<'a>(a: &List<'a>, b: &List<'a>) -> EvalResult<'a> {
    if a.len() + b.len() > ELEMENTS_MAX {
        return Err(EvalFailure::Cost);
    }
    let mut items = a.iter().collect::<Result<Vec<_>, _>>()?;
    let identity = match a {
        List::Given { identity, .. } => identity,
        List::Made(_) => &ListIdentity::Position,
    };
    let name = |item: &Value<'a>| match identity {
        ListIdentity::Position => None,
        ListIdentity::Value => item.key().map(|key| format!("{key:?}")),
        ListIdentity::Keys(names) => item_key(item, names),
    };
    let mut places: std::collections::HashMap<String, usize> =
        items.iter().enumerate().filter_map(|(index, item)| Some((name(item)?, index))).collect();
    for item in b.iter() {
        let item = item?;
        let key = name(&item);
        match key.as_ref().and_then(|key| places.get(key)) {
            Some(&place) => items[place] = item,
            None => {
                if let Some(key) = key {
                    places.insert(key, items.len());
                }
                items.push(item);
            }
        }
    }
    Ok(Value::list(items))
}

fn subtract<'a>(a: &Value<'a>, b: &Value<'a>) -> EvalResult<'a> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            or_overflow(a.checked_sub(*b).map(Value::Int), INT_OVERFLOW)
        }
        (Value::Uint(a), Value::Uint(b)) => {
            or_overflow(a.checked_sub(*b).map(Value::Uint), UINT_OVERFLOW)
        }
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => {
            let rest = a.0.checked_sub(b.0).map(|rest| Value::Duration(Duration(rest)));
            or_overflow(rest, DURATION_OVERFLOW)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            or_overflow(a.since(*b).map(Value::Duration), DURATION_OVERFLOW)
        }
        (Value::Timestamp(time), Value::Duration(length)) => {
            let moved = length.0.checked_neg().and_then(|back| time.plus(Duration(back)));
            or_overflow(moved.map(Value::Timestamp), TIMESTAMP_OVERFLOW)
        }
        _ => no_such_overload(),
    }
}
