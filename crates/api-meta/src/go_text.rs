//! Text as Go prints it, where clients are shown what Go printed.

use std::fmt::Write;

/// A text in quotes, with what cannot be printed written as code: `%q`.
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

/// What stands for a character behind a backslash.
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
