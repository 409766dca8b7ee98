//! How a source file is made: head, length, name, open ends, and tests that wait for states.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};

/// Think at 500; nobody reads more than this as one thing.
const LINES_MAX: usize = 800;
const CODE: [&str; 6] = ["go", "js", "rs", "sh", "ts", "tsx"];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 9] =
    ["common", "helper", "helpers", "misc", "shared", "stuff", "tools", "util", "utils"];
/// The one kind of file that may pause between two looks at a state.
const WAIT_FILE: &str = "wait";

static OPEN_END: LazyLock<Regex> =
    LazyLock::new(|| pattern(concat!(r"\b(TO", r"DO\b(\(#\d+\))?|FIX", r"ME\b|X", r"XX\b)")));
static IGNORED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*#\[(cfg_attr\(.*,\s*)?ignore\b"));
static SLEEP: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(thread|time)::(\{[^}]*\b)?sleep(_until)?\b"));
static INLINE_MODULE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:pub\S*\s+)?mod (\w+)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for source in &tree.files {
        let code = CODE.iter().any(|ending| source.has_ending(ending));
        if code {
            length(source, &mut complaints);
            open_ends(source, &mut complaints);
        }
        if source.has_ending("rs") {
            head(source, &mut complaints);
            names(source, &mut complaints);
            tests(source, &mut complaints);
        }
    }
    Ok(complaints)
}

fn head(source: &Source, complaints: &mut Vec<Complaint>) {
    let first = source.text.lines().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.starts_with("//!")) {
        complaints.push(source.complain(
            1,
            "a module begins with `//!`: what it is, what it is not, where to start reading",
        ));
    }
}

fn length(source: &Source, complaints: &mut Vec<Complaint>) {
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        let text = format!("{lines} lines; a file may have {LINES_MAX}: split it by concern");
        complaints.push(source.complain(0, text));
    }
}

fn open_ends(source: &Source, complaints: &mut Vec<Complaint>) {
    for (number, line) in source.lines() {
        let Some(found) = OPEN_END.captures(line) else { continue };
        // One with an issue number is a promise that somebody keeps.
        if found.get(2).is_none() {
            let text = format!("bare {}: do it, or name the issue in parentheses", &found[1]);
            complaints.push(source.complain(number, text));
        }
    }
}

fn names(source: &Source, complaints: &mut Vec<Complaint>) {
    if source.stem() == "mod" {
        complaints.push(source.complain(0, "use foo.rs beside foo/ instead of foo/mod.rs"));
    }
    if EMPTY_NAMES.contains(&source.stem()) {
        let text = format!("'{}' says nothing: name the module for its subject", source.stem());
        complaints.push(source.complain(0, text));
    }
    for (number, line) in source.lines() {
        let Some(module) = INLINE_MODULE.captures(line) else { continue };
        if line.trim_end().ends_with('{') && EMPTY_NAMES.contains(&&module[1]) {
            let text = format!("'{}' says nothing: name the module for its subject", &module[1]);
            complaints.push(source.complain(number, text));
        }
    }
}

fn tests(source: &Source, complaints: &mut Vec<Complaint>) {
    for (number, line) in source.lines() {
        if IGNORED.is_match(line) {
            let text = "an ignored test says nothing: make it pass or remove it with an issue";
            complaints.push(source.complain(number, text));
        }
        let sleeps = SLEEP.is_match(line) && !line.trim_start().starts_with("//");
        if sleeps && source.is_test() && source.stem() != WAIT_FILE {
            let text = "a test waits for a state, with a deadline, not for time";
            complaints.push(source.complain(number, text));
        }
    }
}
