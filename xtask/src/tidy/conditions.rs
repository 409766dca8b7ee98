//! Each condition of a kind has exactly one writer.
//!
//! A controller can write a condition only through an `OwnedCondition`, which it declares as a
//! private constant: `const CONNECTED: OwnedCondition = OwnedCondition::of("Cluster",
//! "Connected");`. So one declaration in the whole workspace, visible to one module only, is one
//! writer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};

static DECLARATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bOwnedCondition::of\s*\("));
static NAMES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*"([A-Za-z]+)"\s*,\s*"([A-Za-z]+)"\s*,?\s*\)"#));
static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?m)^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?(const fn|async fn|const|static|fn|let)\b")
});
static INLINE_TESTS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)^#\[cfg\(test\)\]\s*\nmod \w+ \{"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let mut writers: BTreeMap<(String, String), (PathBuf, usize)> = BTreeMap::new();
    for source in tree.rust().filter(|source| !source.is_test()) {
        for declaration in declarations(source) {
            let line = source.line_of(declaration.start);
            let Some(names) = NAMES.captures(&source.text[declaration.end..]) else {
                complaints.push(source.complain(
                    line,
                    "OwnedCondition::of must be given kind and type as literals, so that second \
                     writers can be found",
                ));
                continue;
            };
            let (kind, condition) = (names[1].to_owned(), names[2].to_owned());
            if let Some(wrong) = wrong_place(source, declaration.start) {
                let text = format!("condition '{condition}' of '{kind}' {wrong}");
                complaints.push(source.complain(line, text));
            }
            if let Some((file, first)) = writers.get(&(kind.clone(), condition.clone())) {
                complaints.push(source.complain(
                    line,
                    format!(
                        "second writer of condition '{condition}' of '{kind}': the first is \
                         {}:{first}",
                        file.display()
                    ),
                ));
            } else {
                writers.insert((kind, condition), (source.path.clone(), line));
            }
        }
    }
    Ok(complaints)
}

/// Where conditions are declared, comments and inline tests left out.
fn declarations(source: &Source) -> Vec<Range<usize>> {
    let end = INLINE_TESTS.find(&source.text).map_or(source.text.len(), |tests| tests.start());
    DECLARATION
        .find_iter(&source.text[..end])
        .filter(|found| {
            let line = source.text[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            !source.text[line..found.start()].trim_start().starts_with("//")
        })
        .map(|found| found.range())
        .collect()
}

/// What is wrong with the item that holds the declaration at `offset`.
fn wrong_place(source: &Source, offset: usize) -> Option<&'static str> {
    match ITEM.captures_iter(&source.text[..offset]).last() {
        Some(item) if !matches!(&item[2], "const" | "static") => {
            Some("must be declared as a private const of the module that writes it")
        }
        Some(item) if item.get(1).is_some() => {
            Some("must be private: whoever can see the constant can write the condition")
        }
        Some(_) => None,
        None => Some("must be declared as a private const of the module that writes it"),
    }
}
