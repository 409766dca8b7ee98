//! Operands: literals, names, calls, lists and maps.

use super::{ExprParser, RESERVED};
use crate::ast::{Element, Expr, ExprKind, Literal, MapEntry, MessageField};
use crate::lexer::Token;
use crate::macros;
use crate::source::CompileProblem;

impl ExprParser {
    pub(super) fn primary(&mut self) -> Result<Expr, CompileProblem> {
        let at = self.at();
        if let Token::Symbol(_) | Token::End | Token::Quoted(_) = self.peek() {
            return self.grouped_operand(at);
        }
        match self.take().token {
            Token::Literal(literal) => self.build.literal(at, literal),
            Token::Integer(value) => match i64::try_from(value) {
                Ok(value) => self.build.literal(at, Literal::Int(value)),
                Err(_) => Err(invalid_integer(at)),
            },
            Token::Ident(name) => self.named_operand(at, &name, false),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn grouped_operand(&mut self, at: u32) -> Result<Expr, CompileProblem> {
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
            return self.named_operand(at, &name, true);
        }
        Err(self.unexpected("an expression"))
    }

    fn named_operand(
        &mut self,
        at: u32,
        name: &str,
        absolute: bool,
    ) -> Result<Expr, CompileProblem> {
        if let Some(length) = self.message_name() {
            return self.message(name, absolute, length);
        }
        if RESERVED.contains(&name) {
            let message = format!("Syntax error: reserved identifier: {name}");
            return Err(CompileProblem { at, message });
        }
        let open_at = self.at();
        if self.accept("(") {
            let args = self.arguments()?;
            return macros::global(&mut self.build, open_at, name, args);
        }
        let name = if absolute { format!(".{name}") } else { name.to_owned() };
        self.build.ident(at, &name)
    }

    /// The number of tokens between the first part of a name and the brace that makes it the name
    /// of a message, as in `Object.spec{}`.
    fn message_name(&self) -> Option<usize> {
        let token = |at: usize| self.tokens.get(self.next + at).map(|spanned| &spanned.token);
        let mut length = 0;
        while let (Some(Token::Symbol(".")), Some(Token::Ident(_))) =
            (token(length), token(length + 1))
        {
            length += 2;
        }
        matches!(token(length), Some(Token::Symbol("{"))).then_some(length)
    }

    fn message(
        &mut self,
        first: &str,
        absolute: bool,
        length: usize,
    ) -> Result<Expr, CompileProblem> {
        let mut name = if absolute { format!(".{first}") } else { first.to_owned() };
        for _ in 0..length {
            match self.take().token {
                Token::Ident(part) => name.push_str(&part),
                _ => name.push('.'),
            }
        }
        let at = self.take().at;
        let mut fields = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let (Token::Ident(name) | Token::Quoted(name)) = self.take().token else {
                return Err(self.unexpected("a field name"));
            };
            let at = self.at();
            self.expect(":")?;
            fields.push(MessageField { at, name, value: self.expression()?, optional });
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.build.node(at, ExprKind::Struct { name: name.into(), fields })
    }

    fn list(&mut self, at: u32) -> Result<Expr, CompileProblem> {
        let mut elements = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            elements.push(Element { value: self.expression()?, optional });
            if !self.accept(",") {
                self.expect("]")?;
                break;
            }
        }
        self.build.node(at, ExprKind::List(elements))
    }

    fn map(&mut self, at: u32) -> Result<Expr, CompileProblem> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(MapEntry { key, value, optional });
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.build.node(at, ExprKind::Map(entries))
    }
}

fn invalid_integer(at: u32) -> CompileProblem {
    CompileProblem { at, message: "Syntax error: invalid int literal".to_owned() }
}
