//! Every dependency that a manifest declares is named in the crate's sources, and every one of the
//! workspace in a manifest.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::{Complaint, Source, Tree};

/// Declared for the features that they turn on in what others depend on, or named by generated code
/// only.
const UNNAMED: [&str; 2] = ["k8s-openapi", "tonic-prost"];
/// Tables of a manifest with dependencies.
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let mut declared = BTreeSet::new();
    for manifest in tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let parsed = read(manifest)?;
        let folder = manifest.path.parent().unwrap_or(Path::new(""));
        let sources: Vec<&Source> =
            tree.rust().filter(|source| source.path.starts_with(folder)).collect();
        for name in names(&parsed) {
            // The workspace's own manifest is the folder above all.
            let is_crate = parsed.contains_key("package");
            if is_crate && !UNNAMED.contains(&&*name) && !is_named(&name, &sources) {
                let text = format!("no source names the dependency '{name}': remove it");
                complaints.push(manifest.complain(0, text));
            }
            declared.insert(name);
        }
    }
    let Some(root) = tree.files.iter().find(|file| file.path == Path::new("Cargo.toml")) else {
        return Ok(complaints);
    };
    let parsed = read(root)?;
    let shared = parsed.get("workspace").and_then(|all| all.get("dependencies"));
    for name in shared.and_then(Value::as_table).into_iter().flat_map(|table| table.keys()) {
        if !declared.contains(name) {
            let text = format!("no crate of the workspace depends on '{name}': remove it");
            complaints.push(root.complain(0, text));
        }
    }
    Ok(complaints)
}

fn read(manifest: &Source) -> Result<Table> {
    let read = || format!("cannot read '{}'", manifest.path.display());
    manifest.text.parse().with_context(read)
}

/// Dependencies of all tables, those for some targets only included.
fn names(manifest: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = targets.into_iter().flat_map(|all| all.values()).filter_map(Value::as_table);
    let tables = of_targets.chain([manifest]);
    tables
        .flat_map(|table| TABLES.iter().filter_map(|name| table.get(*name)?.as_table()))
        .flat_map(|table| table.keys().cloned())
        .collect()
}

/// Whether a path begins with the crate's name: `name::…`, `use name;`.
fn is_named(dependency: &str, sources: &[&Source]) -> bool {
    let name = dependency.replace('-', "_");
    sources.iter().any(|source| {
        source.text.match_indices(&name).any(|(start, _)| {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let (before, after) = (&source.text[..start], &source.text[start + name.len()..]);
            let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
            let is_first = !before.ends_with("::");
            is_whole && is_first && (after.starts_with("::") || before.ends_with("use "))
        })
    })
}
