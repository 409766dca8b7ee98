//! Functions that build lists from other lists.

use std::cmp::Ordering;

use crate::equality::{compare, equal, has_order};
use crate::eval::Evaluator;
use crate::limits::{ELEMENTS_MAX, VALUE_DEPTH_MAX};
use crate::value::{EvalFailure, EvalResult, List, Value, fail};

pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &str,
    args: &[Value<'a>],
) -> Option<EvalResult<'a>> {
    Some(match (function, args) {
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => {
            slice(list, *start, *end)
        }
        ("flatten", [Value::List(list)]) => flatten_to_depth(list, 1),
        ("flatten", [Value::List(list), Value::Int(depth)]) => flatten_to_depth(list, *depth),
        ("sort", [Value::List(list)]) => sort_by_keys(list, list),
        ("@sortByAssociatedKeys", [Value::List(list), Value::List(keys)]) => {
            sort_by_keys(list, keys)
        }
        ("lists.range", [Value::Int(count)]) => range(*count),
        ("reverse", [Value::List(list)]) => {
            let items: Result<Vec<_>, _> =
                (0..list.len()).rev().filter_map(|at| list.get(at)).collect();
            items.map(Value::list)
        }
        ("distinct", [Value::List(list)]) => distinct(evaluator, list),
        ("first", [Value::List(list)]) => at(list, 0),
        ("last", [Value::List(list)]) => at(list, list.len().wrapping_sub(1)),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => return unwrap_optionals(list),
        _ => return None,
    })
}

fn at<'a>(list: &List<'a>, index: usize) -> EvalResult<'a> {
    match list.get(index) {
        Some(item) => item.map(Value::some),
        None => Ok(Value::Optional(None)),
    }
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> EvalResult<'a> {
    let refuse = |why: &str| fail(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refuse("negative indexes not supported");
    };
    if from > to {
        return refuse("start index must be less than or equal to end index");
    }
    if to > list.len() {
        return refuse(&format!("list is length {}", list.len()));
    }
    let items: Result<Vec<_>, _> = (from..to).filter_map(|at| list.get(at)).collect();
    items.map(Value::list)
}

fn range<'a>(count: i64) -> EvalResult<'a> {
    // A longer list exceeds the cost limit of every evaluation.
    if usize::try_from(count).is_ok_and(|count| count > ELEMENTS_MAX) {
        return Err(EvalFailure::Cost);
    }
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn flatten_to_depth<'a>(list: &List<'a>, depth: i64) -> EvalResult<'a> {
    if depth < 0 {
        return fail("level must be non-negative");
    }
    let mut items = Vec::with_capacity(list.len());
    // No function produces deeper values.
    flatten(list, depth.min(VALUE_DEPTH_MAX as i64), &mut items)?;
    Ok(Value::list(items))
}

fn flatten<'a>(list: &List<'a>, depth: i64, items: &mut Vec<Value<'a>>) -> Result<(), EvalFailure> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten(&inner, depth - 1, items)?,
            item => items.push(item),
        }
        if items.len() > ELEMENTS_MAX {
            return Err(EvalFailure::Cost);
        }
    }
    Ok(())
}

/// The items sorted by their keys. The sort is stable.
fn sort_by_keys<'a>(list: &List<'a>, keys: &List<'a>) -> EvalResult<'a> {
    if list.len() != keys.len() {
        return fail(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            list.len(),
            keys.len()
        ));
    }
    let keys = keys.iter().collect::<Result<Vec<_>, _>>()?;
    let Some(first) = keys.first() else {
        return Ok(Value::List(list.clone()));
    };
    if !has_order(first) {
        return fail("list elements must be comparable");
    }
    if keys.iter().any(|key| !key.to_type().same_kind(&first.to_type())) {
        return fail("list elements must have the same type");
    }
    let mut places: Vec<usize> = (0..keys.len()).collect();
    // Values that cannot be compared, such as NaN, count as equal to all.
    places.sort_by(|a, b| compare(&keys[*a], &keys[*b]).unwrap_or(Ordering::Equal));
    let items: Result<Vec<_>, _> = places.into_iter().filter_map(|at| list.get(at)).collect();
    items.map(Value::list)
}

fn distinct<'a>(evaluator: &mut Evaluator<'a>, list: &List<'a>) -> EvalResult<'a> {
    let mut items: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        let item = item?;
        for known in &items {
            if equal(&item, known, &mut evaluator.work, 0)? {
                continue 'items;
            }
        }
        items.push(item);
    }
    Ok(Value::list(items))
}

/// The values of the optionals that have one; `None` when the first item is no optional.
fn unwrap_optionals<'a>(list: &List<'a>) -> Option<EvalResult<'a>> {
    let mut items = Vec::new();
    for (index, item) in list.iter().enumerate() {
        match item {
            Ok(Value::Optional(value)) => items.extend(value.map(|value| (*value).clone())),
            Ok(_) if index == 0 => return None,
            Ok(other) => {
                let shown = super::text::display(&other);
                return Some(fail(format!("value {shown} is not optional")));
            }
            Err(failure) => return Some(Err(failure)),
        }
    }
    Some(Ok(Value::list(items)))
}
