//! The tables of what is offered of other products' APIs speak of tests that exist, and count
//! right. So do the pages about security speak of tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};

/// A table of rows `| id | what | (priority) | state | proof |` and of sums by group.
struct Table {
    path: &'static str,
    /// In the order of the columns that count them.
    states: [&'static str; 4],
    /// Of rows that have one, which groups them. Other rows are grouped by the letter of their id.
    priorities: &'static [&'static str],
}

const TABLES: [Table; 2] = [
    Table {
        path: "docs/compat/kubernetes-api.md",
        states: ["done", "partly", "not yet", "not offered"],
        priorities: &["P0", "P1", "P2"],
    },
    Table {
        path: "docs/compat/management-api.md",
        states: ["done", "partly", "not yet", "on purpose"],
        priorities: &[],
    },
];
/// Its pages name the tests that hold what they say.
const SECURITY: &str = "docs/security";

/// Of the sums.
const ALL: &str = "all";
/// Group, a number for each state, and for all.
const SUM_CELLS: usize = 6;

static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"#\[(?:tokio::)?test(?:\([^\]]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async\s+)?fn\s+(\w+)")
});
static NAMED: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([a-z0-9-]+)::(\w+)`"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let tests = tests(tree);
    let mut complaints = Vec::new();
    for table in &TABLES {
        let file = tree.files.iter().find(|source| source.path.ends_with(table.path));
        complaints.extend(file.map(|file| table.check(file, &tests)).unwrap_or_default());
    }
    for page in tree.files.iter().filter(|source| source.path.starts_with(SECURITY)) {
        for (line, text) in page.lines() {
            let missing = missing_test(text, &tests);
            complaints.extend(missing.map(|problem| page.complain(line, problem)));
        }
    }
    Ok(complaints)
}

/// The tests that a text names, by the folder of their crate.
fn named(text: &str) -> impl Iterator<Item = (&str, &str)> {
    NAMED.captures_iter(text).map(|found| found.extract()).map(|(_, [folder, test])| (folder, test))
}

/// The first test of those that a text names that does not exist.
fn missing_test(text: &str, tests: &BTreeSet<(&str, &str)>) -> Option<String> {
    let missing = named(text).find(|one| !tests.contains(one))?;
    Some(format!("names '{}::{}', which is no test function", missing.0, missing.1))
}

impl Table {
    fn check(&self, file: &Source, tests: &BTreeSet<(&str, &str)>) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let mut first_lines = BTreeMap::new();
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut sums = Vec::new();
        for (line, cells) in rows(file) {
            let (id, group, state, proof) = match cells.as_slice() {
                [group, numbers @ ..] if cells.len() == SUM_CELLS => {
                    sums.push((line, *group, numbers.to_vec()));
                    continue;
                }
                [id, _, priority, state, proof] if !self.priorities.is_empty() => {
                    (*id, *priority, *state, *proof)
                }
                [id, _, state, proof] if self.priorities.is_empty() => {
                    (*id, id.get(..1).unwrap_or_default(), *state, *proof)
                }
                _ => continue,
            };
            let mut complain = |text: String| {
                complaints.push(file.complain(line, format!("row '{id}' {text}")));
            };
            if let Some(first) = first_lines.insert(id, line) {
                complain(format!("is there twice, first in line {first}"));
            }
            if !self.priorities.is_empty() && !self.priorities.contains(&group) {
                complain(format!("has no priority '{group}'"));
            }
            if let Some(problem) = self.problem(state, proof, tests) {
                complain(problem);
            }
            for key in [(group, state), (group, ALL), (ALL, state), (ALL, ALL)] {
                *counts.entry(key).or_default() += 1;
            }
        }
        for (line, group, numbers) in sums {
            let states = self.states.iter().copied().chain([ALL]);
            for (state, number) in states.zip(numbers) {
                let count = counts.get(&(group, state)).copied().unwrap_or_default();
                if number.parse() != Ok(count) {
                    let text = format!("{group} {state}: the rows say {count}, not {number}");
                    complaints.push(file.complain(line, text));
                }
            }
        }
        complaints
    }

    /// What is wrong with what a row says.
    fn problem(&self, state: &str, proof: &str, tests: &BTreeSet<(&str, &str)>) -> Option<String> {
        if !self.states.contains(&state) {
            return Some(format!("has no state '{state}'"));
        }
        if matches!(state, "partly" | "on purpose") && proof.is_empty() {
            return Some("does not say what is missing".to_owned());
        }
        if state == "done" && named(proof).next().is_none() {
            return Some("names no test".to_owned());
        }
        missing_test(proof, tests)
    }
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
        let is_head = matches!(cells[0], "Row" | "Priority" | "Section");
        (!is_head).then_some((number, cells))
    })
}
