//! Text as Go's `%q` prints it.

use std::fmt::Write as _;

/// The text in double quotes, with the escapes of Go.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                write!(out, "\\x{:02x}", c as u32).expect("a String takes all")
            }
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32).expect("a String takes all"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A list of quoted texts, as Go prints it: `["a" "b"]`.
pub fn quoted_list<T: AsRef<str>>(list: &[T]) -> String {
    let items: Vec<String> = list.iter().map(|item| quoted(item.as_ref())).collect();
    format!("[{}]", items.join(" "))
}
