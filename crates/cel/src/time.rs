//! Points in time and lengths of time, within the ranges that CEL gives them.

use std::fmt;

use jiff::tz::TimeZone;

const SECOND: i64 = 1_000_000_000;
/// The years 1 to 9999, in seconds since 1970.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Digits behind the point that can matter: an hour has 3.6e12 nanoseconds.
const FRACTION_DIGITS_MAX: usize = 18;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(jiff::Timestamp);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

impl Timestamp {
    fn checked(time: jiff::Timestamp) -> Option<Self> {
        SECONDS.contains(&time.as_second()).then_some(Self(time))
    }
    /// Seconds since 1970.
    pub(crate) fn from_seconds(seconds: i64) -> Option<Self> {
        Self::checked(jiff::Timestamp::from_second(seconds).ok()?)
    }
    /// RFC 3339 with a time zone.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let shape = text.get(10..11).is_some_and(|t| t == "T" || t == "t") && text.len() >= 20;
        let zoned =
            text.ends_with(['Z', 'z']) || text.get(text.len().checked_sub(6)?..)?.contains(':');
        if !shape || !zoned || text.contains('[') {
            return None;
        }
        Self::checked(text.parse().ok()?)
    }
    /// Midnight of a day in UTC.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        let day: jiff::civil::Date = text.parse().ok()?;
        Self::checked(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }
    pub(crate) fn seconds(self) -> i64 {
        self.0.as_second()
    }
    pub(crate) fn plus(self, duration: Duration) -> Option<Self> {
        let moved = self.0.checked_add(jiff::SignedDuration::from_nanos(duration.0)).ok()?;
        Self::checked(moved)
    }
    pub(crate) fn since(self, other: Self) -> Option<Duration> {
        let nanos = self.0.as_nanosecond().checked_sub(other.0.as_nanosecond())?;
        i64::try_from(nanos).ok().map(Duration)
    }
    /// Civil time in a zone: UTC, `+02:00`, or a name such as `Europe/Berlin`.
    pub(crate) fn civil(self, zone: &str) -> Option<jiff::civil::DateTime> {
        let zone = match zone {
            "" | "UTC" => TimeZone::UTC,
            text => match offset(text) {
                Some(seconds) => TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?),
                None => TimeZone::get(text).ok()?,
            },
        };
        Some(self.0.to_zoned(zone).datetime())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
    /// A duration as Go writes it: `1h30m`, `-1.5s`, `0`.
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
            // No unit is finer than a nanosecond, so further digits do not count.
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

    /// What schemas call a duration: also `3 days` and the like.
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
