//! `cargo xtask tidy`: the rules of the code base that no compiler checks.
//!
//! A rule is a function from a [`Tree`] to complaints; [`CHECKS`] lists them. Each is proven by a
//! folder in `xtask/fixtures/tidy` that breaks exactly that rule.

mod architecture;
mod compatibility;
mod conditions;
mod contracts;
mod dependencies;
mod flaky_tests;
mod floors;
mod kinds;
mod manners;
mod papers;
mod rooms;
mod vocabulary;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use proc_macro2::TokenStream;

use crate::workspace;

/// Folders that hold nothing of ours, or breaches on purpose.
const SKIPPED: [&str; 7] = [
    "target",
    ".git",
    "node_modules",
    "dist",
    "xtask/fixtures",
    // Generated from the contract of drivers.
    "crates/driver-contract/src/generated",
    "testbed/driver/types",
];
/// Endings of files that are text of ours.
const TEXTS: [&str; 15] = [
    "css", "go", "html", "js", "json", "md", "mod", "proto", "rs", "sh", "sql", "toml", "ts",
    "tsx", "yaml",
];
/// Text files without an ending.
const PLAIN: [&str; 3] = [".ci/run", ".gitignore", "Dockerfile"];

type Check = fn(&Tree) -> Result<Vec<Complaint>>;

const CHECKS: [(&str, Check); 13] = [
    ("floors", floors::check),
    ("rooms", rooms::check),
    ("architecture", architecture::check),
    ("dependencies", dependencies::check),
    ("kinds", kinds::check),
    ("vocabulary", vocabulary::check),
    ("contracts", contracts::check),
    ("conditions", conditions::check),
    ("manners", manners::check),
    ("words", words::check),
    ("papers", papers::check),
    ("compatibility", compatibility::check),
    ("flaky tests", flaky_tests::check),
];

pub fn run() -> Result<()> {
    let complaints = complaints(&workspace::root())?;
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        1 => bail!("tidy has 1 complaint"),
        many => bail!("tidy has {many} complaints"),
    }
}

/// Everything that breaks a rule below `root`, in the order of the files.
fn complaints(root: &Path) -> Result<Vec<Complaint>> {
    let tree = Tree::read(root)?;
    let mut all = Vec::new();
    for (name, check) in CHECKS {
        all.extend(check(&tree).with_context(|| format!("tidy cannot check the {name}"))?);
    }
    all.sort();
    Ok(all)
}

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Complaint {
    /// Relative to the root.
    file: PathBuf,
    /// From 1; 0 for the file as a whole.
    line: usize,
    text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            0 => write!(formatter, "{file}: {}", self.text),
            line => write!(formatter, "{file}:{line}: {}", self.text),
        }
    }
}

/// The text files below a root.
struct Tree {
    root: PathBuf,
    files: Vec<Source>,
}

struct Source {
    /// Relative to the root.
    path: PathBuf,
    text: String,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut tree = Self { root: root.to_owned(), files: Vec::new() };
        tree.enter(root)?;
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    fn enter(&mut self, folder: &Path) -> Result<()> {
        let failed = || format!("cannot read '{}'", folder.display());
        for entry in std::fs::read_dir(folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            let relative = path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
            let name = path.file_name().unwrap_or_default();
            if SKIPPED.iter().any(|skipped| name == *skipped || relative == Path::new(skipped)) {
                continue;
            }
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                self.enter(&path)?;
            } else if is_text(&relative) {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read '{}' as UTF-8", path.display()))?;
                self.files.push(Source { path: relative, text });
            }
        }
        Ok(())
    }

    fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.has_ending("rs"))
    }
}

impl Source {
    fn complain(&self, line: usize, text: impl Into<String>) -> Complaint {
        Complaint { file: self.path.clone(), line, text: text.into() }
    }

    fn has_ending(&self, ending: &str) -> bool {
        self.path.extension().is_some_and(|found| found == ending)
    }

    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// Whether the file is compiled into tests only, as far as its place tells.
    fn is_test(&self) -> bool {
        let mut parts = self.path.components().map(|part| part.as_os_str());
        self.stem() == "tests" || parts.any(|part| part == "tests" || part == "e2e")
    }

    /// The tokens of a Rust file. Comments are not among them.
    fn tokens(&self) -> Result<TokenStream> {
        let tokens = self.text.parse();
        tokens.map_err(|error| anyhow!("cannot read '{}' as Rust: {error}", self.path.display()))
    }

    /// Lines with their numbers from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The number of the line that holds the byte at `offset`.
    fn line_of(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

fn is_text(relative: &Path) -> bool {
    let plain = PLAIN.iter().any(|name| relative.ends_with(name));
    let ending = relative.extension().and_then(|ending| ending.to_str());
    plain || ending.is_some_and(|ending| TEXTS.contains(&ending))
}

#[cfg(test)]
mod tests;
