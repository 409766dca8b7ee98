//! Whether lists and maps are of one type.

use super::Checked;
use crate::ast::{Expr, Kind};
use crate::source::Problem;
use crate::types::Type;

/// Lists and maps are of one type, but for what a text is formatted from.
pub(super) fn uniform(expr: &Expr, checked: &Checked, problems: &mut Vec<Problem>) {
    if matches!(&expr.kind, Kind::Call { function, .. } if &**function == "format") {
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
        let wanted = kind(first, *optional);
        for (part, optional) in rest {
            let found = kind(part, *optional);
            if found != wanted {
                let message = format!("expected type '{wanted}' but found '{found}'");
                problems.push(Problem { at: part.at, message });
                if !all {
                    return;
                }
            }
        }
    };
    match &expr.kind {
        Kind::List(elements) => {
            compare(elements.iter().map(|e| (&e.value, e.optional)).collect(), false);
        }
        Kind::Map(entries) => {
            compare(entries.iter().map(|entry| (&entry.key, false)).collect(), true);
            compare(entries.iter().map(|e| (&e.value, e.optional)).collect(), true);
        }
        _ => {}
    }
    for child in expr.children() {
        uniform(child, checked, problems);
    }
}
