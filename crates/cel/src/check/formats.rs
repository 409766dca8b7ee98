//! Checks that constant templates fit their values.

use super::Checked;
use crate::ast::{Element, Expr, ExprKind, Literal};
use crate::library::text_format::template::{Piece, pieces};
use crate::library::text_format::{UNEXPECTED_END, mismatch, out_of_range};
use crate::source::CompileProblem;
use crate::types::Type;

/// Finds the problems of `expr` and its parts.
pub(super) fn formats(expr: &Expr, checked: &Checked, problems: &mut Vec<CompileProblem>) {
    if let ExprKind::Call { function, target: Some(target), args } = &expr.kind
        && &**function == "format"
        && let ExprKind::Literal(Literal::Text(template)) = &target.kind
        && let [Expr { kind: ExprKind::List(values), .. }] = args.as_slice()
        && let Err((at, message)) = fits(template, values, checked)
    {
        problems.push(CompileProblem { at: at.unwrap_or(expr.at), message });
    }
    for child in expr.children() {
        formats(child, checked, problems);
    }
}

/// Fails with the problem, and with its position when it concerns one of the values.
fn fits(
    template: &str,
    values: &[Element],
    checked: &Checked,
) -> Result<(), (Option<u32>, String)> {
    let mut used = 0;
    for piece in pieces(template) {
        let clause = match piece {
            Piece::Text(_) => continue,
            Piece::End => return Err((None, UNEXPECTED_END.to_owned())),
            Piece::Clause(clause) => clause,
        };
        let value = values.get(used).ok_or_else(|| (None, out_of_range(used)))?;
        let clause = clause.map_err(|error| (None, error))?;
        used += 1;
        if let Some(wrong) = unfit(clause.kind, &value.value, checked) {
            let found = checked.types[wrong.id as usize].name();
            return Err((Some(wrong.at), mismatch(clause.kind, found)));
        }
    }
    if values.len() > used {
        let message = format!(
            "too many arguments supplied to string.format (expected {used}, got {})",
            values.len()
        );
        return Err((None, message));
    }
    Ok(())
}

/// The part of the value that the clause cannot format.
fn unfit<'e>(kind: u8, value: &'e Expr, checked: &Checked) -> Option<&'e Expr> {
    let found = &checked.types[value.id as usize];
    if !found.is_dyn() && !takes(kind, found) {
        return Some(value);
    }
    let inside = matches!(kind, b's') && matches!(value.kind, ExprKind::List(_) | ExprKind::Map(_));
    let children = if inside { value.children() } else { Vec::new() };
    children.into_iter().find_map(|child| unfit(kind, child, checked))
}

fn takes(kind: u8, found: &Type) -> bool {
    match kind {
        b'd' | b'o' => matches!(found, Type::Int | Type::Uint),
        // Texts may name numbers, such as `NaN`.
        b'f' | b'e' => matches!(found, Type::Double | Type::Text),
        b'b' => matches!(found, Type::Int | Type::Uint | Type::Bool),
        b'x' | b'X' => matches!(found, Type::Int | Type::Uint | Type::Text | Type::Bytes),
        _ => !matches!(
            found,
            Type::Object(_) | Type::Library(_) | Type::Message(_) | Type::Optional(_)
        ),
    }
}
