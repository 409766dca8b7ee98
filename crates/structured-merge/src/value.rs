//! Comparison of JSON values like Go's decoded values: integers and floats by their numeric value,
//! values of different types in a fixed order.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// A number as the Kubernetes decoder types it: an integer when it fits a signed 64-bit integer.
#[derive(Clone, Copy)]
pub enum Num {
    Int(i64),
    Float(f64),
}

/// The number as the Kubernetes decoder types it. Numbers beyond the range of a float become
/// infinity.
pub fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(f64::INFINITY)),
    }
}

/// A total order over all values: numbers, strings, booleans, lists, maps, null.
pub fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(num(left), num(right)),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => compare_lists(left, right),
        (Value::Object(left), Value::Object(right)) => compare_maps(left, right),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Equality under [`compare`]: `1` equals `1.0`.
pub fn equal(left: &Value, right: &Value) -> bool {
    compare(left, right) == Ordering::Equal
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(number) if matches!(num(number), Num::Float(_)) => 0,
        Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Bool(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
        Value::Null => 6,
    }
}

#[allow(clippy::cast_precision_loss, reason = "Go compares an integer with a float as floats")]
fn compare_numbers(left: Num, right: Num) -> Ordering {
    let order = |left: f64, right: f64| left.partial_cmp(&right).unwrap_or(Ordering::Equal);
    match (left, right) {
        (Num::Int(left), Num::Int(right)) => left.cmp(&right),
        (Num::Int(left), Num::Float(right)) => order(left as f64, right),
        (Num::Float(left), Num::Int(right)) => order(left, right as f64),
        (Num::Float(left), Num::Float(right)) => order(left, right),
    }
}

fn compare_lists(left: &[Value], right: &[Value]) -> Ordering {
    let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
    let first = pairs.into_iter().find(|order| order.is_ne());
    first.unwrap_or_else(|| left.len().cmp(&right.len()))
}

fn compare_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let (left, right) = (sorted_entries(left), sorted_entries(right));
    for ((left_key, left), (right_key, right)) in left.iter().zip(&right) {
        let order = left_key.cmp(right_key).then_with(|| compare(left, right));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// The order of keys must not depend on how this build of `serde_json` stores maps.
fn sorted_entries(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}
