//! ARCHITECTURE.md is true: its picture of the house shows each crate on the floor of its manifest,
//! its table describes each crate, its walks lead through files and functions that exist, and so do
//! the other files that it names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};
use crate::workspace::{self, Metadata};

const FILE: &str = "ARCHITECTURE.md";
/// Nobody remembers more.
const STEPS_MAX: usize = 5;
/// Begins each section that is a walk.
const WALK: &str = "### One ";

static STEP: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+\. `([^`]+)`, `(\w+)`"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+)\. "));
/// A source file, by its whole path or the end of it.
static NAMED_FILE: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([\w./-]+\.(?:rs|tsx?))`"));
/// The first cell of a row of the table of crates.
static ROW: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\| (`[^|]+) \|"));
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([^`]+)`"));
/// What is no crate in the picture: remarks in parentheses.
static REMARK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\([^)]*\)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

/// Complains about each name in the file that is not so. A tree without the file has no complaint.
///
/// # Errors
/// `cargo metadata` fails.
pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let Some(source) = tree.files.iter().find(|file| file.path == Path::new(FILE)) else {
        return Ok(Vec::new());
    };
    let metadata = workspace::metadata(&tree.root, &["--no-deps", "--offline"])?;
    let mut complaints = Vec::new();
    walks(tree, source, &mut complaints);
    named_files(tree, source, &mut complaints);
    picture(&metadata, source, &mut complaints);
    table(&metadata, tree, source, &mut complaints);
    Ok(complaints)
}

fn walks(tree: &Tree, source: &Source, complaints: &mut Vec<Complaint>) {
    // Line of the heading, and the number of steps so far.
    let mut walk: Option<(usize, usize)> = None;
    let end = |walk: Option<(usize, usize)>, complaints: &mut Vec<Complaint>| {
        if let Some((heading, 0)) = walk {
            complaints.push(source.complain(heading, "a walk has numbered steps"));
        }
    };
    for (number, line) in source.lines() {
        if line.starts_with('#') {
            end(walk, complaints);
            walk = line.starts_with(WALK).then_some((number, 0));
        }
        let (Some((_, steps)), Some(step)) = (walk.as_mut(), NUMBER.captures(line)) else {
            continue;
        };
        *steps += 1;
        if step[1].parse() != Ok(*steps) {
            let text = format!("step {steps} of a walk has the number {}", &step[1]);
            complaints.push(source.complain(number, text));
        }
        if *steps > STEPS_MAX {
            let text = format!("a walk has at most {STEPS_MAX} steps");
            complaints.push(source.complain(number, text));
        }
        if let Some(problem) = step_problem(tree, line) {
            complaints.push(source.complain(number, problem));
        }
    }
    end(walk, complaints);
}

/// What is wrong with the file and the function of a step.
fn step_problem(tree: &Tree, line: &str) -> Option<String> {
    let Some(step) = STEP.captures(line) else {
        return Some(
            "a step of a walk begins with a file and a function: `path.rs`, `name`".into(),
        );
    };
    let (_, [path, name]) = step.extract();
    let Some(file) = tree.files.iter().find(|file| file.path == Path::new(path)) else {
        return Some(format!("no file '{path}'"));
    };
    let function = pattern(&format!(r"\b(?:fn|function) {name}\b"));
    (!function.is_match(&file.text)).then(|| format!("'{path}' has no function '{name}'"))
}

/// Steps are left out: they name whole paths, which their own check reads.
fn named_files(tree: &Tree, source: &Source, complaints: &mut Vec<Complaint>) {
    for (number, line) in source.lines().filter(|(_, line)| !NUMBER.is_match(line)) {
        for named in NAMED_FILE.captures_iter(line) {
            if !tree.files.iter().any(|file| file.path.ends_with(&named[1])) {
                complaints.push(source.complain(number, format!("no file '{}'", &named[1])));
            }
        }
    }
}

fn picture(metadata: &Metadata, source: &Source, complaints: &mut Vec<Complaint>) {
    let mut shown: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    let mut floor = String::new();
    let block = source.lines().skip_while(|(_, line)| *line != "```").skip(1);
    for (number, line) in block.take_while(|(_, line)| *line != "```") {
        let is_named = line.starts_with(|first: char| first.is_uppercase());
        let line = REMARK.find(line).map_or(line, |remark| &line[..remark.start()]);
        let mut words = line.split_whitespace();
        if is_named {
            floor = words.next().unwrap_or_default().to_lowercase();
        }
        shown.extend(words.map(|name| (name, (floor.clone(), number))));
    }
    for package in &metadata.packages {
        let declared = package.metadata.as_ref().and_then(|all| all["drover"]["floor"].as_str());
        let declared = declared.unwrap_or_default();
        match shown.remove(package.name.as_str()) {
            Some((floor, _)) if floor == declared => {}
            Some((floor, line)) => {
                let text =
                    format!("'{}' is shown on {floor}, and declares {declared}", package.name);
                complaints.push(source.complain(line, text));
            }
            None => {
                let text = format!("the picture does not show '{}' ({declared})", package.name);
                complaints.push(source.complain(0, text));
            }
        }
    }
    for (name, (_, line)) in shown {
        complaints.push(source.complain(line, format!("no crate '{name}'")));
    }
}

/// The table of the crates: a row names some, or with a `*` all whose name begins so.
fn table(metadata: &Metadata, tree: &Tree, source: &Source, complaints: &mut Vec<Complaint>) {
    let is_of = |row: &str, name: &str| match row.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == row,
    };
    let names: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut rows: Vec<String> = Vec::new();
    for (number, line) in source.lines() {
        let Some(cell) = ROW.captures(line) else { continue };
        for row in NAME.captures_iter(&cell[1]).map(|name| name[1].to_owned()) {
            // The web interface is a folder, and no crate.
            let is_known =
                names.iter().any(|name| is_of(&row, name)) || tree.root.join(&row).is_dir();
            if !is_known {
                complaints.push(source.complain(number, format!("no crate '{row}'")));
            }
            rows.push(row);
        }
    }
    for name in names {
        if !rows.iter().any(|row| is_of(row, name)) {
            complaints.push(source.complain(0, format!("the table does not describe '{name}'")));
        }
    }
}
