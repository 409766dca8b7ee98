//! `cargo xtask kind project`: where everything about a kind is, floor by floor, and what is not
//! there. The snake_case singular of a kind is the stem of its files everywhere.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace;

/// One place where a kind has something to say. `{}` stands for the kind.
struct Place {
    /// Below the root; a `*` stands for one folder.
    pattern: &'static str,
    what: &'static str,
    /// Whether a kind is incomplete without it.
    needed: bool,
}

const PLACES: [Place; 11] = [
    place("crates/api-*/src/{}.rs", "type, defaults, validation", true),
    place("crates/feature-*/src/{}.rs", "descriptor", true),
    place("crates/feature-*/src/{}/strategy.rs", "rules that need other objects", false),
    place("crates/feature-*/src/{}/view.rs", "REST view", false),
    place("crates/feature-*/src/{}/actions.rs", "REST actions", false),
    place("crates/feature-*/src/{}/management.rs", "reconcile in the management cluster", false),
    place("crates/feature-*/src/{}/downstream.rs", "reconcile in each cluster", false),
    place("crates/feature-*/src/{}/tests.rs", "scenarios", true),
    place("crates/cli/src/commands/{}.rs", "commands of its own", false),
    place("crates/e2e/*/{}.rs", "journeys", false),
    place("docs/compat/{}.md", "behaviour to match, with sources", true),
];

const fn place(pattern: &'static str, what: &'static str, needed: bool) -> Place {
    Place { pattern, what, needed }
}

pub fn run(kind: &str) -> Result<()> {
    let stem = stem(kind);
    let (lines, found) = listing(&workspace::root(), &stem);
    lines.iter().for_each(|line| println!("{line}"));
    if !found {
        bail!("no file is named for a kind '{stem}'");
    }
    Ok(())
}

/// `cluster_registration_token` of `ClusterRegistrationToken`; a stem stays as it is.
fn stem(kind: &str) -> String {
    let mut stem = String::new();
    for letter in kind.chars() {
        if letter.is_ascii_uppercase() && !stem.is_empty() {
            stem.push('_');
        }
        stem.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
    }
    stem
}

/// The lines to print, and whether any file was found.
fn listing(root: &Path, stem: &str) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    let mut known = Vec::new();
    for Place { pattern, what, needed } in PLACES {
        let pattern = pattern.replace("{}", stem);
        let files = matching(root, &pattern);
        if files.is_empty() {
            let mark = if needed { "missing" } else { "-" };
            lines.push(format!("{mark:<8} {pattern:<58} {what}"));
        }
        for file in files {
            lines.push(format!("{:<8} {:<58} {what}", "", file.display()));
            known.push(file);
        }
    }
    for file in matching(root, &format!("crates/feature-*/src/{stem}/*.rs")) {
        if !known.contains(&file) {
            lines.push(format!("{:<8} {}", "", file.display()));
        }
    }
    (lines, !known.is_empty())
}

/// Files below `root` that fit `pattern`, relative and sorted.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.split('/') {
        let Some((start, end)) = part.split_once('*') else {
            found = found.into_iter().map(|folder| folder.join(part)).collect();
            continue;
        };
        let fits = |name: &str| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        found = found
            .iter()
            .flat_map(|folder| {
                let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten();
                entries
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .filter(|name| fits(name))
                    .map(|name| folder.join(name))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    found.retain(|file| root.join(file).is_file());
    found.sort();
    found
}

#[cfg(test)]
mod tests;
