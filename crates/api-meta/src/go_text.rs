//! Text as Go prints it, for messages that clients know from Go.

use std::fmt::Write;

/// The text in double quotes, with unprintable characters escaped: `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match letter_of(c) {
            Some(letter) => out.extend(['\\', letter]),
            None if c.is_ascii_control() => push(&mut out, format_args!("\\x{:02x}", u32::from(c))),
            None if c.is_control() => push(&mut out, format_args!("\\u{:04x}", u32::from(c))),
            None => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The letter after the backslash in the escape of a character, if it has a short escape.
pub fn letter_of(c: char) -> Option<char> {
    Some(match c {
        '"' | '\\' => c,
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        _ => return None,
    })
}

fn push(out: &mut String, code: std::fmt::Arguments<'_>) {
    out.write_fmt(code).expect("writing to memory does not fail");
}
