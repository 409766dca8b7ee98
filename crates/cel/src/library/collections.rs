//! Functions on lists, and on lists as sets.

use std::cmp::Ordering;

use crate::ast::operator;
use crate::equality::{compare, equal, has_order};
use crate::eval::Evaluator;
use crate::operators;
use crate::time::Duration;
use crate::types::Type;
use crate::value::{EvalFailure, EvalResult, List, Value, fail};

pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &str,
    args: &[Value<'a>],
) -> Option<EvalResult<'a>> {
    if !accepts(function, args) {
        return None;
    }
    Some(match (function, args) {
        ("isSorted", [Value::List(list)]) => is_sorted(list),
        ("min", [Value::List(list)]) => extreme(list, "min", Ordering::Less),
        ("max", [Value::List(list)]) => extreme(list, "max", Ordering::Greater),
        ("sum", [Value::List(list)]) => sum(evaluator, list),
        ("indexOf", [Value::List(list), item]) => index_of(evaluator, list, item, false),
        ("lastIndexOf", [Value::List(list), item]) => index_of(evaluator, list, item, true),
        ("sets.contains", [Value::List(a), Value::List(b)]) => {
            includes(evaluator, a, b).map(Value::Bool)
        }
        ("sets.equivalent", [Value::List(a), Value::List(b)]) => {
            let both =
                includes(evaluator, a, b).and_then(|first| Ok(first && includes(evaluator, b, a)?));
            both.map(Value::Bool)
        }
        ("sets.intersects", [Value::List(a), Value::List(b)]) => intersects(evaluator, a, b),
        _ => return None,
    })
}

/// Whether the function accepts a list. Like cel-go, only its first item is checked.
fn accepts(function: &str, args: &[Value<'_>]) -> bool {
    let Some(Value::List(list)) = args.first() else {
        return true;
    };
    let Some(Ok(first)) = list.get(0) else {
        return true;
    };
    match function {
        "sum" => {
            let number = matches!(first, Value::Int(_) | Value::Uint(_) | Value::Double(_));
            number || matches!(first, Value::Duration(_))
        }
        "isSorted" | "min" | "max" => has_order(&first),
        _ => true,
    }
}

fn is_sorted<'a>(list: &List<'a>) -> EvalResult<'a> {
    let mut before: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(before) = &before
            && compare(before, &item)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn extreme<'a>(list: &List<'a>, name: &str, order: Ordering) -> EvalResult<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        let better = match &best {
            Some(best) => compare(&item, best)? == order,
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    best.map_or_else(|| fail(format!("{name} called on empty list")), Ok)
}

/// The sum; of an empty list, the zero of the declared type.
fn sum<'a>(evaluator: &mut Evaluator<'a>, list: &List<'a>) -> EvalResult<'a> {
    let mut total: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        total = Some(match total {
            Some(total) => operators::call(evaluator, operator::ADD, &[total, item])
                .unwrap_or_else(|| fail("no such overload"))?,
            None => item,
        });
    }
    let zero = || match list {
        List::Given { declared, .. } => match declared.to_type() {
            Type::Double => Value::Double(0.0),
            Type::Duration => Value::Duration(Duration(0)),
            _ => Value::Int(0),
        },
        List::Made(_) => Value::Int(0),
    };
    Ok(total.unwrap_or_else(zero))
}

fn index_of<'a>(
    evaluator: &mut Evaluator<'a>,
    list: &List<'a>,
    expected: &Value<'a>,
    last: bool,
) -> EvalResult<'a> {
    let mut found = -1;
    for (index, item) in list.iter().enumerate() {
        if equal(&item?, expected, &mut evaluator.work, 0)? {
            found = index as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn has<'a>(
    evaluator: &mut Evaluator<'a>,
    list: &List<'a>,
    expected: &Value<'a>,
) -> Result<bool, EvalFailure> {
    for item in list.iter() {
        if equal(&item?, expected, &mut evaluator.work, 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn includes<'a>(
    evaluator: &mut Evaluator<'a>,
    whole: &List<'a>,
    part: &List<'a>,
) -> Result<bool, EvalFailure> {
    for item in part.iter() {
        if !has(evaluator, whole, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(evaluator: &mut Evaluator<'a>, a: &List<'a>, b: &List<'a>) -> EvalResult<'a> {
    for item in a.iter() {
        if has(evaluator, b, &item?)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
