//! Checks that lists and maps have elements of one type.

use super::Checked;
use crate::ast::{Expr, ExprKind};
use crate::source::CompileProblem;
use crate::types::Type;

/// Reports lists and maps with elements of several types, except for the arguments of `format`.
pub(super) fn uniform(expr: &Expr, checked: &Checked, problems: &mut Vec<CompileProblem>) {
    if matches!(&expr.kind, ExprKind::Call { function, .. } if &**function == "format") {
        return;
    }
    let mut compare = |parts: Vec<(&Expr, bool)>, all: bool| {
        let kind = |part: &Expr, optional: bool| match &checked.types[part.id as usize] {
            Type::Optional(inner) if optional => (**inner).clone(),
            other => other.clone(),
        };
        let Some(((first, optional), rest)) = parts.split_first() else {
            return;
        };
        let expected = kind(first, *optional);
        for (part, optional) in rest {
            let found = kind(part, *optional);
            if found != expected {
                let message = format!("expected type '{expected}' but found '{found}'");
                problems.push(CompileProblem { at: part.at, message });
                if !all {
                    return;
                }
            }
        }
    };
    match &expr.kind {
        ExprKind::List(elements) => {
            compare(elements.iter().map(|e| (&e.value, e.optional)).collect(), false);
        }
        ExprKind::Map(entries) => {
            compare(entries.iter().map(|entry| (&entry.key, false)).collect(), true);
            compare(entries.iter().map(|e| (&e.value, e.optional)).collect(), true);
        }
        _ => {}
    }
    for child in expr.children() {
        uniform(child, checked, problems);
    }
}
