//! Field selectors: the text, canonical like label selectors, and matching through a lookup.
//!
//! The caller checks which fields a kind supports, with [`FieldSelector::fields`].

#[cfg(test)]
mod tests;

use std::fmt;

use crate::labels::SelectorError;

/// One comparison of a field with a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Dotted path, such as `metadata.name`.
    pub field: String,
    pub value: String,
    /// True for `=` and `==`, false for `!=`.
    pub equal: bool,
}

/// A conjunction of terms. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// Invariant: sorted, without duplicates.
    terms: Vec<Term>,
}

impl FieldSelector {
    /// Parses the text of a query parameter; the empty text matches everything.
    ///
    /// # Errors
    /// Invalid syntax or an invalid escape; respond with 400 and the message.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let Some((field, equal, value)) = split_operator(part) else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(SelectorError(message));
            };
            let value = unescape(value)?;
            terms.push(Term { field: field.to_owned(), value, equal });
        }
        terms.sort();
        terms.dedup();
        Ok(Self { terms })
    }

    /// Adds the condition that `field` equals `value`.
    pub fn and_equal(mut self, field: &str, value: &str) -> Self {
        self.terms.push(Term { field: field.to_owned(), value: value.to_owned(), equal: true });
        self.terms.sort();
        self.terms.dedup();
        self
    }

    /// Whether an object matches. `lookup` returns the value of a field as text; absent fields are
    /// empty.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| (lookup(&term.field) == term.value) == term.equal)
    }

    /// The fields that the selector names, in order, to check that a kind supports them.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// The comparisons, sorted.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The value that the selector requires `field` to equal, if there is one.
    pub fn required(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.equal && term.field == field)?;
        Some(&term.value)
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

/// Splits at commas that no backslash precedes.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Cuts at the first operator: `!=`, `==` or `=`.
fn split_operator(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.bytes().enumerate().position(|(index, byte)| {
        byte == b'=' || (byte == b'!' && part.as_bytes().get(index + 1) == Some(&b'='))
    })?;
    let (field, rest) = part.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(SelectorError(format!(
                        "invalid field selector, invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector, unescaped character in value: {character}"
                )));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}
