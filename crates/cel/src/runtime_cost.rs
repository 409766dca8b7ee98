//! The cost of calls during evaluation: the model of `cel-go/interpreter/runtimecost.go` and of
//! `k8s.io/apiserver/pkg/cel/library/cost.go`.

mod lists;

pub(crate) use self::lists::internal_failure;

use crate::limits::{AUTHORIZATION_CHECK_COST, CHARACTER_COST, PATTERN_COST};
use crate::value::Value;

/// Cost units of reading `size` characters `factor` times.
pub(crate) fn characters(size: u64, factor: f64) -> u64 {
    (size as f64 * factor * CHARACTER_COST).ceil() as u64
}

fn pattern(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * CHARACTER_COST).ceil() as u64;
    text.saturating_mul((pattern as f64 * PATTERN_COST).ceil() as u64)
}

/// Cost units of one call, without its arguments. `overload` is empty when the types were not known
/// at compile time.
pub(crate) fn call(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> u64 {
    let size = |index: usize| args.get(index).map_or(1, Value::size);
    if let Some(cost) = lists::call(overload, args) {
        return cost;
    }
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            return args.first().map_or(0, traversal);
        }
        "url"
        | "jsonpatch.escapeKey"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => return characters(size(0), 1.0),
        "replace" | "split" | "ip.isCanonical" => return characters(size(0), 2.0),
        "join" => return characters(result.map_or(1, Value::size), 2.0),
        "find" | "findAll" => return pattern(size(0), size(1)),
        "ip" if overload == "cidr_ip" => return 1,
        "ip" => return characters(size(0), 1.0),
        "containsIP" => {
            let text = if overload == "cidr_contains_ip_string" { size(1) } else { 0 };
            return characters(2 * size(0), 1.0) + characters(text, 1.0);
        }
        "containsCIDR" => {
            let text = if overload == "cidr_contains_cidr_string" { size(1) } else { 0 };
            let network = characters(2 * size(0), 1.0) + characters(size(0), 1.0) + 1;
            return network + characters(text, 1.0);
        }
        "validate" => {
            if let Some(Value::Format(format)) = args.first() {
                return pattern(size(1), format.pattern_size);
            }
        }
        "check" => return AUTHORIZATION_CHECK_COST,
        "sets.contains" | "sets.intersects" => return 1 + size(0).saturating_mul(size(1)),
        "sets.equivalent" => return 1 + size(0).saturating_mul(size(1)).saturating_mul(2),
        "_==_" if matches!(args.first(), Some(value) if has_fixed_cost(value)) => return 1,
        _ => {}
    }
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => characters(size(0), 1.0),
        "in_list" => size(1),
        "equals"
        | "not_equals"
        | "less_string"
        | "less_bytes"
        | "less_equals_string"
        | "less_equals_bytes"
        | "greater_string"
        | "greater_bytes"
        | "greater_equals_string"
        | "greater_equals_bytes" => characters(size(0).min(size(1)), 1.0),
        "add_string" | "add_bytes" => characters(size(0) + size(1), 1.0),
        // The function `matches(a, b)` costs 1 upstream, unlike the member.
        "matches_string" => pattern(size(0), size(1)),
        "contains_string" => characters(size(0), 1.0).saturating_mul(characters(size(1), 1.0)),
        _ => 1,
    }
}

fn has_fixed_cost(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Semver(_)
    )
}

fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => (text.len() as f64 * CHARACTER_COST) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER_COST) as u64,
        Value::List(list) => list.iter().map(|item| item.map_or(1, |item| traversal(&item))).sum(),
        Value::Map(map) => {
            let value = |key: &Value<'_>| match map.get(key) {
                Some(Ok(value)) => traversal(&value),
                _ => 1,
            };
            map.keys().iter().map(|key| traversal(key) + value(key)).sum()
        }
        _ => 1,
    }
}
