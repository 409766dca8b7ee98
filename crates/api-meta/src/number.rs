//! Numbers in query parameters and versions, refused with the messages of Go's `strconv`.

use std::num::{IntErrorKind, ParseIntError};

/// Parses a decimal number of 64 bits without a sign.
///
/// # Errors
/// The message of `strconv.ParseUint`.
pub fn unsigned(text: &str) -> Result<u64, String> {
    // Rust would accept a leading plus.
    let digits = if text.starts_with('+') { "+" } else { text };
    digits.parse().map_err(|error| problem("ParseUint", text, &error))
}

/// Parses a decimal number of 64 bits with an optional sign.
///
/// # Errors
/// The message of `strconv.ParseInt`.
pub fn signed(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error| problem("ParseInt", text, &error))
}

fn problem(function: &str, text: &str, error: &ParseIntError) -> String {
    let what = match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_refused_as_go_refuses_them() {
        assert_eq!(unsigned("12"), Ok(12));
        assert_eq!(signed("-12"), Ok(-12));
        for (text, what) in [
            ("x", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("+1", "invalid syntax"),
            ("", "invalid syntax"),
        ] {
            assert_eq!(unsigned(text), Err(format!("strconv.ParseUint: parsing {text:?}: {what}")));
        }
        let large = "99999999999999999999";
        assert_eq!(
            signed(large),
            Err(format!("strconv.ParseInt: parsing {large:?}: value out of range"))
        );
    }
}
