//! Parts of timestamps and durations.

use crate::value::{EvalResult, Value, fail};

const SECOND: i64 = 1_000_000_000;

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    let (time, zone) = match args {
        [Value::Timestamp(time)] => (time, "UTC"),
        [Value::Timestamp(time), Value::Text(zone)] => (time, &**zone),
        [Value::Duration(duration)] => return whole(function, duration.0),
        _ => return None,
    };
    let Some(civil) = time.civil(zone) else {
        return Some(fail(format!("unknown time zone {zone}")));
    };
    Some(Ok(Value::Int(match function {
        "getFullYear" => i64::from(civil.year()),
        "getMonth" => i64::from(civil.month()) - 1,
        "getDayOfYear" => i64::from(civil.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(civil.day()) - 1,
        "getDate" => i64::from(civil.day()),
        "getDayOfWeek" => i64::from(civil.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(civil.hour()),
        "getMinutes" => i64::from(civil.minute()),
        "getSeconds" => i64::from(civil.second()),
        "getMilliseconds" => i64::from(civil.millisecond()),
        _ => return None,
    })))
}

/// A whole duration in one unit; milliseconds are only its part below a second.
fn whole<'a>(function: &str, nanos: i64) -> Option<EvalResult<'a>> {
    Some(Ok(Value::Int(match function {
        "getHours" => nanos / (3600 * SECOND),
        "getMinutes" => nanos / (60 * SECOND),
        "getSeconds" => nanos / SECOND,
        "getMilliseconds" => nanos % SECOND / 1_000_000,
        _ => return None,
    })))
}
