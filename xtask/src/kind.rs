//! `cargo xtask kind project`: lists the files of a kind, floor by floor, and the missing ones. The
//! snake_case singular of a kind is the stem of all its files.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::workspace;

/// A file that a kind may have. `{}` is the stem of the kind.
struct KindFile {
    /// Path below the root; a `*` matches within one folder name.
    pattern: &'static str,
    what: &'static str,
    /// Whether every kind must have it.
    is_required: bool,
}

const KIND_FILES: [KindFile; 11] = [
    kind_file("crates/api-*/src/{}.rs", "type, defaults, validation", true),
    kind_file("crates/feature-*/src/{}.rs", "descriptor", true),
    kind_file("crates/feature-*/src/{}/strategy.rs", "rules that need other objects", false),
    kind_file("crates/feature-*/src/{}/view.rs", "REST view", false),
    kind_file("crates/feature-*/src/{}/actions.rs", "REST actions", false),
    kind_file(
        "crates/feature-*/src/{}/management.rs",
        "reconcile in the management cluster",
        false,
    ),
    kind_file("crates/feature-*/src/{}/downstream.rs", "reconcile in each cluster", false),
    kind_file("crates/feature-*/src/{}/tests.rs", "scenarios", true),
    kind_file("crates/cli/src/commands/{}.rs", "commands of its own", false),
    kind_file("crates/e2e/*/{}.rs", "journeys", false),
    kind_file("docs/compat/{}.md", "behaviour to match, with sources", true),
];

const fn kind_file(pattern: &'static str, what: &'static str, is_required: bool) -> KindFile {
    KindFile { pattern, what, is_required }
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

/// `cluster_registration_token` of `ClusterRegistrationToken`; a stem stays unchanged.
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
    let mut listed = Vec::new();
    for KindFile { pattern, what, is_required } in KIND_FILES {
        let pattern = pattern.replace("{}", stem);
        let files = files_matching(root, &pattern);
        if files.is_empty() {
            let mark = if is_required { "missing" } else { "-" };
            lines.push(format!("{mark:<8} {pattern:<58} {what}"));
        }
        for file in files {
            lines.push(format!("{:<8} {:<58} {what}", "", file.display()));
            listed.push(file);
        }
    }
    for file in files_matching(root, &format!("crates/feature-*/src/{stem}/*.rs")) {
        if !listed.contains(&file) {
            lines.push(format!("{:<8} {}", "", file.display()));
        }
    }
    (lines, !listed.is_empty())
}

/// Files below `root` that match `pattern`, relative and sorted.
fn files_matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
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
