//! Timestamps and durations, within the ranges of CEL.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

const SECOND: i64 = 1_000_000_000;
/// The years 1 to 9999, in seconds since 1970.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Digits behind the decimal point that can matter: an hour has 3.6e12 nanoseconds.
const FRACTION_DIGITS_MAX: usize = 18;

/// A point in time: nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i128);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl Timestamp {
    fn checked(nanos: i128) -> Option<Self> {
        let seconds = i64::try_from(nanos.div_euclid(i128::from(SECOND))).ok()?;
        SECONDS.contains(&seconds).then_some(Self(nanos))
    }
    /// A civil time, with its offset in seconds east of UTC.
    fn from_civil(civil: DateTime, offset: i64) -> Option<Self> {
        let since = civil.duration_since(EPOCH).as_nanos();
        Self::checked(since - i128::from(offset) * i128::from(SECOND))
    }
    /// Seconds since 1970.
    pub(crate) fn from_seconds(seconds: i64) -> Option<Self> {
        Self::checked(i128::from(seconds) * i128::from(SECOND))
    }
    /// RFC 3339, as `timestamp()` accepts it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text, false)
    }
    /// The format `date-time` of schemas: letters may be lower case, and a minute may have 61
    /// seconds.
    pub(crate) fn parse_schema(text: &str) -> Option<Self> {
        Self::read(text, true)
    }
    fn read(text: &str, lenient: bool) -> Option<Self> {
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to)?;
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            if all { digits.parse::<i16>().ok() } else { None }
        };
        let is =
            |at: usize, marks: &[u8]| text.as_bytes().get(at).is_some_and(|b| marks.contains(b));
        let letters: (&[u8], &[char]) = if lenient { (b"Tt", &['Z', 'z']) } else { (b"T", &['Z']) };
        let shape = is(4, b"-") && is(7, b"-") && is(10, letters.0) && is(13, b":") && is(16, b":");
        if !shape {
            return None;
        }
        let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
        let (seconds, leap) = match small(17)? {
            60 if lenient => (59, true),
            seconds => (seconds, false),
        };
        let rest = &text[19..];
        let zone_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
        let (fraction, zone) = rest.split_at(zone_at);
        let nanos = if fraction.is_empty() { 0 } else { nanos_of(&fraction[1..])? };
        let day = Date::new(number(0, 4)?, small(5)?, small(8)?).ok()?;
        let nanos = if leap { 0 } else { nanos };
        let time = Time::new(small(11)?, small(14)?, seconds, nanos).ok()?;
        let offset = if zone.len() == 1 && zone.starts_with(letters.1) {
            0
        } else {
            let at = text.len() - zone.len();
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if zone.len() != 6 || !is(at, b"+-") || !is(at + 3, b":") || hours > 24 || minutes > 60
            {
                return None;
            }
            let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
            if zone.starts_with('-') { -seconds } else { seconds }
        };
        Self::from_civil(DateTime::from_parts(day, time), offset)
    }
    /// Midnight of a day in UTC.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        let day: Date = text.parse().ok()?;
        Self::from_civil(DateTime::from_parts(day, Time::midnight()), 0)
    }
    pub(crate) fn seconds(self) -> i64 {
        self.0.div_euclid(i128::from(SECOND)) as i64
    }
    pub(crate) fn plus(self, duration: Duration) -> Option<Self> {
        Self::checked(self.0 + i128::from(duration.0))
    }
    pub(crate) fn since(self, other: Self) -> Option<Duration> {
        i64::try_from(self.0 - other.0).ok().map(Duration)
    }
    fn utc(self) -> DateTime {
        // Every timestamp has one: both ranges are the years 1 to 9999.
        EPOCH.saturating_add(SignedDuration::from_nanos_i128(self.0))
    }
    /// Civil time in a zone: UTC, `+02:00`, or a name such as `Europe/Berlin`.
    pub(crate) fn civil(self, zone: &str) -> Option<DateTime> {
        let seconds = match zone {
            "" | "UTC" => 0,
            text => match offset(text) {
                Some(seconds) => i64::from(seconds),
                None => {
                    let zone = TimeZone::get(text).ok()?;
                    let time = jiff::Timestamp::from_second(self.seconds());
                    // The last day of the range has the offset of the day before.
                    let time = time.unwrap_or(jiff::Timestamp::MAX);
                    i64::from(zone.to_offset(time).seconds())
                }
            },
        };
        self.utc().checked_add(SignedDuration::from_secs(seconds)).ok()
    }
}

/// Nanoseconds of the digits behind a decimal point; digits after the ninth are ignored.
fn nanos_of(digits: &str) -> Option<i32> {
    const DIGITS: usize = 9;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{:0<DIGITS$}", &digits[..digits.len().min(DIGITS)]).parse().ok()
}

/// RFC 3339 in UTC, with all digits behind the decimal point.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.utc())
    }
}

/// Seconds of `+02:00`, `-7:30` or `02:00`.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60))
}

impl Duration {
    /// A duration in Go's format: `1h30m`, `-1.5s`, `0`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Self(0));
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let (number, tail) = rest.split_at(end);
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
                return None;
            }
            let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            let unit = i128::from(unit_nanos(unit)?);
            let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
            total = total.checked_add(whole.checked_mul(unit)?)?;
            // No unit is finer than a nanosecond, so further digits are ignored.
            let digits = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
            if !digits.is_empty() {
                let scale = 10i128.pow(digits.len() as u32);
                total += digits.parse::<i128>().ok()? * unit / scale;
            }
            rest = tail;
        }
        let total = if negative { -total } else { total };
        i64::try_from(total).ok().map(Self)
    }

    /// The format `duration` of schemas, which also allows `3 days` and the like.
    pub(crate) fn parse_schema(text: &str) -> Option<Self> {
        if let Some(duration) = Self::parse(text) {
            return Some(duration);
        }
        let end = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(end);
        let unit = unit.trim_start().to_lowercase();
        const DAY: i64 = 24 * 3600 * SECOND;
        let nanos = match unit.strip_suffix('s').filter(|unit| unit.len() > 1).unwrap_or(&unit) {
            "d" | "day" => DAY,
            "w" | "wk" | "week" => 7 * DAY,
            "sec" | "second" => SECOND,
            "min" | "minute" => 60 * SECOND,
            "hr" | "hour" => 3600 * SECOND,
            _ => unit_nanos(&unit)?,
        };
        number.parse::<i64>().ok()?.checked_mul(nanos).map(Self)
    }
}

fn unit_nanos(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return None,
    })
}

/// Seconds, as `string(duration)` writes them: `5400s`, `1.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let (whole, fraction) = (nanos / SECOND as u64, nanos % SECOND as u64);
        let fraction = format!("{fraction:09}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}s"),
            digits => write!(f, "{sign}{whole}.{digits}s"),
        }
    }
}
