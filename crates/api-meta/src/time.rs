//! Times on the wire: RFC 3339 with seconds, and with microseconds for leases and events. No clock.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

/// Unix seconds as `2026-01-02T03:04:05Z`. A value out of range gives the epoch.
pub fn format_seconds(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Unix microseconds as `2026-01-02T03:04:05.000006Z`. A value out of range gives the epoch.
pub fn format_micros(micros: i64) -> String {
    let time = Timestamp::from_microsecond(micros).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Unix seconds of a time on the wire, without fractions; `None` when it is no time.
pub fn parse_seconds(text: &str) -> Option<i64> {
    parse(text).map(|time| time.as_second())
}

/// Requires `T` and a zone and refuses leap seconds; `jiff` alone would accept other text.
fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains('[')
        && !matches!(&text.get(17..19), Some("60"));
    if shaped { text.parse().ok() } else { None }
}

/// Go's message for a text that is no time; `None` when it is one.
pub fn parse_problem(text: &str) -> Option<String> {
    const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
    if parse(text).is_some() {
        return None;
    }
    Some(problem(text, LAYOUT, 19))
}

/// The canonical text of a time with seconds: UTC. `None` when it is no time.
pub fn canonical(text: &str) -> Option<String> {
    parse_seconds(text).map(format_seconds)
}

/// The canonical text of a time with microseconds: UTC. Exactly six digits must be given.
///
/// # Errors
/// Go's message; respond with 400.
pub fn canonical_micro(text: &str) -> Result<String, String> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let digits = text
        .get(19..)
        .and_then(|rest| rest.strip_prefix('.'))
        .map(|rest| rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len()));
    match (parse(text), digits) {
        (Some(time), Some(6)) => Ok(format_micros(time.as_microsecond())),
        _ => Err(problem(text, LAYOUT, 19)),
    }
}

/// `parsing time "x" as "layout": cannot parse "rest" as "part"`; the part follows from how much of
/// `text` is valid.
fn problem(text: &str, layout: &str, fraction_at: usize) -> String {
    let parts = [
        (0, 4, "2006"),
        (4, 5, "-"),
        (5, 7, "01"),
        (7, 8, "-"),
        (8, 10, "02"),
        (10, 11, "T"),
        (11, 13, "15"),
        (13, 14, ":"),
        (14, 16, "04"),
        (16, 17, ":"),
        (17, 19, "05"),
    ];
    let fits = |from: usize, to: usize, part: &str| {
        text.get(from..to).is_some_and(|got| match part {
            "-" | "T" | ":" => got == part,
            _ => got.bytes().all(|byte| byte.is_ascii_digit()),
        })
    };
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    let broken = parts.into_iter().find(|&(from, to, part)| !fits(from, to, part));
    let (rest, part) = match broken {
        Some((from, _, part)) => (rest(from), part),
        None if layout.contains(".000000") => (rest(fraction_at), ".000000"),
        None => (rest(fraction_at), "Z07:00"),
    };
    format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{part}\"")
}

/// Seconds as kubectl prints ages: at most two units, coarser as it grows. A negative duration is
/// `<invalid>`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |unit: i64, name: &str, small: i64, small_name: &str| {
        let rest = seconds % unit / small;
        if rest == 0 {
            format!("{}{name}", seconds / unit)
        } else {
            format!("{}{name}{rest}{small_name}", seconds / unit)
        }
    };
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}
