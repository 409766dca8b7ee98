//! Builds nodes within the limits.

use crate::ast::{Element, Expr, ExprKind, Literal, MapEntry, MessageField};
use crate::limits::{DEPTH_MAX, NODES_MAX};
use crate::source::CompileProblem;

/// Builds nodes within the limits.
#[derive(Default)]
pub(crate) struct Builder {
    /// The number of ids in use: the next node gets this one.
    pub ids: u32,
}

impl Builder {
    /// A node at this position of the source.
    ///
    /// # Errors
    /// The expression has too many nodes or is nested too deep.
    pub fn node(&mut self, at: u32, kind: ExprKind) -> Result<Expr, CompileProblem> {
        if self.ids >= NODES_MAX {
            let message = format!("expression is too large: more than {NODES_MAX} parts");
            return Err(CompileProblem { at, message });
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
    /// An identifier.
    ///
    /// # Errors
    /// Those of [`Self::node`].
    pub fn ident(&mut self, at: u32, name: &str) -> Result<Expr, CompileProblem> {
        self.node(at, ExprKind::Ident(name.into()))
    }
    /// A literal.
    ///
    /// # Errors
    /// Those of [`Self::node`].
    pub fn literal(&mut self, at: u32, literal: Literal) -> Result<Expr, CompileProblem> {
        self.node(at, ExprKind::Literal(literal))
    }
    /// A call of a function without a receiver.
    ///
    /// # Errors
    /// Those of [`Self::node`].
    pub fn call(&mut self, at: u32, name: &str, args: Vec<Expr>) -> Result<Expr, CompileProblem> {
        self.node(at, ExprKind::Call { function: name.into(), target: None, args })
    }
    /// A call of a function on a receiver.
    ///
    /// # Errors
    /// Those of [`Self::node`].
    pub fn member(
        &mut self,
        at: u32,
        target: Expr,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Expr, CompileProblem> {
        let target = Some(Box::new(target));
        self.node(at, ExprKind::Call { function: name.into(), target, args })
    }
    /// The same expression with ids of its own.
    ///
    /// # Errors
    /// Those of [`Self::node`].
    pub fn copy(&mut self, expr: &Expr) -> Result<Expr, CompileProblem> {
        let kind = match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => expr.kind.clone(),
            ExprKind::Select { operand, field, test } => ExprKind::Select {
                operand: Box::new(self.copy(operand)?),
                field: field.clone(),
                test: *test,
            },
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function: function.clone(),
                target: target.as_ref().map(|t| self.copy(t).map(Box::new)).transpose()?,
                args: args.iter().map(|arg| self.copy(arg)).collect::<Result<_, _>>()?,
            },
            ExprKind::List(elements) => {
                let mut copies = Vec::with_capacity(elements.len());
                for Element { value, optional } in elements {
                    copies.push(Element { value: self.copy(value)?, optional: *optional });
                }
                ExprKind::List(copies)
            }
            ExprKind::Map(entries) => {
                let mut copies = Vec::with_capacity(entries.len());
                for MapEntry { key, value, optional } in entries {
                    let (key, value) = (self.copy(key)?, self.copy(value)?);
                    copies.push(MapEntry { key, value, optional: *optional });
                }
                ExprKind::Map(copies)
            }
            ExprKind::Struct { name, fields } => {
                let mut copies = Vec::with_capacity(fields.len());
                for field in fields {
                    copies.push(MessageField { value: self.copy(&field.value)?, ..field.clone() });
                }
                ExprKind::Struct { name: name.clone(), fields: copies }
            }
            ExprKind::Fold(fold) => {
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
                ExprKind::Fold(copy)
            }
        };
        self.node(expr.at, kind)
    }
}

fn too_deep(at: u32) -> CompileProblem {
    CompileProblem { at, message: format!("expression recursion limit exceeded: {DEPTH_MAX}") }
}
