//! Making nodes within the limits.

use crate::ast::{Element, Entry, Expr, Field, Kind, Literal};
use crate::limits::{DEPTH_MAX, NODES_MAX};
use crate::source::Problem;

/// Makes nodes within the limits.
#[derive(Default)]
pub(crate) struct Builder {
    /// Of the nodes so far.
    pub ids: u32,
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
    pub fn member(
        &mut self,
        at: u32,
        target: Expr,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Expr, Problem> {
        let target = Some(Box::new(target));
        self.node(at, Kind::Call { function: name.into(), target, args })
    }
    /// The same expression with ids of its own.
    pub fn copy(&mut self, expr: &Expr) -> Result<Expr, Problem> {
        let kind = match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => expr.kind.clone(),
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
            Kind::Struct { name, fields } => {
                let mut copies = Vec::with_capacity(fields.len());
                for field in fields {
                    copies.push(Field { value: self.copy(&field.value)?, ..field.clone() });
                }
                Kind::Struct { name: name.clone(), fields: copies }
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
