//! The text form of label selectors. A hand-written scanner and a recursive descent over its
//! tokens.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Requirement, SelectorError, Test};
use crate::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectorToken {
    Word,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Greater,
    Less,
    End,
}

type Item<'a> = (SelectorToken, &'a str);

fn fail<T>(text: String) -> Result<T, SelectorError> {
    Err(SelectorError(text))
}

fn scan(text: &str) -> Vec<Item<'_>> {
    let bytes = text.as_bytes();
    let is_symbol = |byte: u8| b"=!(),><".contains(&byte);
    let mut items = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let token = match bytes[at] {
            b',' => SelectorToken::Comma,
            b'(' => SelectorToken::Open,
            b')' => SelectorToken::Close,
            b'>' => SelectorToken::Greater,
            b'<' => SelectorToken::Less,
            b'=' => SelectorToken::Equals,
            b'!' => SelectorToken::Not,
            _ => SelectorToken::Word,
        };
        at += 1;
        let token = match token {
            SelectorToken::Word => {
                while at < bytes.len() && !is_symbol(bytes[at]) && !bytes[at].is_ascii_whitespace()
                {
                    at += 1;
                }
                SelectorToken::Word
            }
            SelectorToken::Equals if bytes.get(at) == Some(&b'=') => {
                at += 1;
                SelectorToken::Equals
            }
            SelectorToken::Not if bytes.get(at) == Some(&b'=') => {
                at += 1;
                SelectorToken::NotEquals
            }
            other => other,
        };
        items.push((token, &text[start..at]));
    }
    items
}

struct SelectorParser<'a> {
    items: Vec<Item<'a>>,
    at: usize,
}

impl<'a> SelectorParser<'a> {
    fn peek(&self) -> Item<'a> {
        self.items.get(self.at).copied().unwrap_or((SelectorToken::End, ""))
    }
    fn next(&mut self) -> Item<'a> {
        let item = self.peek();
        self.at += 1;
        item
    }
    fn take(&mut self, token: SelectorToken) -> bool {
        let found = self.peek().0 == token;
        self.at += usize::from(found);
        found
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.take(SelectorToken::Not);
        let (token, key) = self.next();
        if token != SelectorToken::Word {
            return fail(format!("found '{key}', expected: identifier"));
        }
        check_key(key)?;
        if negated {
            return Ok(Requirement { key: key.to_owned(), test: Test::DoesNotExist });
        }
        if matches!(self.peek().0, SelectorToken::End | SelectorToken::Comma) {
            return Ok(Requirement { key: key.to_owned(), test: Test::Exists });
        }
        let (operator, text) = self.next();
        let test = match (operator, text) {
            (SelectorToken::Word, "in") => Test::In(self.values()?),
            (SelectorToken::Word, "notin") => Test::NotIn(self.values()?),
            (SelectorToken::Equals, _) => Test::In(BTreeSet::from([self.value()?])),
            (SelectorToken::NotEquals, _) => Test::NotIn(BTreeSet::from([self.value()?])),
            (SelectorToken::Greater, _) => Test::GreaterThan(self.number()?),
            (SelectorToken::Less, _) => Test::LessThan(self.number()?),
            _ => return fail(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        checked(key, test)
    }

    /// One value after `=`; nothing there is the empty value.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            (SelectorToken::End | SelectorToken::Comma, _) => Ok(String::new()),
            (SelectorToken::Word, word) => {
                self.at += 1;
                Ok(word.to_owned())
            }
            (_, other) => fail(format!("found '{other}', expected: identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let value = self.value()?;
        value.parse().or_else(|_| {
            fail(format!(
                "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an \
                 integer",
                Value::from(value)
            ))
        })
    }

    /// `(a,b)`. Nothing between commas, and nothing at all, is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        let (open, text) = self.next();
        if open != SelectorToken::Open {
            return fail(format!("found '{text}', expected: '('"));
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(match self.peek() {
                (SelectorToken::Word, word) => {
                    self.at += 1;
                    word.to_owned()
                }
                (SelectorToken::Comma | SelectorToken::Close, _) => String::new(),
                (_, other) => {
                    return fail(format!("found '{other}', expected: ',', or identifier"));
                }
            });
            match self.next() {
                (SelectorToken::Comma, _) => {}
                (SelectorToken::Close, _) => return Ok(values),
                (_, other) => return fail(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = SelectorParser { items: scan(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            (SelectorToken::Word | SelectorToken::Not, _) => {
                let requirement = parser.requirement().map_err(|error| {
                    SelectorError(format!("unable to parse requirement: {error}"))
                })?;
                requirements.push(requirement);
            }
            (SelectorToken::End, _) if requirements.is_empty() => return Ok(requirements),
            (_, other) if requirements.is_empty() => {
                return fail(format!(
                    "found '{other}', expected: !, identifier, or 'end of string'"
                ));
            }
            (_, other) => return fail(format!("found '{other}', expected: identifier after ','")),
        }
        match parser.next() {
            (SelectorToken::End, _) => return Ok(requirements),
            (SelectorToken::Comma, _) => {}
            (_, other) => {
                return fail(format!("found '{other}', expected: ',' or 'end of string'"));
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), SelectorError> {
    let problems = names::qualified_name(key);
    if problems.is_empty() {
        return Ok(());
    }
    fail(format!("key: Invalid value: {}: {}", Value::from(key), problems.join("; ")))
}

/// A requirement with its key and values checked.
pub(super) fn checked(key: &str, test: Test) -> Result<Requirement, SelectorError> {
    check_key(key)?;
    if let Test::In(values) | Test::NotIn(values) = &test {
        if values.is_empty() {
            return fail(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                    .to_owned(),
            );
        }
        for (index, value) in values.iter().enumerate() {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                return fail(format!(
                    "values[{index}][{key}]: Invalid value: {}: {}",
                    Value::from(value.as_str()),
                    problems.join("; ")
                ));
            }
        }
    }
    Ok(Requirement { key: key.to_owned(), test })
}
