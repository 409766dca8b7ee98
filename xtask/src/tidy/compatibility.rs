//! The table of what is offered of the Kubernetes API speaks of tests that exist, and counts right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};

const TABLE: &str = "docs/compat/kubernetes-api.md";
/// In the order of the columns that count them.
const STATES: [&str; 4] = ["done", "partly", "not yet", "not offered"];
const PRIORITIES: [&str; 3] = ["P0", "P1", "P2"];
/// Of the sums.
const ALL: &str = "all";
/// Row, what, priority, state, proof.
const ROW_CELLS: usize = 5;

static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"#\[(?:tokio::)?test(?:\([^\]]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async\s+)?fn\s+(\w+)")
});
static NAMED: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([a-z0-9-]+)::(\w+)`"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let Some(table) = tree.files.iter().find(|source| source.path.ends_with(TABLE)) else {
        return Ok(Vec::new());
    };
    let tests = tests(tree);
    let mut complaints = Vec::new();
    let mut first_lines = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut sums = Vec::new();
    for (line, cells) in rows(table) {
        match cells.as_slice() {
            [priority, numbers @ ..] if numbers.len() == ROW_CELLS => {
                sums.push((line, *priority, numbers.to_vec()));
            }
            [id, _, priority, state, proof] => {
                let mut complain = |text: String| {
                    complaints.push(table.complain(line, format!("row '{id}' {text}")));
                };
                if let Some(first) = first_lines.insert(*id, line) {
                    complain(format!("is there twice, first in line {first}"));
                }
                if !PRIORITIES.contains(priority) {
                    complain(format!("has no priority '{priority}'"));
                }
                if let Some(problem) = problem(state, proof, &tests) {
                    complain(problem);
                }
                for key in [(*priority, *state), (*priority, ALL), (ALL, *state), (ALL, ALL)] {
                    *counts.entry(key).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    for (line, priority, numbers) in sums {
        let states = STATES.iter().copied().chain([ALL]);
        for (state, number) in states.zip(numbers) {
            let count = counts.get(&(priority, state)).copied().unwrap_or_default();
            if number.parse() != Ok(count) {
                let text = format!("{priority} {state}: the rows say {count}, not {number}");
                complaints.push(table.complain(line, text));
            }
        }
    }
    Ok(complaints)
}

/// What is wrong with what a row says.
fn problem(state: &str, proof: &str, tests: &BTreeSet<(&str, &str)>) -> Option<String> {
    if !STATES.contains(&state) {
        return Some(format!("has no state '{state}'"));
    }
    if state == "partly" && proof.is_empty() {
        return Some("does not say what is missing".to_owned());
    }
    if state != "done" {
        return None;
    }
    let named: Vec<(&str, &str)> = NAMED
        .captures_iter(proof)
        .map(|found| found.extract())
        .map(|(_, [crate_name, test])| (crate_name, test))
        .collect();
    if named.is_empty() {
        return Some("names no test".to_owned());
    }
    let missing = named.iter().find(|named| !tests.contains(named))?;
    Some(format!("names '{}::{}', which is no test function", missing.0, missing.1))
}

/// Every test function, with the folder of its crate.
fn tests(tree: &Tree) -> BTreeSet<(&str, &str)> {
    let mut tests = BTreeSet::new();
    for source in tree.rust() {
        let mut parts = source.path.iter().filter_map(|part| part.to_str());
        let (Some("crates"), Some(crate_name)) = (parts.next(), parts.next()) else { continue };
        for found in TEST.captures_iter(&source.text) {
            let (_, [test]) = found.extract();
            tests.insert((crate_name, test));
        }
    }
    tests
}

/// The cells of every line of a table, without heads and rulers.
fn rows(source: &Source) -> impl Iterator<Item = (usize, Vec<&str>)> {
    source.lines().filter_map(|(number, line)| {
        let line = line.strip_prefix("| ")?.strip_suffix('|')?;
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let is_head = matches!(cells[0], "Row" | "Priority");
        (!is_head).then_some((number, cells))
    })
}
