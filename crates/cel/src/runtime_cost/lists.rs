//! Costs of functions that build lists from other lists: the model of `cel-go/ext/lists.go`.

use crate::limits::{CHARACTER_COST, LIST_COST};
use crate::value::{List, Value};

/// Cost units per pair of items.
const PAIR_COST: f64 = 2.0;

/// Cost units of a call of the overload; `None` for other functions.
pub(super) fn call(overload: &str, args: &[Value<'_>]) -> Option<u64> {
    Some(match (overload, args) {
        ("list_slice", args) => allocating(match args {
            [Value::List(list), Value::Int(start), Value::Int(end)]
                if 0 <= *start && start <= end && *end <= list.len() as i64 =>
            {
                (end - start) as f64
            }
            _ => 1.0,
        }),
        ("lists_range", [Value::Int(count)]) => allocating((*count).max(0) as f64),
        ("list_reverse", [Value::List(list)]) => allocating(list.len() as f64),
        ("lists_range" | "list_reverse", _) => allocating(1.0),
        ("list_flatten", [list, ..]) => allocating(list.size() as f64),
        ("list_flatten_int", [list, Value::Int(depth)]) => {
            allocating(list.size() as f64 * *depth as f64)
        }
        _ => allocating(pairs(compared_list(overload, args)?)),
    })
}

/// The failure of upstream's cost tracker when some arguments failed, so that they do not have the
/// types that it assumes.
pub(crate) fn internal_failure(overload: &str, args: &[Value<'_>]) -> Option<&'static str> {
    if overload == "list_flatten_int" && !matches!(args.get(1), Some(Value::Int(_))) {
        return Some("internal error: interface conversion: ref.Val is *types.Err, not types.Int");
    }
    (compares_items(overload) && compared_list(overload, args).is_none()).then_some(
        "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add",
    )
}

fn compares_items(overload: &str) -> bool {
    overload == "list_distinct" || overload.ends_with("_sort") || sorts_by_keys(overload)
}

fn sorts_by_keys(overload: &str) -> bool {
    overload.ends_with("_sortByAssociatedKeys")
}

/// The list whose items are compared with each other.
fn compared_list<'l, 'a>(overload: &str, args: &'l [Value<'a>]) -> Option<&'l List<'a>> {
    let place = usize::from(sorts_by_keys(overload));
    match args.get(place) {
        Some(Value::List(list)) if compares_items(overload) => Some(list),
        _ => None,
    }
}

fn pairs(list: &List<'_>) -> f64 {
    let texts = matches!(list.get(0), Some(Ok(Value::Text(_) | Value::Bytes(_))));
    let each = if texts { PAIR_COST + CHARACTER_COST } else { PAIR_COST };
    (list.len() * list.len()) as f64 * each
}

fn allocating(size: f64) -> u64 {
    // A negative depth makes a call cheaper; upstream's numbers wrap around, too.
    let size = if size < 0.0 { size as i64 as u64 } else { size as u64 };
    match size.checked_add(1 + LIST_COST) {
        Some(cost) => cost,
        None if size > i64::MAX as u64 && size != u64::MAX => size.wrapping_add(1 + LIST_COST),
        None => u64::MAX,
    }
}
