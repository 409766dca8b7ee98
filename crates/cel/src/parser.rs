//! Source text to expressions, by recursive descent.
//!
//! Hostile input cannot exhaust the stack: the parser counts nesting, and every node has its
//! height, so that long chains such as `a + a + …` are refused, too.

mod primary;

use crate::ast::{Expr, ExprKind, Literal, operator};
use crate::build::Builder;
use crate::lexer::{Spanned, Token, tokens};
use crate::limits::{NESTING_MAX, SOURCE_CHARS_MAX};
use crate::macros;
use crate::source::CompileProblem;

/// Identifiers that the grammar reserves.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// Binary operators by precedence, lowest first. `||` and `&&` have a lower one.
const BINARY: [&[(&str, &str)]; 3] = [
    &[
        ("<", operator::LESS),
        ("<=", operator::LESS_EQUALS),
        (">=", operator::GREATER_EQUALS),
        (">", operator::GREATER),
        ("==", operator::EQUALS),
        ("!=", operator::NOT_EQUALS),
        ("in", operator::IN),
    ],
    &[("+", operator::ADD), ("-", operator::SUBTRACT)],
    &[("*", operator::MULTIPLY), ("/", operator::DIVIDE), ("%", operator::MODULO)],
];

/// Parses a source. Returns the expression, and the number of ids that its nodes use.
pub(crate) fn parse(source: &str) -> Result<(Expr, u32), CompileProblem> {
    let size = source.chars().count();
    if size > SOURCE_CHARS_MAX {
        let message = format!(
            "expression code point size exceeds limit: size: {size}, limit {SOURCE_CHARS_MAX}"
        );
        return Err(CompileProblem { at: 0, message });
    }
    let mut parser =
        ExprParser { tokens: tokens(source)?, next: 0, depth: 0, build: Builder::default() };
    let expr = parser.expression()?;
    parser.expect_end()?;
    Ok((expr, parser.build.ids))
}

struct ExprParser {
    tokens: Vec<Spanned>,
    next: usize,
    depth: usize,
    build: Builder,
}

impl ExprParser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn at(&self) -> u32 {
        self.tokens[self.next].at
    }

    fn take(&mut self) -> Spanned {
        let token = self.tokens[self.next].clone();
        // The last token is the end, which is never consumed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), CompileProblem> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}'"))) }
    }

    fn expect_end(&mut self) -> Result<(), CompileProblem> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.unexpected("<EOF>")),
        }
    }

    fn unexpected(&self, expected: &str) -> CompileProblem {
        let found = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::Integer(value) => value.to_string(),
            Token::Ident(name) | Token::Quoted(name) => name.to_string(),
            Token::Literal(_) => "literal".to_owned(),
        };
        let message = format!("Syntax error: mismatched input '{found}' expecting {expected}");
        CompileProblem { at: self.at(), message }
    }

    fn expression(&mut self) -> Result<Expr, CompileProblem> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let message = format!("expression recursion limit exceeded: {NESTING_MAX}");
            return Err(CompileProblem { at: self.at(), message });
        }
        let condition = self.junction("||", operator::OR)?;
        let at = self.at();
        let expr = if self.accept("?") {
            let then = self.junction("||", operator::OR)?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            self.build.call(at, operator::CONDITIONAL, vec![condition, then, otherwise])?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Terms joined by `||` or `&&`, as a balanced tree: a thousand terms are ten levels.
    fn junction(&mut self, symbol: &str, function: &str) -> Result<Expr, CompileProblem> {
        let mut terms = Vec::new();
        let mut places = Vec::new();
        loop {
            terms.push(match symbol {
                "||" => self.junction("&&", operator::AND)?,
                _ => self.binary(0)?,
            });
            places.push(self.at());
            if !self.accept(symbol) {
                return self.balance(terms, &places, function);
            }
        }
    }

    fn balance(
        &mut self,
        mut terms: Vec<Expr>,
        places: &[u32],
        function: &str,
    ) -> Result<Expr, CompileProblem> {
        if terms.len() == 1 {
            return Ok(terms.remove(0));
        }
        let middle = terms.len().div_ceil(2);
        let right = terms.split_off(middle);
        let left = self.balance(terms, &places[..middle], function)?;
        let right = self.balance(right, &places[middle..], function)?;
        self.build.call(places[middle - 1], function, vec![left, right])
    }

    fn binary(&mut self, level: usize) -> Result<Expr, CompileProblem> {
        let Some(operators) = BINARY.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        loop {
            let found = match self.peek() {
                Token::Symbol(symbol) => operators.iter().find(|(text, _)| text == symbol),
                _ => None,
            };
            let Some((_, function)) = found else {
                return Ok(left);
            };
            let at = self.take().at;
            let right = self.binary(level + 1)?;
            left = self.build.call(at, function, vec![left, right])?;
        }
    }

    fn unary(&mut self) -> Result<Expr, CompileProblem> {
        let at = self.at();
        for (symbol, function) in [("!", operator::NOT), ("-", operator::NEGATE)] {
            let mut count = 0;
            while matches!(self.peek(), Token::Symbol(found) if *found == symbol) {
                // A sign directly before a number belongs to the number.
                if symbol == "-" && count == 0 && self.sign_of_number() {
                    break;
                }
                self.take();
                count += 1;
            }
            if count > 0 {
                let operand = self.member()?;
                // Two signs cancel each other out.
                return match count % 2 {
                    0 => Ok(operand),
                    _ => self.build.call(at, function, vec![operand]),
                };
            }
        }
        self.member()
    }

    fn sign_of_number(&self) -> bool {
        let after = self.tokens.get(self.next + 1).map(|spanned| &spanned.token);
        matches!(after, Some(Token::Integer(_) | Token::Literal(Literal::Double(_))))
    }

    fn member(&mut self) -> Result<Expr, CompileProblem> {
        let mut expr = self.primary()?;
        loop {
            let at = self.at();
            if self.accept(".") {
                let optional = self.accept("?");
                expr = self.field(expr, at, optional)?;
            } else if self.accept("[") {
                let optional = self.accept("?");
                let index = self.expression()?;
                self.expect("]")?;
                let function = if optional { operator::OPTIONAL_INDEX } else { operator::INDEX };
                expr = self.build.call(at, function, vec![expr, index])?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn field(&mut self, operand: Expr, at: u32, optional: bool) -> Result<Expr, CompileProblem> {
        let name_at = self.at();
        let (name, quoted) = match self.take().token {
            Token::Ident(name) => (name, false),
            Token::Quoted(name) => (name, true),
            // `in` is a keyword, so no field can have this name unescaped.
            _ => {
                self.next = self.next.saturating_sub(1);
                return Err(CompileProblem { at: name_at, ..self.unexpected("an identifier") });
            }
        };
        if optional {
            let field = self.build.literal(name_at, Literal::Text(name))?;
            return self.build.call(at, operator::OPTIONAL_SELECT, vec![operand, field]);
        }
        let open_at = self.at();
        if !quoted && self.accept("(") {
            let args = self.arguments()?;
            return macros::member(&mut self.build, open_at, operand, &name, args);
        }
        let kind = ExprKind::Select { operand: Box::new(operand), field: name, test: false };
        self.build.node(at, kind)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, CompileProblem> {
        let mut args = Vec::new();
        if self.accept(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.accept(",") {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }
}
