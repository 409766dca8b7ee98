//! The minimum and maximum sizes of values.

use super::{Estimate, Estimator, Inside, Origin};
use crate::ast::{ACCUMULATOR, Expr, ExprKind, Literal};
use crate::declared::Declared;
use crate::types::Type;

impl<'a> Estimator<'a> {
    pub(super) fn size_or_unknown(&mut self, expr: &'a Expr) -> Estimate {
        self.size(expr).unwrap_or(Estimate::UNKNOWN)
    }

    pub(super) fn size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Estimate::exactly(size));
        }
        if let Origin::Declared(declared) = self.origin(expr) {
            let size = declared_size(declared);
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.kind(expr)) {
            return Some(Estimate::exactly(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    pub(super) fn inside(&self, expr: &Expr) -> Option<Inside> {
        if let Some(inside) = self.insides.get(&expr.id) {
            return Some(*inside);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.inside,
            _ => None,
        }
    }

    /// The size for Kubernetes' own functions, which ignore accumulators.
    pub(super) fn library_size(&mut self, expr: &'a Expr) -> Estimate {
        let accumulated = matches!(&expr.kind, ExprKind::Ident(name) if **name == *ACCUMULATOR);
        match self.size(expr) {
            Some(size) => size,
            None if accumulated => Estimate::UNKNOWN,
            None => match self.origin(expr) {
                Origin::Declared(declared) => declared_size(declared),
                _ => Estimate::UNKNOWN,
            },
        }
    }
}

pub(super) fn declared_size(declared: &Declared) -> Estimate {
    Estimate { min: 0, max: declared.size_max }
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        ExprKind::Literal(Literal::Text(text)) => text.chars().count() as u64,
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Literal(_) => 1,
        ExprKind::List(elements) => elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
