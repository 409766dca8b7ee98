//! Why a text is no IP address, with the text of Go's `net/netip`.

use api_meta::go_text::quoted;

/// Digits of a group of an IPv6 address.
const GROUP_DIGITS_MAX: usize = 4;
/// Groups of an IPv6 address, and those of an embedded IPv4 address.
const GROUPS: usize = 8;
const GROUPS_OF_V4: usize = 2;

/// The problem, and the rest of the text from its position, if that is reported.
type Fault<'t> = (&'static str, Option<&'t str>);

/// The reason why `text` cannot be parsed.
pub(super) fn explain(text: &str) -> String {
    let fault = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => v4(text),
        Some(b':') => v6(text),
        Some(_) => Some(("missing IPv6 address", None)),
        None => None,
    };
    let (message, rest) = fault.unwrap_or(("unable to parse IP", None));
    let position = rest.map(|rest| format!(" (at {})", quoted(rest))).unwrap_or_default();
    format!("ParseAddr({}): {message}{position}", quoted(text))
}

fn v4(text: &str) -> Option<Fault<'_>> {
    let mut fields = 0;
    let mut at = 0;
    for field in text.split('.') {
        let end = at + field.len();
        let digits = field.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 1 && field.starts_with('0') {
            return Some(("IPv4 field has octet with leading zero", None));
        }
        if digits > 0 && !field[..digits].parse::<u32>().is_ok_and(|value| value <= 255) {
            return Some(("IPv4 field has value >255", None));
        }
        if digits < field.len() {
            return Some(("unexpected character", Some(&text[at + digits..])));
        }
        // An empty field is reported at the point beside it: at the end, at the point before.
        if field.is_empty() {
            let point = if end == text.len() { at.saturating_sub(1) } else { end };
            return Some(("IPv4 field must have at least one digit", Some(&text[point..])));
        }
        fields += 1;
        let point_is_last = end + 1 == text.len();
        if fields > 3 && end < text.len() && !point_is_last {
            return Some(("IPv4 address too long", None));
        }
        at = end + 1;
    }
    (fields < 4).then_some(("IPv4 address too short", None))
}

fn v6(whole: &str) -> Option<Fault<'_>> {
    let text = match whole.split_once('%') {
        Some((_, "")) => return Some(("zone must be a non-empty string", None)),
        Some((text, _)) => text,
        None => whole,
    };
    let mut rest = text;
    let mut groups = 0;
    let mut shortened = false;
    if let Some(tail) = rest.strip_prefix("::") {
        (rest, shortened) = (tail, true);
    }
    while groups < GROUPS && !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > GROUP_DIGITS_MAX {
            return Some(("each group must have 4 or less digits", Some(rest)));
        }
        if digits == 0 {
            let message = "each colon-separated field must have at least one digit";
            return Some((message, Some(rest)));
        }
        let tail = &rest[digits..];
        if tail.starts_with('.') {
            if !shortened && groups != GROUPS - GROUPS_OF_V4 {
                let message =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return Some((message, Some(rest)));
            }
            if groups + GROUPS_OF_V4 > GROUPS {
                let message =
                    "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Some((message, Some(rest)));
            }
            return v4(rest);
        }
        groups += 1;
        rest = match (tail.strip_prefix(':'), tail) {
            (_, "") => "",
            (None, _) => return Some(("unexpected character, want colon", Some(tail))),
            (Some(""), _) => {
                return Some(("colon must be followed by more characters", Some(tail)));
            }
            (Some(next), _) => next,
        };
        if let Some(next) = rest.strip_prefix(':') {
            if shortened {
                return Some(("multiple :: in address", Some(rest)));
            }
            (rest, shortened) = (next, true);
        }
    }
    match (rest, groups < GROUPS, shortened) {
        ("", true, false) => Some(("address string too short", None)),
        ("", true, true) => None,
        ("", false, _) => Some(("the :: must expand to at least one field of zeros", None)),
        (rest, _, _) => Some(("trailing garbage after address", Some(rest))),
    }
}
