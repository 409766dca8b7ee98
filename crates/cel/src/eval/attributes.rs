//! Selections and indexes. A chain of them is one attribute.

use super::{Evaluator, named_type};
use crate::ast::{Expr, ExprKind, operator};
use crate::library;
use crate::operators;
use crate::value::{EvalResult, List, Map, Value, fail, no_such_overload};

impl<'a> Evaluator<'a> {
    pub(super) fn select(
        &mut self,
        expr: &'a Expr,
        operand: &'a Expr,
        field: &str,
        test: bool,
    ) -> EvalResult<'a> {
        if let Some(name) = self.program.qualified(expr.id) {
            return match self.program.is_input(name) {
                true => self.ident(name),
                false => named_type(name),
            };
        }
        let whole = self.operand(operand)?;
        if !test {
            self.charge(1)?;
        }
        let (value, optional) = match whole {
            Value::Optional(None) if test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        if let Value::Message(message) = &value {
            let found = message.fields().get(field);
            return match test {
                true => Ok(Value::Bool(found.is_some())),
                false => Ok(found.cloned().unwrap_or(Value::Null)),
            };
        }
        let Value::Map(map) = value else {
            return match (value, test) {
                (Value::List(_), _) => fail("unsupported index type 'string' in list"),
                (_, true) => Ok(Value::Bool(false)),
                (_, false) => fail(format!("no such key: {field}")),
            };
        };
        let found = map.field(field);
        if test {
            // A null that means absence was removed before.
            return Ok(Value::Bool(found.is_some()));
        }
        match (found, optional) {
            (Some(value), false) => value,
            (Some(value), true) => value.map(Value::some),
            (None, true) => Ok(Value::Optional(None)),
            (None, false) => fail(format!("no such key: {field}")),
        }
    }

    /// The operand of a selection or index. An operand that is no attribute becomes one.
    fn operand(&mut self, operand: &'a Expr) -> EvalResult<'a> {
        let value = self.expr(operand)?;
        if !is_attribute(operand) {
            self.charge(1)?;
        }
        Ok(value)
    }

    pub(super) fn optional_select(&mut self, operand: &'a Expr, field: &str) -> EvalResult<'a> {
        let value = match self.operand(operand)? {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => (*inner).clone(),
            other => other,
        };
        let found = match value {
            Value::Map(map) => map.field(field),
            Value::List(_) => return fail("unsupported index type 'string' in list"),
            _ => None,
        };
        match found {
            None => Ok(Value::Optional(None)),
            Some(value) => {
                self.charge(1)?;
                value.map(Value::some)
            }
        }
    }

    pub(super) fn index(&mut self, args: &'a [Expr], optional: bool) -> EvalResult<'a> {
        let whole = self.operand(&args[0])?;
        let index = self.expr(&args[1])?;
        let free = optional && self.program.is_constant(args[1].id);
        if !is_attribute(&args[1]) && !free {
            self.charge(1)?;
        }
        let (value, wrapped) = match whole {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &value {
            // The keys of input values are texts.
            Value::Map(Map::Given { .. } | Map::Object { .. })
                if !matches!(index, Value::Text(_)) =>
            {
                return no_such_overload();
            }
            Value::Map(map) => map.get(&index),
            Value::List(list) => match operators::position(&index) {
                Some(at) if matches!(list, List::Given { .. } if !matches!(index, Value::Int(_))) =>
                {
                    return fail(format!("unsupported index: {at}"));
                }
                Some(at) => usize::try_from(at).ok().and_then(|at| list.get(at)),
                None if matches!(index, Value::Double(_)) => {
                    let shown = library::text::display(&index);
                    return fail(format!("unsupported index value {shown} in list"));
                }
                None => {
                    let kind = index.to_type();
                    return fail(format!("unsupported index type '{}' in list", kind.name()));
                }
            },
            _ => None,
        };
        if free && found.is_some() {
            self.charge(1)?;
        }
        match (found, wrapped || optional) {
            (Some(value), true) => value.map(Value::some),
            (Some(value), false) => value,
            (None, true) => Ok(Value::Optional(None)),
            (None, false) => {
                let index = library::text::display(&index);
                match value {
                    Value::List(_) => fail(format!("index out of bounds: {index}")),
                    _ => fail(format!("no such key: {index}")),
                }
            }
        }
    }
}

/// Whether a selection from this expression continues its chain.
fn is_attribute(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Ident(_) => true,
        ExprKind::Select { test, .. } => !test,
        ExprKind::Call { function, .. } => matches!(
            &**function,
            operator::INDEX
                | operator::OPTIONAL_INDEX
                | operator::OPTIONAL_SELECT
                | operator::CONDITIONAL
        ),
        _ => false,
    }
}

/// Whether the start of a chain costs one unit by itself.
pub(super) fn has_base_cost(expr: &Expr) -> bool {
    let mut first = expr;
    while is_attribute(first) {
        first = match &first.kind {
            ExprKind::Ident(_) => return true,
            ExprKind::Select { operand, .. } => operand,
            ExprKind::Call { function, args, .. } if &**function != operator::CONDITIONAL => {
                &args[0]
            }
            _ => return false,
        };
    }
    !std::ptr::eq(first, expr)
}
