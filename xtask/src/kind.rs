//! `cargo xtask kind project`: the places of a kind, from its schema to the interface. Without a
//! kind: all kinds, one a line.
//!
//! Fails when a kind lacks what every kind has ([`Kind::problems`]); tidy checks the same.

mod places;

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace;
use places::{Files, Kind, PLACES, Place};

const NONE: &str = "none";

/// Prints the places of one kind, or a table of all kinds.
///
/// # Errors
/// No kind has this name, or one lacks what every kind has.
pub fn run(name: Option<&str>) -> Result<()> {
    let files = Files::read(&workspace::root())?;
    let mut kinds = files.kinds();
    if let Some(name) = name {
        kinds.retain(|kind| kind.is_named(name));
        let [kind] = kinds.as_slice() else {
            bail!("there is no kind '{name}'; `cargo xtask kind` lists all");
        };
        print!("{}", listing(&files, kind));
    } else {
        print!("{}", table(&files, &kinds));
    }
    let problems: Vec<String> = kinds.iter().flat_map(|kind| kind.problems(&files)).collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("\nerror: "));
    }
    Ok(())
}

/// What kinds lack that every kind has, each with the file of the kind's schema.
///
/// # Errors
/// A file cannot be read.
pub fn problems(root: &Path) -> Result<Vec<(String, String)>> {
    let files = Files::read(root)?;
    let kinds = files.kinds();
    let of_kind = |kind: &Kind| {
        let file = kind.schema_file();
        kind.problems(&files).into_iter().map(move |problem| (file.clone(), problem))
    };
    Ok(kinds.iter().flat_map(of_kind).collect())
}

/// One place a line, below the name of what is there.
fn listing(files: &Files, kind: &Kind) -> String {
    let mut text = String::new();
    for Place { name, find } in PLACES {
        let found = find(files, kind);
        let lines = if found.is_empty() { vec![NONE.to_owned()] } else { found };
        for (index, line) in lines.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            writeln!(text, "{name:<12}{line}").expect("a string takes everything");
        }
    }
    text
}

/// One kind a line, with the number of its places of each sort.
fn table(files: &Files, kinds: &[Kind]) -> String {
    let head = ["kind"].into_iter().chain(PLACES.iter().map(|place| place.name));
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for kind in kinds {
        let numbers = PLACES.iter().map(|place| match (place.find)(files, kind).len() {
            0 => NONE.to_owned(),
            number => number.to_string(),
        });
        rows.push([kind.stem.clone()].into_iter().chain(numbers).collect());
    }
    let widths: Vec<usize> = (0..=PLACES.len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        writeln!(text, "{}", line.trim_end()).expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests;
