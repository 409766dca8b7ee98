//! Parses tables. Text is taken over unchanged: it is part of the program.

use std::fmt;

use serde_json::Value;

use super::{Access, Mark, Nested, Row, RowLocation, Stored, TypeTable};

/// A line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// Counted from one.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub wrong: &'static str,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: \"{}\"", self.line, self.wrong, self.text)
    }
}

impl std::error::Error for TableError {}

/// The part of the table that the lines belong to.
enum TablePart {
    Head,
    Section(&'static str),
    Nested,
}

/// Parses the table of a type.
///
/// # Errors
/// The first line that is not in the format of [`super`].
pub fn parse(text: &'static str) -> Result<TypeTable, TableError> {
    let mut table = TypeTable::default();
    let mut part = TablePart::Head;
    for (number, line) in lines(text) {
        let fail = |wrong| TableError { line: number, text: line.to_owned(), wrong };
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if !["metadata", "object", "spec", "status"].contains(&section) {
                return Err(fail("no such section"));
            }
            part = TablePart::Section(section);
        } else if let Some(id) = line.strip_prefix("struct ") {
            table.nested.push(Nested { id, fields: Vec::new() });
            part = TablePart::Nested;
        } else {
            match part {
                TablePart::Head => head(&mut table, line).map_err(fail)?,
                TablePart::Section(section) => {
                    table.fields.push(row(line, Some(section)).map_err(fail)?);
                }
                TablePart::Nested => {
                    let nested = table.nested.last_mut().ok_or_else(|| fail("no type begun"))?;
                    nested.fields.push(row(line, None).map_err(fail)?);
                }
            }
        }
    }
    Ok(table)
}

/// Reads a file of nested types.
///
/// # Errors
/// As [`parse`].
pub fn nested(text: &'static str) -> Result<Vec<Nested>, TableError> {
    parse(text).map(|table| table.nested)
}

fn lines(text: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn head(table: &mut TypeTable, line: &'static str) -> Result<(), &'static str> {
    let mut words = line.split_whitespace();
    let (Some(key), first, second) = (words.next(), words.next(), words.next()) else {
        return Err("an empty line");
    };
    if let ("kubernetes", Some(api_version), Some(kind), Some(plural)) =
        (key, first, second, words.next())
    {
        table.stored = Stored::Kubernetes { api_version, kind, plural };
        return Ok(());
    }
    match (key, first, second) {
        ("type", Some(id), Some(plural)) => (table.id, table.plural) = (id, plural),
        ("kind", Some(kind), Some(plural)) => table.stored = Stored::Kind { kind, plural },
        ("secret", prefix, None) => {
            table.stored = Stored::Secret { prefix: prefix.unwrap_or_default() };
        }
        ("scope", Some("namespaced"), None) => table.namespaced = true,
        ("scope", Some("cluster"), None) => table.namespaced = false,
        ("namespace", Some(namespace), None) => table.namespace = Some(namespace),
        ("base", Some(base), None) => table.base = Some(base),
        ("methods", Some("none"), None) => {}
        ("methods", Some(_), _) => {
            table.methods = line.split_whitespace().skip(1).collect();
            let known = ["list", "create", "get", "update", "delete"];
            if !table.methods.iter().all(|method| known.contains(method)) {
                return Err("no such method");
            }
        }
        ("state", None, None) => table.has_state = true,
        ("parent", Some(field), None) => table.parent = Some(field),
        ("kept", None, None) => table.is_unimplemented = true,
        ("embed", Some(id), Some(path)) => table.embedded = Some((id, path)),
        _ => return Err("unknown line"),
    }
    Ok(())
}

/// `section`: where the field is stored; nested fields are stored as they are named.
fn row(line: &'static str, section: Option<&'static str>) -> Result<Row, &'static str> {
    let (line, default) = match line.split_once(" = ") {
        Some((line, default)) => (line, Some(default.trim())),
        None => (line, None),
    };
    let mut words = line.split_whitespace();
    let (Some(name), Some(kind), Some(access)) = (words.next(), words.next(), words.next()) else {
        return Err("a field needs a name, a type and an access");
    };
    let (kind, options) = match kind.strip_suffix(')').and_then(|kind| kind.split_once('(')) {
        Some((kind, options)) => (kind, options.split('|').collect()),
        None => (kind, Vec::new()),
    };
    let is_known = access != "?";
    let access = if is_known { letters(access)? } else { unknown(section) };
    let mut row = Row {
        name,
        kind,
        options,
        access,
        location: location(section.unwrap_or_default(), stored_name(name, kind)),
        default: None,
        min: None,
        max: None,
        min_length: None,
        max_length: None,
        exists: false,
        holds: false,
        is_unimplemented: false,
        is_hidden: false,
        mark: kind.ends_with("password").then_some(Mark::Password),
    };
    for word in words {
        if flag(&mut row, word) {
            continue;
        }
        if let Some(location) = word.strip_prefix('@') {
            row.location = explicit_location(section.unwrap_or_default(), location);
            continue;
        }
        let (limit, number) = word.split_once('=').ok_or("unknown word")?;
        let number: i64 = number.parse().map_err(|_| "a limit is a whole number")?;
        let length = || u64::try_from(number).map_err(|_| "a length is not negative");
        match limit {
            "min" => row.min = Some(number),
            "max" => row.max = Some(number),
            "minLength" => row.min_length = Some(length()?),
            "maxLength" => row.max_length = Some(length()?),
            _ => return Err("no such limit"),
        }
    }
    row.default = match default {
        Some(text) => Some(value(kind, text)?),
        None if is_known && !access.nullable => match kind {
            "boolean" => Some(false.into()),
            "int" => Some(0.into()),
            _ => None,
        },
        None => None,
    };
    Ok(row)
}

/// Parses a word without arguments; `false` when it is none.
fn flag(row: &mut Row, word: &str) -> bool {
    match word {
        "credential" => row.mark = Some(Mark::Credential),
        "url" => row.mark = Some(Mark::Url),
        "exists" => row.exists = true,
        "holds" => row.holds = true,
        "kept" => row.is_unimplemented = true,
        "hidden" => row.is_hidden = true,
        _ => return false,
    }
    true
}

fn letters(text: &str) -> Result<Access, &'static str> {
    let mut access = Access::default();
    for letter in text.chars() {
        match letter {
            'C' => access.create = true,
            'U' => access.update = true,
            'R' => access.required = true,
            'N' => access.nullable = true,
            'W' => access.write_only = true,
            '-' if text == "-" => {}
            _ => return Err("access is made of the letters C, U, R, N and W"),
        }
    }
    Ok(access)
}

/// What is not known to be refused is taken; what a server reports is not for clients to say.
fn unknown(section: Option<&str>) -> Access {
    let writable = section != Some("status");
    Access { create: writable, update: writable, nullable: true, ..Access::default() }
}

fn stored_name(name: &str, kind: &str) -> String {
    let is_list = kind.starts_with("array[reference[");
    let (is_reference, end, stored) = match is_list {
        true => (true, "Ids", "Names"),
        false => (kind.starts_with("reference["), "Id", "Name"),
    };
    match name.strip_suffix(end).filter(|_| is_reference) {
        Some(stem) => format!("{stem}{stored}"),
        None => name.to_owned(),
    }
}

fn location(section: &str, name: String) -> RowLocation {
    match section {
        "" | "object" => RowLocation::Path(name),
        section => RowLocation::Path(format!("{section}.{name}")),
    }
}

fn explicit_location(section: &str, text: &'static str) -> RowLocation {
    if text == "-" {
        return RowLocation::NotStored;
    }
    match text.split_once(':') {
        Some(("annotation", key)) => RowLocation::Annotation(key),
        Some(("json", key)) => RowLocation::AnnotationJson(key),
        _ if text.contains('.') => RowLocation::Path(text.to_owned()),
        _ => location(section, text.to_owned()),
    }
}

/// A default, in the type of its field.
fn value(kind: &str, text: &str) -> Result<Value, &'static str> {
    let is_text = !["boolean", "int", "float"].contains(&kind) && !kind.ends_with(']');
    if is_text || kind.starts_with("reference[") {
        return Ok(text.into());
    }
    serde_json::from_str(text).map_err(|_| "the default is not of the field's type")
}
