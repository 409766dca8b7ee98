//! `fieldPath`: a simple JSON path of declared field names.

use crate::schema::{Additional, NodeId, Schema};

/// The path in the notation of causes, relative to the node `id`: `spec.replicas`, `labels[app]`.
///
/// # Errors
/// The text is not such a path, or its field is not declared. The error is the text of the refusal.
pub(super) fn normalize(schema: &Schema, id: NodeId, path: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut node = schema.node(id);
    let mut rest = path;
    while !rest.is_empty() {
        let (name, tail) = if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[', ']']).unwrap_or(tail.len());
            (tail[..end].to_owned(), &tail[end..])
        } else if let Some(tail) = rest.strip_prefix("['") {
            let (name, tail) = quoted(tail).ok_or("unexpected end of JSON path")?;
            (name, tail.strip_prefix(']').ok_or("expected ]")?)
        } else {
            return Err("expected [ or .");
        };
        if name.is_empty() {
            return Err("unexpected end of JSON path");
        }
        let child = if !node.properties.is_empty() {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
            node.property(&name)
        } else {
            out.push_str(&format!("[{name}]"));
            match node.additional {
                Additional::Schema(id) => Some(id),
                _ => None,
            }
        };
        node = schema.node(child.ok_or("does not refer to a valid field")?);
        rest = tail;
    }
    Ok(out)
}

/// A name up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((name, &text[at + 1..])),
            '\\' => name.push(match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}
