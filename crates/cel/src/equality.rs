//! Equality and order of values. Numbers compare across types; other types never equal each other.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value as Json;

use crate::declared::ListIdentity;
use crate::limits::{VALUE_DEPTH_MAX, WORK_MAX};
use crate::value::{EvalFailure, List, Map, Value, fail, no_such_overload};

/// Work that the cost model does not count.
#[derive(Debug, Default)]
pub(crate) struct Work(u64);

impl Work {
    /// Adds steps to the total.
    ///
    /// # Errors
    /// [`EvalFailure::Cost`] when the total exceeds [`WORK_MAX`].
    pub fn add(&mut self, steps: u64) -> Result<(), EvalFailure> {
        self.0 = self.0.saturating_add(steps);
        if self.0 > WORK_MAX { Err(EvalFailure::Cost) } else { Ok(()) }
    }
}

/// Steps that one value counts as.
const STEPS: u64 = 50;

pub(crate) fn equal(
    a: &Value<'_>,
    b: &Value<'_>,
    work: &mut Work,
    depth: usize,
) -> Result<bool, EvalFailure> {
    work.add(STEPS)?;
    if depth > VALUE_DEPTH_MAX {
        return fail("values are nested too deep to be compared");
    }
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            numeric(a, b) == Some(Ordering::Equal)
        }
        (Value::Text(a), Value::Text(b)) => {
            work.add(a.len().min(b.len()) as u64 / 8)?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a.same_kind(b),
        (Value::List(a), Value::List(b)) => return lists(a, b, work, depth),
        (Value::Map(a), Value::Map(b)) => return maps(a, b, work, depth),
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => {
            return equal(a, b, work, depth + 1);
        }
        (Value::Quantity(a), Value::Quantity(b)) => a == b,
        (Value::Url(a), Value::Url(b)) => a == b,
        (Value::Ip(a), Value::Ip(b)) => a == b,
        (Value::Cidr(a, x), Value::Cidr(b, y)) => a == b && x == y,
        (Value::Format(a), Value::Format(b)) => std::ptr::eq(*a, *b),
        (Value::Semver(a), Value::Semver(b)) => a == b,
        (Value::Message(a), Value::Message(b)) => {
            let (left, right) = (a.fields(), b.fields());
            if a.name() != b.name() || left.len() != right.len() {
                return Ok(false);
            }
            for ((name, left), (other, right)) in left.iter().zip(right) {
                if name != other || !equal(left, right, work, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Opaque(a), Value::Opaque(b)) => {
            work.add(json_size(a) * STEPS)?;
            a == b
        }
        _ => false,
    })
}

fn json_size(json: &Json) -> u64 {
    match json {
        Json::Array(items) => 1 + items.iter().map(json_size).sum::<u64>(),
        Json::Object(fields) => 1 + fields.values().map(json_size).sum::<u64>(),
        Json::String(text) => 1 + text.len() as u64 / 64,
        _ => 1,
    }
}

fn lists(a: &List<'_>, b: &List<'_>, work: &mut Work, depth: usize) -> Result<bool, EvalFailure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a {
        List::Given { identity: ListIdentity::Value, .. } => {
            let keys = |list: &List<'_>| -> Result<Option<HashSet<_>>, EvalFailure> {
                list.iter().map(|item| Ok(item?.key())).collect()
            };
            if let (Some(a), Some(b)) = (keys(a)?, keys(b)?) {
                work.add(STEPS * a.len() as u64)?;
                return Ok(a == b);
            }
        }
        List::Given { identity: ListIdentity::Keys(names), .. } => {
            return equal_by_key(a, b, names, work, depth);
        }
        _ => {}
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !equal(&a?, &b?, work, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The identity of an item in a list with keys.
pub(crate) fn item_key(item: &Value<'_>, names: &[Box<str>]) -> Option<String> {
    let Value::Map(map) = item else {
        return None;
    };
    let mut key = String::new();
    for name in names {
        let name = crate::declared::escape(name)?;
        let part = map.field(&name).and_then(Result::ok).and_then(|value| value.key());
        key.push_str(&format!("{part:?},"));
    }
    Some(key)
}

/// Lists of items with keys are equal when each item is equal to the one with the same key.
fn equal_by_key(
    a: &List<'_>,
    b: &List<'_>,
    names: &[Box<str>],
    work: &mut Work,
    depth: usize,
) -> Result<bool, EvalFailure> {
    let mut items = std::collections::HashMap::new();
    for item in a.iter() {
        let item = item?;
        work.add(STEPS * 10)?;
        items.insert(item_key(&item, names), item);
    }
    for item in b.iter() {
        let item = item?;
        match items.get(&item_key(&item, names)) {
            Some(other) if equal(other, &item, work, depth + 1)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn maps(a: &Map<'_>, b: &Map<'_>, work: &mut Work, depth: usize) -> Result<bool, EvalFailure> {
    let keys = a.keys();
    if keys.len() != b.keys().len() {
        return Ok(false);
    }
    for key in keys {
        match (a.get(&key), b.get(&key)) {
            (Some(a), Some(b)) => {
                if !equal(&a?, &b?, work, depth + 1)? {
                    return Ok(false);
                }
            }
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The order of two numbers; `None` for other values and for NaN.
fn numeric(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => order_of_double(*a, whole(b)?),
        (a, Value::Double(b)) => order_of_double(*b, whole(a)?).map(Ordering::reverse),
        (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

fn order_of_double(a: f64, b: i128) -> Option<Ordering> {
    if a.is_nan() {
        return None;
    }
    // Beyond all integers the cast saturates, which preserves the order.
    let fraction = a.fract().partial_cmp(&0.0).unwrap_or(Ordering::Equal);
    Some((a as i128).cmp(&b).then(fraction))
}

/// Whether the type of the value has an order.
pub(crate) fn has_order(value: &Value<'_>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, Text, Timestamp, Uint};
    let scalar = matches!(value, Bool(_) | Int(_) | Uint(_) | Double(_));
    scalar || matches!(value, Text(_) | Bytes(_) | Timestamp(_) | Duration(_))
}

/// The order of two values of types that have one.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, EvalFailure> {
    Ok(match (a, b) {
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            let is_nan = |value: &Value<'_>| matches!(value, Value::Double(d) if d.is_nan());
            if is_nan(a) || is_nan(b) {
                return fail("NaN values cannot be ordered");
            }
            return numeric(a, b).map_or_else(no_such_overload, Ok);
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => (**a).cmp(&**b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => return no_such_overload(),
    })
}
