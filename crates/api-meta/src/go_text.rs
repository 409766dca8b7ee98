//! Text as Go prints it, where clients are shown what Go printed.

use std::fmt::Write;

/// A text in quotes, with what cannot be printed written as code: `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if c.is_ascii_control() => push(&mut out, format_args!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => push(&mut out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn push(out: &mut String, code: std::fmt::Arguments<'_>) {
    out.write_fmt(code).expect("writing to memory does not fail");
}
