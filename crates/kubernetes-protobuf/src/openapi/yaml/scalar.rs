//! Styles of text: plain, quoted, or as a literal block.

use std::fmt::Write;

use jiff::civil::Date;

/// The style in which a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A block of lines after a `|`.
    Literal,
}

impl Style {
    /// The style that `yaml.v3` chooses for the text.
    pub fn of(text: &str) -> Self {
        let found = Findings::of(text);
        let preferred = match text {
            _ if text.contains('\n') => Self::Literal,
            _ if !reads_as_text(text) => Self::DoubleQuoted,
            _ => Self::Plain,
        };
        match preferred {
            Self::Literal if found.is_unprintable || found.ends_line_with_space => {
                Self::DoubleQuoted
            }
            Self::Plain if found.is_unprintable || found.has_tab || found.joins_space_and_break => {
                Self::DoubleQuoted
            }
            Self::Plain if found.needs_quotes => Self::SingleQuoted,
            style => style,
        }
    }
}

/// Properties of a text that decide its style.
#[derive(Default)]
struct Findings {
    /// It contains something that YAML would parse as structure, or lose.
    needs_quotes: bool,
    is_unprintable: bool,
    has_tab: bool,
    /// A line, or the text, ends with a space.
    ends_line_with_space: bool,
    joins_space_and_break: bool,
}

impl Findings {
    fn of(text: &str) -> Self {
        let mut found = Self {
            needs_quotes: text.starts_with("---")
                || text.starts_with("...")
                || text.starts_with(is_space_or_break)
                || text.ends_with(is_space_or_break)
                || text.contains(is_break),
            is_unprintable: text
                .chars()
                .any(|character| character != '\t' && !is_printable(character)),
            has_tab: text.contains('\t'),
            ends_line_with_space: text.ends_with(' '),
            ..Self::default()
        };
        let mut before = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let ends_word = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            found.needs_quotes |= match (before, character) {
                (None, '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>') => true,
                (None, '\'' | '"' | '%' | '@' | '`') => true,
                (None, '?' | '-') | (_, ':') => ends_word,
                (Some(before), '#') => {
                    before == '\t' || before == '\0' || is_space_or_break(before)
                }
                _ => false,
            };
            match (before, character) {
                (Some(' '), next) if is_break(next) => {
                    found.ends_line_with_space = true;
                    found.joins_space_and_break = true;
                }
                (Some(before), ' ') if is_break(before) => found.joins_space_and_break = true,
                _ => {}
            }
            before = Some(character);
        }
        found
    }
}

/// Whether YAML treats the character as a line break.
pub fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether YAML treats the character as a space or a line break.
pub fn is_space_or_break(character: char) -> bool {
    character == ' ' || is_break(character)
}

fn is_printable(character: char) -> bool {
    // Characters beyond the first 65,536 are always escaped.
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && character != '\u{feff}'
}

/// The text between double quotes, with escapes.
pub fn escape(text: &str) -> String {
    // `yaml.v3` treats every such character as a byte order mark when the first one is.
    let has_mark = text.starts_with('\u{feff}');
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let short = match character {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0b' => 'v',
            '\x0c' => 'f',
            '\r' => 'r',
            '\x1b' => 'e',
            '"' | '\\' => character,
            '\u{85}' => 'N',
            '\u{a0}' if has_mark => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ if is_printable(character) && !has_mark => {
                escaped.push(character);
                continue;
            }
            _ => {
                let code = u32::from(character);
                let written = match code {
                    ..=0xff => write!(escaped, "\\x{code:02X}"),
                    0x100..=0xffff => write!(escaped, "\\u{code:04X}"),
                    _ => write!(escaped, "\\U{code:08X}"),
                };
                written.expect("writing to memory does not fail");
                continue;
            }
        };
        escaped.extend(['\\', short]);
    }
    escaped
}

/// Whether plain text parses as text, and not as a number, a date or another type.
fn reads_as_text(text: &str) -> bool {
    let is_word = matches!(
        text,
        "" | "~"
            | "null"
            | "Null"
            | "NULL"
            | "true"
            | "True"
            | "TRUE"
            | "false"
            | "False"
            | "FALSE"
            | ".nan"
            | ".NaN"
            | ".NAN"
            | ".inf"
            | ".Inf"
            | ".INF"
            | "+.inf"
            | "+.Inf"
            | "+.INF"
            | "-.inf"
            | "-.Inf"
            | "-.INF"
    );
    let without_underscores = text.replace('_', "");
    let is_number = match text.chars().next() {
        Some('.') => underscores_separate_digits(text) && is_float(&without_underscores),
        Some('+' | '-' | '0'..='9') => {
            is_float(&without_underscores) || is_integer_with_base(&without_underscores)
        }
        _ => false,
    };
    !is_word && !is_number && !is_time(text)
}

fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    text.match_indices('_').all(|(at, _)| at > 0 && is_digit(at - 1) && is_digit(at + 1))
}

/// Includes decimal integers. Excludes numbers that are too large to be finite.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_spelled = unsigned.starts_with(|first: char| first == '.' || first.is_ascii_digit())
        && unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    is_spelled && text.parse().is_ok_and(f64::is_finite)
}

/// `0x1f`, `-0o17`, `0b1`, in 64 bits.
fn is_integer_with_base(text: &str) -> bool {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(unsigned) => (&text[..1], unsigned),
        None => ("", text),
    };
    let Some((prefix, digits)) = unsigned.split_at_checked(2) else { return false };
    let base = match prefix {
        "0x" | "0X" => 16,
        "0o" | "0O" => 8,
        "0b" | "0B" => 2,
        _ => return false,
    };
    // A sign after the base is valid for binary and for lower-case octal numbers.
    if digits.starts_with(['+', '-']) {
        return sign.is_empty()
            && matches!(prefix, "0b" | "0o")
            && i64::from_str_radix(digits, base).is_ok();
    }
    match sign {
        "" => u64::from_str_radix(digits, base).is_ok(),
        sign => i64::from_str_radix(&format!("{sign}{digits}"), base).is_ok(),
    }
}

/// A date, alone or with a time: `2026-1-2`, `2026-01-02T03:04:05.5Z`, `2026-01-02 03:04:05`.
fn is_time(text: &str) -> bool {
    Rest(text).time().is_some_and(|rest| rest.is_empty())
}

/// Parses a text from its front.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Parses a date with an optional time, and returns the rest; `None` if there is no date.
    fn time(mut self) -> Option<&'a str> {
        let year = self.digits(4)?;
        let month = self.mark("-")?.one_or_two_digits()?;
        let day = self.mark("-")?.one_or_two_digits()?;
        Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
        if self.0.is_empty() {
            return Some(self.0);
        }
        let has_zone = !self.0.starts_with(' ');
        if has_zone {
            self.mark(if self.0.starts_with('T') { "T" } else { "t" })?;
        } else {
            self.0 = self.0.trim_start_matches(' ');
        }
        let hour = self.one_or_two_digits()?;
        let minute = self.mark(":")?.one_or_two_digits()?;
        let second = self.mark(":")?.one_or_two_digits()?;
        self.fraction();
        if has_zone {
            self.zone()?;
        }
        (hour < 24 && minute < 60 && second < 60).then_some(self.0)
    }

    /// `Z`, `+01:00`.
    fn zone(&mut self) -> Option<()> {
        const HOURS_MAX: u32 = 24;
        const MINUTES_MAX: u32 = 60;
        if self.mark("Z").is_some() {
            return Some(());
        }
        let hours = self.mark(if self.0.starts_with('+') { "+" } else { "-" })?.digits(2)?;
        let minutes = self.mark(":")?.digits(2)?;
        (hours <= HOURS_MAX && minutes <= MINUTES_MAX).then_some(())
    }

    fn fraction(&mut self) {
        let digits = self.0.strip_prefix(['.', ',']).unwrap_or_default();
        if digits.starts_with(|first: char| first.is_ascii_digit()) {
            self.0 = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }

    fn one_or_two_digits(&mut self) -> Option<u32> {
        self.digits(2).or_else(|| self.digits(1))
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = rest;
        digits.parse().ok()
    }

    fn mark(&mut self, mark: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(self)
    }
}
