//! Source text to expressions, by recursive descent.
//!
//! Hostile input cannot exhaust the stack: nesting is counted on the way down, and every node knows
//! its height, so that long chains such as `a + a + …` are refused as well.

use crate::ast::{Element, Entry, Expr, Kind, Literal, operator};
use crate::lexer::{Spanned, Token, tokens};
use crate::limits::{DEPTH_MAX, NESTING_MAX, NODES_MAX, SOURCE_CHARS_MAX};
use crate::macros;
use crate::source::Problem;

/// Identifiers that the grammar keeps for itself.
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
/// Binary operators by how tightly they bind, loosest first. `||` and `&&` come before these.
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

/// The expression, and how many ids its nodes use.
pub(crate) fn parse(source: &str) -> Result<(Expr, u32), Problem> {
    let size = source.chars().count();
    if size > SOURCE_CHARS_MAX {
        let message = format!(
            "expression code point size exceeds limit: size: {size}, limit {SOURCE_CHARS_MAX}"
        );
        return Err(Problem { at: 0, message });
    }
    let mut parser =
        Parser { tokens: tokens(source)?, next: 0, depth: 0, build: Builder::default() };
    let expr = parser.expression()?;
    parser.expect_end()?;
    Ok((expr, parser.build.ids))
}

/// Makes nodes within the limits.
#[derive(Default)]
pub(crate) struct Builder {
    ids: u32,
}

impl Builder {
    pub fn node(&mut self, at: u32, kind: Kind) -> Result<Expr, Problem> {
        if self.ids >= NODES_MAX {
            let message = format!("expression is too large: more than {NODES_MAX} parts");
            return Err(Problem { at, message });
        }
        let mut expr = Expr { id: self.ids, at, height: 0, kind };
        self.ids += 1;
        let below = expr.children().iter().map(|child| child.height).max().unwrap_or(0);
        if usize::from(below) >= DEPTH_MAX {
            return Err(too_deep(at));
        }
        expr.height = below + 1;
        Ok(expr)
    }
    pub fn ident(&mut self, at: u32, name: &str) -> Result<Expr, Problem> {
        self.node(at, Kind::Ident(name.into()))
    }
    pub fn literal(&mut self, at: u32, literal: Literal) -> Result<Expr, Problem> {
        self.node(at, Kind::Literal(literal))
    }
    pub fn call(&mut self, at: u32, name: &str, args: Vec<Expr>) -> Result<Expr, Problem> {
        self.node(at, Kind::Call { function: name.into(), target: None, args })
    }
    pub fn member(&mut self, at: u32, target: Expr, name: &str) -> Result<Expr, Problem> {
        let target = Some(Box::new(target));
        self.node(at, Kind::Call { function: name.into(), target, args: Vec::new() })
    }
    /// The same expression with ids of its own.
    pub fn copy(&mut self, expr: &Expr) -> Result<Expr, Problem> {
        let kind = match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Struct(_) => expr.kind.clone(),
            Kind::Select { operand, field, test } => Kind::Select {
                operand: Box::new(self.copy(operand)?),
                field: field.clone(),
                test: *test,
            },
            Kind::Call { function, target, args } => Kind::Call {
                function: function.clone(),
                target: target.as_ref().map(|t| self.copy(t).map(Box::new)).transpose()?,
                args: args.iter().map(|arg| self.copy(arg)).collect::<Result<_, _>>()?,
            },
            Kind::List(elements) => {
                let mut copies = Vec::with_capacity(elements.len());
                for Element { value, optional } in elements {
                    copies.push(Element { value: self.copy(value)?, optional: *optional });
                }
                Kind::List(copies)
            }
            Kind::Map(entries) => {
                let mut copies = Vec::with_capacity(entries.len());
                for Entry { key, value, optional } in entries {
                    let (key, value) = (self.copy(key)?, self.copy(value)?);
                    copies.push(Entry { key, value, optional: *optional });
                }
                Kind::Map(copies)
            }
            Kind::Fold(fold) => {
                let mut copy = fold.clone();
                for part in [
                    &mut copy.range,
                    &mut copy.init,
                    &mut copy.condition,
                    &mut copy.step,
                    &mut copy.result,
                ] {
                    *part = self.copy(part)?;
                }
                Kind::Fold(copy)
            }
        };
        self.node(expr.at, kind)
    }
}

fn too_deep(at: u32) -> Problem {
    Problem { at, message: format!("expression recursion limit exceeded: {DEPTH_MAX}") }
}

struct Parser {
    tokens: Vec<Spanned>,
    next: usize,
    depth: usize,
    build: Builder,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn at(&self) -> u32 {
        self.tokens[self.next].at
    }

    fn take(&mut self) -> Spanned {
        let token = self.tokens[self.next].clone();
        // The last token is the end, which stays.
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

    fn expect(&mut self, symbol: &str) -> Result<(), Problem> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}'"))) }
    }

    fn expect_end(&mut self) -> Result<(), Problem> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.unexpected("<EOF>")),
        }
    }

    fn unexpected(&self, wanted: &str) -> Problem {
        let found = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
            Token::Integer(value) => value.to_string(),
            Token::Ident(name) | Token::Quoted(name) => name.to_string(),
            Token::Literal(_) => "literal".to_owned(),
        };
        let message = format!("Syntax error: mismatched input '{found}' expecting {wanted}");
        Problem { at: self.at(), message }
    }

    fn expression(&mut self) -> Result<Expr, Problem> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let message = format!("expression recursion limit exceeded: {NESTING_MAX}");
            return Err(Problem { at: self.at(), message });
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
    fn junction(&mut self, symbol: &str, function: &str) -> Result<Expr, Problem> {
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
    ) -> Result<Expr, Problem> {
        if terms.len() == 1 {
            return Ok(terms.remove(0));
        }
        let middle = terms.len().div_ceil(2);
        let right = terms.split_off(middle);
        let left = self.balance(terms, &places[..middle], function)?;
        let right = self.balance(right, &places[middle..], function)?;
        self.build.call(places[middle - 1], function, vec![left, right])
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Problem> {
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

    fn unary(&mut self) -> Result<Expr, Problem> {
        let at = self.at();
        for (symbol, function) in [("!", operator::NOT), ("-", operator::NEGATE)] {
            let mut count = 0;
            while matches!(self.peek(), Token::Symbol(found) if *found == symbol) {
                // A sign right before a number belongs to it.
                if symbol == "-" && count == 0 && self.sign_of_number() {
                    break;
                }
                self.take();
                count += 1;
            }
            if count > 0 {
                let operand = self.member()?;
                // Two of them are none.
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

    fn member(&mut self) -> Result<Expr, Problem> {
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

    fn field(&mut self, operand: Expr, at: u32, optional: bool) -> Result<Expr, Problem> {
        let name_at = self.at();
        let (name, quoted) = match self.take().token {
            Token::Ident(name) => (name, false),
            Token::Quoted(name) => (name, true),
            // `in` is a word of the grammar, but no field can have this name unescaped.
            _ => {
                self.next = self.next.saturating_sub(1);
                return Err(Problem { at: name_at, ..self.unexpected("an identifier") });
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
        let kind = Kind::Select { operand: Box::new(operand), field: name, test: false };
        self.build.node(at, kind)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Problem> {
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

    fn primary(&mut self) -> Result<Expr, Problem> {
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
