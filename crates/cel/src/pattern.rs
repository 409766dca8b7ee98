//! Go's regular expression syntax in terms of the `regex` crate's. Both are linear-time; they
//! differ in spelling.

use regex::{Regex, RegexBuilder};

use crate::limits::{PATTERN_BYTES_COMPUTED_MAX, PATTERN_BYTES_MAX};

/// Compiles a pattern written for Go's `regexp`.
///
/// # Errors
/// The text is no pattern, or its compiled size exceeds 1 MiB. Report it to the author of the
/// pattern.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(pattern)).size_limit(PATTERN_BYTES_MAX).build()
}

/// Compiles a pattern that an expression computed, with a lower limit, because there may be many.
pub(crate) fn compile_computed(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&translate(pattern)).size_limit(PATTERN_BYTES_COMPUTED_MAX).build()
}

/// Three differences matter: Go's perl classes are ASCII; a `[` or `&&` inside a class is literal;
/// a `{` that begins no repetition is literal.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut class_start: Option<usize> = None;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let Some(escaped) = tail.chars().next() else {
                    out.push('\\');
                    break;
                };
                match ascii_class(escaped) {
                    Some(class) => out.push_str(class),
                    None => out.extend(['\\', escaped]),
                }
                rest = &tail[escaped.len_utf8()..];
                continue;
            }
            '[' if class_start.is_some() => {
                match tail.strip_prefix(':').and_then(|name| name.find(":]")) {
                    Some(end) => {
                        // A named class such as [:alpha:].
                        let length = end + 4;
                        out.push_str(&rest[..length]);
                        rest = &rest[length..];
                        continue;
                    }
                    None => out.push_str("\\["),
                }
            }
            '[' => {
                out.push('[');
                rest = tail;
                if let Some(negated) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = negated;
                }
                class_start = Some(rest.len());
                continue;
            }
            // The first character of a class is literal even when it is a bracket.
            ']' if class_start == Some(rest.len()) => out.push_str("\\]"),
            ']' => {
                class_start = None;
                out.push(']');
            }
            '&' | '~' if class_start.is_some() => out.extend(['\\', c]),
            '{' if class_start.is_none() && !is_repetition(tail) => out.push_str("\\{"),
            '}' if class_start.is_none() && !closes_repetition(&out) => out.push_str("\\}"),
            _ => out.push(c),
        }
        rest = tail;
    }
    out
}

fn ascii_class(escaped: char) -> Option<&'static str> {
    Some(match escaped {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\f\\r ]",
        'S' => "[^\\t\\n\\f\\r ]",
        'b' => "(?-u:\\b)",
        'B' => return None,
        _ => return None,
    })
}

/// Whether `n}`, `n,}` or `n,m}` follows.
fn is_repetition(tail: &str) -> bool {
    let Some(end) = tail.find('}') else {
        return false;
    };
    let (low, high) = tail[..end].split_once(',').unwrap_or((&tail[..end], ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// Whether the text so far ends inside `{n`, `{n,` or `{n,m`; escapes such as `\pL` in braces count
/// as well.
fn closes_repetition(out: &str) -> bool {
    let Some(start) = out.rfind('{') else {
        return false;
    };
    let escaped = out[..start].ends_with('\\');
    !escaped && !out[start..].contains('}')
}
