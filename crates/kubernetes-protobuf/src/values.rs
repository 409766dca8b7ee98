//! Values whose JSON differs from their message: times, and numbers that Go formats in its own way.

use jiff::Timestamp;
use serde_json::{Number, Value};

/// Seconds of Go's zero time, the first of January of the year 1. It means "not set".
pub const GO_ZERO_SECONDS: i64 = -62_135_596_800;

/// Formats a time in whole seconds; `None` for Go's zero time.
///
/// # Errors
/// [`OutOfRange`] when the year has more than four digits.
pub fn time_text(seconds: i64) -> Result<Option<String>, OutOfRange> {
    Ok(timestamp(seconds, 0)?.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
}

/// Formats a time with microseconds; drops finer parts. `None` for Go's zero time.
///
/// # Errors
/// [`OutOfRange`] when the year has more than four digits, or `nanos` is not below a second.
pub fn micro_time_text(seconds: i64, nanos: i64) -> Result<Option<String>, OutOfRange> {
    Ok(timestamp(seconds, nanos)?.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()))
}

/// The time cannot be written in RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

fn timestamp(seconds: i64, nanos: i64) -> Result<Option<Timestamp>, OutOfRange> {
    if (seconds, nanos) == (GO_ZERO_SECONDS, 0) {
        return Ok(None);
    }
    let nanos = i32::try_from(nanos).ok().filter(|nanos| (0..1_000_000_000).contains(nanos));
    let time = Timestamp::new(seconds, nanos.ok_or(OutOfRange)?).map_err(|_| OutOfRange)?;
    // RFC 3339 has years of four digits.
    let year = time.to_zoned(jiff::tz::TimeZone::UTC).year();
    if (0..=9999).contains(&year) { Ok(Some(time)) } else { Err(OutOfRange) }
}

/// Parses an RFC 3339 time into seconds since 1970 and nanoseconds; `None` for Go's zero time.
///
/// # Errors
/// The text is not an RFC 3339 time.
pub fn parse_time(text: &str) -> Result<Option<(i64, i64)>, jiff::Error> {
    let nanos = text.parse::<Timestamp>()?.as_nanosecond();
    let billion = 1_000_000_000;
    // The quotient fits: the number of seconds came from an i64.
    let (seconds, nanos) = (nanos.div_euclid(billion) as i64, nanos.rem_euclid(billion) as i64);
    Ok(Some((seconds, nanos)).filter(|time| *time != (GO_ZERO_SECONDS, 0)))
}

/// The JSON number for a float, formatted like Go: whole numbers have no decimal point. `None` for
/// infinities and NaN.
pub fn double(value: f64) -> Option<Value> {
    /// From this value on Go writes an exponent.
    const WHOLE_MAX: f64 = 1e15;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_written() {
        for text in ["2026-03-04T05:06:07Z", "1969-12-31T23:59:59Z", "0000-01-01T00:00:00Z"] {
            let (seconds, _) = parse_time(text).unwrap().unwrap();
            assert_eq!(time_text(seconds), Ok(Some(text.to_owned())));
        }
        let (seconds, nanos) = parse_time("2026-03-04T07:06:07.1234567+02:00").unwrap().unwrap();
        let text = micro_time_text(seconds, nanos).unwrap().unwrap();
        assert_eq!(text, "2026-03-04T05:06:07.123456Z");
        let (seconds, nanos) = parse_time("1969-12-31T23:59:59.5Z").unwrap().unwrap();
        assert_eq!((seconds, nanos), (-1, 500_000_000));
    }

    #[test]
    fn no_time_differs_from_impossible_times() {
        assert_eq!(parse_time("0001-01-01T00:00:00Z").unwrap(), None);
        assert_eq!(time_text(GO_ZERO_SECONDS), Ok(None));
        assert_eq!(time_text(i64::MAX), Err(OutOfRange));
        assert_eq!(time_text(300_000_000_000), Err(OutOfRange));
        assert_eq!(micro_time_text(0, -1), Err(OutOfRange));
        assert!(parse_time("yesterday").is_err());
    }
}
