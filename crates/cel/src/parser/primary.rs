//! What operators are applied to: literals, names, calls, lists and maps.

use super::{Parser, RESERVED};
use crate::ast::{Element, Entry, Expr, Kind, Literal};
use crate::lexer::Token;
use crate::macros;
use crate::source::Problem;

impl Parser {
    pub(super) fn primary(&mut self) -> Result<Expr, Problem> {
        let at = self.at();
        if let Token::Symbol(_) | Token::End | Token::Quoted(_) = self.peek() {
            return self.grouped(at);
        }
        match self.take().token {
            Token::Literal(literal) => self.build.literal(at, literal),
            Token::Integer(value) => match i64::try_from(value) {
                Ok(value) => self.build.literal(at, Literal::Int(value)),
                Err(_) => Err(invalid_integer(at)),
            },
            Token::Ident(name) => self.named(at, &name, false),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn grouped(&mut self, at: u32) -> Result<Expr, Problem> {
        if self.accept("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.accept("-") {
            return match self.take().token {
                Token::Integer(value) => match 0i64.checked_sub_unsigned(value) {
                    Some(value) => self.build.literal(at, Literal::Int(value)),
                    None => Err(invalid_integer(at)),
                },
                Token::Literal(Literal::Double(value)) => {
                    self.build.literal(at, Literal::Double(-value))
                }
                _ => Err(self.unexpected("a number")),
            };
        }
        if self.accept("[") {
            return self.list(at);
        }
        if self.accept("{") {
            return self.map(at);
        }
        if self.accept(".")
            && let Token::Ident(name) = self.peek().clone()
        {
            self.take();
            return self.named(at, &name, true);
        }
        Err(self.unexpected("an expression"))
    }

    fn named(&mut self, at: u32, name: &str, absolute: bool) -> Result<Expr, Problem> {
        if RESERVED.contains(&name) {
            let message = format!("Syntax error: reserved identifier: {name}");
            return Err(Problem { at, message });
        }
        let open_at = self.at();
        if self.accept("(") {
            let args = self.arguments()?;
            return macros::global(&mut self.build, open_at, name, args);
        }
        let starts_message = matches!(self.peek(), Token::Symbol("{"));
        if starts_message {
            return self.build.node(open_at, Kind::Struct(name.into())).and_then(|expr| {
                self.take();
                self.skip_fields()?;
                Ok(expr)
            });
        }
        let name = if absolute { format!(".{name}") } else { name.to_owned() };
        self.build.ident(at, &name)
    }

    /// The fields of a message, which is refused when types are checked.
    fn skip_fields(&mut self) -> Result<(), Problem> {
        while !self.accept("}") {
            self.accept("?");
            match self.take().token {
                Token::Ident(_) | Token::Quoted(_) => {}
                _ => return Err(self.unexpected("a field name")),
            }
            self.expect(":")?;
            self.expression()?;
            if !self.accept(",") {
                return self.expect("}");
            }
        }
        Ok(())
    }

    fn list(&mut self, at: u32) -> Result<Expr, Problem> {
        let mut elements = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            elements.push(Element { value: self.expression()?, optional });
            if !self.accept(",") {
                self.expect("]")?;
                break;
            }
        }
        self.build.node(at, Kind::List(elements))
    }

    fn map(&mut self, at: u32) -> Result<Expr, Problem> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry { key, value, optional });
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.build.node(at, Kind::Map(entries))
    }
}

fn invalid_integer(at: u32) -> Problem {
    Problem { at, message: "Syntax error: invalid int literal".to_owned() }
}
