//! Source text to tokens.

use crate::ast::Literal;
use crate::source::CompileProblem;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Literal(Literal),
    /// Digits of an integer, which a sign may precede.
    Integer(u64),
    Ident(Box<str>),
    /// A field name in backticks, only after a dot.
    Quoted(Box<str>),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub token: Token,
    pub at: u32,
}

/// Longest first.
const SYMBOLS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{",
    "}", "+", "-", "*", "/", "%", "=", "|",
];

pub(crate) fn tokens(source: &str) -> Result<Vec<Spanned>, CompileProblem> {
    let mut lexer = Lexer { rest: source, at: 0 };
    let mut out = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.next()?;
        let end = token == Token::End;
        out.push(Spanned { token, at });
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    /// Characters before `rest`.
    at: u32,
}

impl<'a> Lexer<'a> {
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.at += taken.chars().count() as u32;
        taken
    }

    fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.len()
                - self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
            self.advance(blanks);
            if !self.rest.starts_with("//") {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn problem(&self, message: impl Into<String>) -> CompileProblem {
        CompileProblem { at: self.at, message: format!("Syntax error: {}", message.into()) }
    }

    fn next(&mut self) -> Result<Token, CompileProblem> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        if let Some(prefix) = self.quote_prefix() {
            return self.quoted(prefix);
        }
        let fraction = || self.rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || (first == '.' && fraction()) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
            return Ok(match self.advance(end) {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Symbol("in"),
                name => Token::Ident(name.into()),
            });
        }
        if first == '`' {
            let end = self.rest[1..].find('`').ok_or_else(|| self.problem("unterminated '`'"))?;
            let quoted = self.advance(end + 2);
            return Ok(Token::Quoted(quoted[1..=end].into()));
        }
        match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            Some(symbol @ (&"=" | &"|")) => {
                Err(self.problem(format!("token recognition error at: '{symbol}'")))
            }
            Some(symbol) => {
                self.advance(symbol.len());
                Ok(Token::Symbol(symbol))
            }
            None => Err(self.problem(format!("token recognition error at: '{first}'"))),
        }
    }

    fn number(&mut self) -> Result<Token, CompileProblem> {
        let bytes = self.rest.as_bytes();
        let digits = |mut end: usize, hex: bool| {
            let fits = |b: &u8| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
            while bytes.get(end).is_some_and(fits) {
                end += 1;
            }
            end
        };
        let hex = bytes.starts_with(b"0x") && bytes.get(2).is_some_and(u8::is_ascii_hexdigit);
        let mut end = digits(if hex { 2 } else { 0 }, hex);
        let mut is_double = false;
        if !hex {
            if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
                is_double = true;
                end = digits(end + 1, false);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
                let start = end + 1 + usize::from(signed);
                if bytes.get(start).is_some_and(u8::is_ascii_digit) {
                    is_double = true;
                    end = digits(start, false);
                }
            }
        }
        let text = &self.rest[..end];
        if is_double {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            let value = value.ok_or_else(|| self.problem("invalid double literal"))?;
            self.advance(end);
            return Ok(Token::Literal(Literal::Double(value)));
        }
        let value = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        let unsigned = matches!(bytes.get(end), Some(b'u' | b'U'));
        let kind = if unsigned { "uint" } else { "int" };
        let value = value.map_err(|_| self.problem(format!("invalid {kind} literal")))?;
        self.advance(end + usize::from(unsigned));
        Ok(if unsigned { Token::Literal(Literal::Uint(value)) } else { Token::Integer(value) })
    }

    /// `r` and `b` before a quote, in either order and case.
    fn quote_prefix(&self) -> Option<&'a str> {
        let end = self.rest.bytes().take(3).position(|byte| matches!(byte, b'"' | b'\''))?;
        let prefix = &self.rest[..end];
        let known = matches!(prefix.to_ascii_lowercase().as_str(), "" | "r" | "b" | "rb" | "br");
        known.then_some(prefix)
    }

    fn quoted(&mut self, prefix: &str) -> Result<Token, CompileProblem> {
        let start = CompileProblem { at: self.at, message: String::new() };
        let fail = |text: &str| CompileProblem {
            message: format!("Syntax error: {text}"),
            ..start.clone()
        };
        let raw = prefix.contains(['r', 'R']);
        let bytes = prefix.contains(['b', 'B']);
        self.advance(prefix.len());
        let triple = self.rest.starts_with("\"\"\"") || self.rest.starts_with("'''");
        let quote = self.advance(if triple { 3 } else { 1 });
        let mut out: Vec<u8> = Vec::new();
        loop {
            if self.rest.starts_with(quote) {
                self.advance(quote.len());
                break;
            }
            let Some(c) = self.rest.chars().next() else {
                return Err(fail("unterminated string literal"));
            };
            if !triple && matches!(c, '\n' | '\r') {
                return Err(fail("unterminated string literal"));
            }
            self.advance(c.len_utf8());
            if c != '\\' {
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            } else if raw {
                out.push(b'\\');
                // Backslashes in a raw text are literal, and a quote after one does not end the
                // text.
                if let Some(next) = self.rest.chars().next() {
                    out.extend(self.advance(next.len_utf8()).bytes());
                }
            } else {
                self.escape(bytes, &mut out).ok_or_else(|| fail("invalid escape sequence"))?;
            }
        }
        if bytes {
            return Ok(Token::Literal(Literal::Bytes(out.into())));
        }
        let text = String::from_utf8(out).map_err(|_| fail("invalid UTF-8"))?;
        Ok(Token::Literal(Literal::Text(text.into())))
    }

    fn escape(&mut self, bytes: bool, out: &mut Vec<u8>) -> Option<()> {
        let c = self.rest.chars().next()?;
        self.advance(c.len_utf8());
        let simple = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '`' | '?' => c as u8,
            'x' | 'X' => return self.code(2, 16, bytes, out),
            'u' if !bytes => return self.code(4, 16, false, out),
            'U' if !bytes => return self.code(8, 16, false, out),
            '0'..='3' => {
                let more = self.rest.get(..2)?;
                let code = u32::from_str_radix(&format!("{c}{more}"), 8).ok()?;
                self.advance(2);
                return push_code(code, bytes, out);
            }
            _ => return None,
        };
        out.push(simple);
        Some(())
    }

    fn code(&mut self, length: usize, radix: u32, bytes: bool, out: &mut Vec<u8>) -> Option<()> {
        let digits = self.rest.get(..length).filter(|text| !text.contains(['+', '-']))?;
        let code = u32::from_str_radix(digits, radix).ok()?;
        self.advance(length);
        push_code(code, bytes, out)
    }
}

fn push_code(code: u32, bytes: bool, out: &mut Vec<u8>) -> Option<()> {
    if bytes {
        out.push(u8::try_from(code).ok()?);
    } else {
        out.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
    }
    Some(())
}
