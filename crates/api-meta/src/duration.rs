//! Durations as Go writes them: `1h30m`, `1.5s`, `-200ms`.

/// Nanoseconds of each unit.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
];

/// The duration in seconds; may be negative or have a fraction.
///
/// # Errors
/// The message of Go's `time.ParseDuration`: `time: invalid duration "x"`. Report it to the client.
pub fn seconds(text: &str) -> Result<f64, String> {
    let invalid = || format!("time: invalid duration \"{text}\"");
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1.0, rest),
        Some(rest) => (1.0, rest),
        None => (1.0, text),
    };
    if rest == "0" {
        return Ok(0.0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanoseconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration \"{text}\""));
        }
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, size) =
            known.ok_or_else(|| format!("time: unknown unit \"{unit}\" in duration \"{text}\""))?;
        nanoseconds += number * size;
        rest = after;
    }
    Ok(sign * nanoseconds / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, expected) in [
            ("10s", 10.0),
            ("1us", 1e-6),
            ("1.5h", 5_400.0),
            ("1m30s", 90.0),
            ("-5s", -5.0),
            ("+.5s", 0.5),
            ("0", 0.0),
            ("0s", 0.0),
        ] {
            let found = seconds(text).expect(text);
            assert!((found - expected).abs() < 1e-9, "{text}: {found}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_in_the_words_of_go() {
        for (text, words) in [
            ("", "time: invalid duration \"\""),
            ("abc", "time: invalid duration \"abc\""),
            ("-", "time: invalid duration \"-\""),
            (".s", "time: invalid duration \".s\""),
            ("1.2.3s", "time: invalid duration \"1.2.3s\""),
            ("10", "time: missing unit in duration \"10\""),
            ("1x", "time: unknown unit \"x\" in duration \"1x\""),
        ] {
            assert_eq!(seconds(text).expect_err(text), words);
        }
    }
}
