//! Words that must not get into the tree: places that exist on one machine only.

use anyhow::Result;

use super::{Complaint, Tree};

/// Written in two halves, so that this file does not hold them.
const FORBIDDEN: [(&str, &str, &str); 8] = [
    ("/wor", "k/", "a path of one machine"),
    (".libra", "ry/", "a path of one machine"),
    ("/root", "/.", "a path of one machine"),
    ("index.cra", "tes.io", "the host of a registry"),
    ("static.cra", "tes.io", "the host of a registry"),
    ("proxy.gol", "ang.org", "the host of a registry"),
    ("sum.gol", "ang.org", "the host of a registry"),
    ("registry.np", "mjs.org", "the host of a registry"),
];
/// Written by package managers, which do name registries.
const WRITTEN_BY_TOOLS: [&str; 2] = ["package-lock.json", "npm-shrinkwrap.json"];

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let ours = |file: &Option<&str>| file.is_none_or(|name| !WRITTEN_BY_TOOLS.contains(&name));
    for source in &tree.files {
        if !ours(&source.path.file_name().and_then(|name| name.to_str())) {
            continue;
        }
        for (number, line) in source.lines() {
            for (start, end, what) in FORBIDDEN {
                let word = format!("{start}{end}");
                if line.contains(&word) {
                    complaints.push(source.complain(number, format!("'{word}' is {what}")));
                }
            }
        }
    }
    Ok(complaints)
}
