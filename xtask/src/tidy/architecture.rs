//! ARCHITECTURE.md is true: its picture of the house shows each crate on the floor of its manifest,
//! and its walks lead through files and functions that exist.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::{Complaint, Source, Tree};
use crate::workspace;

const FILE: &str = "ARCHITECTURE.md";
/// Nobody remembers more.
const STEPS_MAX: usize = 5;
/// Begins each section that is a walk.
const WALK: &str = "### One ";

static STEP: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+)\. `([^`]+\.rs)`, `(\w+)`"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+\. "));
/// What is no crate in the picture: remarks in parentheses.
static REMARK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\([^)]*\)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and its test has compiled it")
}

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let Some(source) = tree.files.iter().find(|file| file.path == Path::new(FILE)) else {
        return Ok(Vec::new());
    };
    let mut complaints = Vec::new();
    walks(tree, source, &mut complaints);
    picture(tree, source, &mut complaints)?;
    Ok(complaints)
}

fn walks(tree: &Tree, source: &Source, complaints: &mut Vec<Complaint>) {
    let mut is_walk = false;
    for (number, line) in source.lines() {
        if line.starts_with('#') {
            is_walk = line.starts_with(WALK);
        }
        if !is_walk || !NUMBER.is_match(line) {
            continue;
        }
        let Some(step) = STEP.captures(line) else {
            let text = "a step of a walk begins with a file and a function: `path.rs`, `name`";
            complaints.push(source.complain(number, text));
            continue;
        };
        if step[1].parse::<usize>().is_ok_and(|step| step > STEPS_MAX) {
            let text = format!("a walk has at most {STEPS_MAX} steps");
            complaints.push(source.complain(number, text));
        }
        let function = pattern(&format!(r"\bfn {}\b", &step[3]));
        match tree.files.iter().find(|file| file.path == Path::new(&step[2])) {
            None => complaints.push(source.complain(number, format!("no file '{}'", &step[2]))),
            Some(file) if !function.is_match(&file.text) => {
                let text = format!("'{}' has no function '{}'", &step[2], &step[3]);
                complaints.push(source.complain(number, text));
            }
            Some(_) => {}
        }
    }
}

fn picture(tree: &Tree, source: &Source, complaints: &mut Vec<Complaint>) -> Result<()> {
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
    let metadata = workspace::metadata(&tree.root, &["--no-deps", "--offline"])?;
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
    Ok(())
}
