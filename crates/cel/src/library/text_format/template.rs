//! The template of a formatted text, in pieces.

/// Largest number of digits behind the decimal point. Drover's own limit.
const PRECISION_MAX: usize = 1000;

/// A piece of a template.
#[derive(Debug)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// A clause for a value, or why it is invalid.
    Clause(Result<Clause, String>),
    /// A `%` at the end.
    End,
}

/// How a value is formatted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clause {
    /// One of `sdfebxXo`.
    pub kind: u8,
    /// Digits behind the decimal point.
    pub precision: Option<usize>,
}

/// The pieces in their order. An invalid clause is the last piece.
pub(crate) fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Text(&rest[..at]));
        rest = &rest[at + 1..];
        if rest.starts_with('%') {
            pieces.push(Piece::Text(&rest[..1]));
            rest = &rest[1..];
            continue;
        }
        if rest.is_empty() {
            pieces.push(Piece::End);
            break;
        }
        match clause(rest) {
            Ok((clause, tail)) => {
                pieces.push(Piece::Clause(Ok(clause)));
                rest = tail;
            }
            Err(error) => {
                let error = format!("could not parse formatting clause: {error}");
                pieces.push(Piece::Clause(Err(error)));
                return pieces;
            }
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let (precision, rest) = match text.strip_prefix('.') {
        None => (None, text),
        Some(tail) => {
            let end = tail.find(|c: char| !c.is_ascii_digit());
            let precision = |why: &str| format!("error while parsing precision: {why}");
            let end = end.ok_or_else(|| precision("could not find end of precision specifier"))?;
            let digits = &tail[..end];
            let number = |why: &str| {
                let why = format!("strconv.Atoi: parsing \"{digits}\": {why}");
                precision(&format!("error while converting precision to integer: {why}"))
            };
            let found = match digits.parse::<usize>() {
                Ok(found) if found <= PRECISION_MAX => found,
                _ if digits.is_empty() => return Err(number("invalid syntax")),
                _ => return Err(number("value out of range")),
            };
            (Some(found), &tail[end..])
        }
    };
    let kind = rest.bytes().next().unwrap_or_default();
    if b"sdfebxXo".contains(&kind) {
        Ok((Clause { kind, precision }, &rest[1..]))
    } else {
        // Upstream reads bytes.
        Err(format!("unrecognized formatting clause \"{}\"", char::from(kind)))
    }
}
