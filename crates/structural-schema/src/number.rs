//! Numbers as Kubernetes stores them: a number without a fraction is an integer, however it is
//! written.

use serde_json::{Number, Value};

/// Floats at or beyond this are not exact integers of 64 bits.
const INTEGER_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The value of a number without a fraction, `5` as well as `5.0`; `None` for other numbers and
/// beyond 64 bits.
pub fn as_integer(number: &Number) -> Option<i64> {
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    let exact = float.fract() == 0.0 && (-INTEGER_LIMIT..INTEGER_LIMIT).contains(&float);
    (exact && !number.is_u64()).then_some(float as i64)
}

/// Rewrites floats without a fraction as integers, everywhere in `value`: `5.0` becomes `5`.
///
/// A round trip through a Go server does the same, and typed clients refuse `5.0` for integers.
/// Idempotent.
pub fn canonicalize(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = as_integer(number) {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(canonicalize),
        Value::Object(fields) => fields.values_mut().for_each(canonicalize),
        _ => {}
    }
}
