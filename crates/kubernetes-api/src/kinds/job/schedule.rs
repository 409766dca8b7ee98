//! Validates the schedule of a CronJob, with the messages of Go's `robfig/cron` v3.0.1.
//! kube-controller-manager parses the schedule itself and computes when it is due.

use api_meta::{duration, go_text};

use super::time_zone;

/// One of the five fields: its range, and names for some of its numbers.
struct ScheduleField {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const fn numbers(min: u64, max: u64) -> ScheduleField {
    ScheduleField { min, max, names: &[] }
}

const FIELDS: [ScheduleField; 5] = [
    numbers(0, 59),
    numbers(0, 23),
    numbers(1, 31),
    ScheduleField {
        min: 1,
        max: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    ScheduleField { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];
const DESCRIPTORS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const EVERY: &str = "@every ";

/// The message about a text that is no schedule; `None` for a valid one. Accepts a time zone before
/// the fields, although a CronJob may not have one there.
pub fn problem(text: &str) -> Option<String> {
    parse(text).err()
}

fn parse(text: &str) -> Result<(), String> {
    let text = without_zone(text)?;
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly {} fields, found {}: [{}]",
            FIELDS.len(),
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, text) in FIELDS.iter().zip(fields) {
        for text in text.split(',').filter(|text| !text.is_empty()) {
            range(text, field)?;
        }
    }
    Ok(())
}

/// The text after `TZ=ZONE ` or `CRON_TZ=ZONE `.
fn without_zone(text: &str) -> Result<&str, String> {
    let Some(rest) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return Ok(text);
    };
    let Some((zone, rest)) = rest.split_once(' ') else {
        // Upstream's parser panics, and the message of the panic is reported.
        return Err(
            "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned()
        );
    };
    let zone_problem = if zone.is_empty() { None } else { time_zone::load_error(zone) };
    match zone_problem {
        Some(problem) => Err(format!("provided bad location {zone}: {problem}")),
        None => Ok(rest.trim()),
    }
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    let Some(every) = text.strip_prefix(EVERY) else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    let problem = |problem| format!("failed to parse duration {text}: {problem}");
    duration::seconds(every).map(|_| ()).map_err(problem)
}

/// `first[-last][/step]`, where `first` may be `*` or `?`.
fn range(text: &str, field: &ScheduleField) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (first, mut last) = match ends.as_slice() {
        ["*" | "?", ..] => (field.min, field.max),
        [one] => {
            let number = number_or_name(one, field)?;
            (number, number)
        }
        // The numbers are parsed before they are counted.
        [first, last, more @ ..] => {
            let first = number_or_name(first, field)?;
            if !more.is_empty() {
                return Err(format!("too many hyphens: {text}"));
            }
            (first, number_or_name(last, field)?)
        }
        [] => unreachable!("a split text has at least one part"),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => number(step)?,
        _ => return Err(format!("too many slashes: {text}")),
    };
    if parts.len() == 2 && ends.len() == 1 {
        last = field.max;
    }
    let ScheduleField { min, max, .. } = field;
    if first < *min {
        return Err(format!("beginning of range ({first}) below minimum ({min}): {text}"));
    }
    if last > *max {
        return Err(format!("end of range ({last}) above maximum ({max}): {text}"));
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, field: &ScheduleField) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match (field.min..).zip(field.names).find(|(_, name)| **name == lower) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let number: i64 = text.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match error.kind() {
            NegOverflow | PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let shown = go_text::quoted(text);
        format!("failed to parse int from {text}: strconv.Atoi: parsing {shown}: {why}")
    })?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::problem;

    #[test]
    fn schedules_in_all_notations_are_accepted() {
        for text in [
            "* * * * ?",
            "0 0 1 1 0",
            "*/5 1-3,5 ? JAN-dec Mon-fri",
            "5/100 0 31 12 6",
            ", 0 1 1 0",
            "@hourly",
            "@every 1h30m",
            "TZ=Europe/Rome 0 0 * * *",
            "CRON_TZ=UTC @daily",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_schedules_have_the_messages_of_go() {
        for (text, message) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@noon", "unrecognized descriptor: @noon"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where"),
        ] {
            assert_eq!(problem(text).as_deref(), Some(message), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "(TZ=|CRON_TZ=|@every )?[0-9a-z*/?, @-]{0,30}") {
            let _ = problem(&text);
        }
    }
}
