//! Named string formats. Strings of unknown formats are not checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// Whether `text` has the named format; `None` when the format is unknown.
pub(crate) fn matches(format: &str, text: &str) -> Option<bool> {
    Some(match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => Ipv4Addr::from_str(text).is_ok(),
        "ipv6" => Ipv6Addr::from_str(text).is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => SSN.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "byte" => is_base64(text),
        "password" => true,
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "k8sshortname" => is_short_name(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => return None,
    })
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern compiles")
}

static SSN: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| regex(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    regex(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)",
        r"([.][0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    ))
});
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[-+]?(0|([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"));
static LONG_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)^[0-9]+\s*(ns|us|µs|ms|s|sec|min|m|hr|hour|h|d|day|w|wk|week)s?$")
});

fn is_uri(text: &str) -> bool {
    if text.starts_with('/') {
        return !text.contains(char::is_control);
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_control() || c == ' ')
}

fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(start), Some(head)) => &head[start + 1..],
        _ => text,
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.is_empty()
            && !local.contains([' ', '@', '<', '>', ','])
            && !local.starts_with('.')
            && !local.ends_with('.')
            && domain.split('.').all(|part| !part.is_empty())
            && !domain.contains([' ', '<', '>', ','])
    })
}

fn is_hostname(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    !name.is_empty() && text.len() <= 255 && name.split('.').all(label)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let plain = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let (Ok(address), Ok(length), true) = (IpAddr::from_str(address), length.parse::<u8>(), plain)
    else {
        return false;
    };
    length <= if address.is_ipv4() { 32 } else { 128 }
}

/// 6, 8 or 20 octets, separated by colons or dashes, or in groups of four digits by dots.
fn is_mac(text: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let groups = |separator: char, length: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| hex(part, length))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let hex: String = text.chars().filter(|&c| c != '-').collect();
    let version_digit = hex.chars().nth(12);
    let variant_ok = match version {
        Some('4' | '5') => hex.chars().nth(16).is_some_and(|c| "89abAB".contains(c)),
        _ => true,
    };
    let shape_ok = !text.contains('-')
        || text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        || text.split('-').count() < 5;
    hex.len() == 32
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|expected| version_digit == Some(expected))
        && variant_ok
        && shape_ok
}

fn digits_of(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = digits_of(text);
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (index, c) in digits.chars().enumerate() {
        let value = match c {
            'X' | 'x' if index == 9 => 10,
            _ => match c.to_digit(10) {
                Some(value) => value,
                None => return false,
            },
        };
        sum += (10 - index as u32) * value;
    }
    sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = digits_of(text).chars().map(|c| c.to_digit(10)).collect();
    digits.filter(|digits| digits.len() == 13).is_some_and(|digits| {
        let weighted = digits.iter().enumerate().map(|(i, d)| if i % 2 == 0 { *d } else { 3 * d });
        weighted.sum::<u32>() % 10 == 0
    })
}

/// Issuer-like length and the Luhn checksum.
fn is_credit_card(text: &str) -> bool {
    let digits: Option<Vec<u32>> = digits_of(text).chars().map(|c| c.to_digit(10)).collect();
    digits.filter(|digits| (13..=16).contains(&digits.len())).is_some_and(|digits| {
        let weighted = digits.iter().rev().enumerate().map(|(index, digit)| match index % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        });
        weighted.sum::<u32>() % 10 == 0
    })
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    text.len().is_multiple_of(4)
        && padding <= 2
        && !text.is_empty()
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && jiff::civil::Date::from_str(text).is_ok()
}

fn is_date_time(text: &str) -> bool {
    DATE_TIME.captures(text).is_some_and(|parts| is_date(&parts[1]))
}

fn is_duration(text: &str) -> bool {
    DURATION.is_match(text) || LONG_DURATION.is_match(text)
}

fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_short_name(text: &str) -> bool {
    is_label(text)
}
