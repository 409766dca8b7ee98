//! Kubernetes quantities.

use std::cmp::Ordering;

use api_meta::quantity::Quantity;

use crate::value::{EvalResult, Value, fail};

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(Ok(match (function, args) {
        ("quantity", [Value::Text(text)]) => match text.parse() {
            Ok(quantity) => Value::Quantity(quantity),
            Err(error) => {
                let error: api_meta::quantity::QuantityError = error;
                return Some(fail(error.to_string()));
            }
        },
        ("isQuantity", [Value::Text(text)]) => Value::Bool(text.parse::<Quantity>().is_ok()),
        ("sign", [Value::Quantity(quantity)]) => {
            Value::Int(match quantity.cmp(&Quantity::from_whole(0)) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            })
        }
        ("isGreaterThan", [Value::Quantity(a), Value::Quantity(b)]) => Value::Bool(a > b),
        ("isLessThan", [Value::Quantity(a), Value::Quantity(b)]) => Value::Bool(a < b),
        ("compareTo", [Value::Quantity(a), Value::Quantity(b)]) => Value::Int(a.cmp(b) as i64),
        ("asApproximateFloat", [Value::Quantity(quantity)]) => Value::Double(quantity.to_f64()),
        ("isInteger", [Value::Quantity(quantity)]) => Value::Bool(quantity.whole().is_some()),
        ("asInteger", [Value::Quantity(quantity)]) => match quantity.whole() {
            Some(value) => Value::Int(value),
            None => return Some(fail("cannot convert value to integer")),
        },
        ("add", [Value::Quantity(a), Value::Quantity(b)]) => Value::Quantity(a.plus(b)),
        ("add", [Value::Quantity(a), Value::Int(b)]) => {
            Value::Quantity(a.plus(&Quantity::from_whole(*b)))
        }
        ("sub", [Value::Quantity(a), Value::Quantity(b)]) => Value::Quantity(a.minus(b)),
        ("sub", [Value::Quantity(a), Value::Int(b)]) => {
            Value::Quantity(a.minus(&Quantity::from_whole(*b)))
        }
        _ => return None,
    }))
}
