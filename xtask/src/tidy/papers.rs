//! Commands that papers tell people to type exist.

use std::sync::LazyLock;

use anyhow::Result;
use clap::CommandFactory;
use regex::Regex;

use super::{Complaint, Tree};
use crate::Cli;

static XTASK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"cargo xtask ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
        .expect("the pattern is a constant and its test has compiled it")
});

pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let commands = Cli::command();
    let mut complaints = Vec::new();
    for source in tree.files.iter().filter(|source| source.has_ending("md")) {
        for (number, line) in source.lines() {
            for found in XTASK.captures_iter(line) {
                let Some(command) = commands.find_subcommand(&found[1]) else {
                    let text = format!("there is no `cargo xtask {}`", &found[1]);
                    complaints.push(source.complain(number, text));
                    continue;
                };
                let Some(second) = found.get(2).map(|second| second.as_str()) else { continue };
                if command.has_subcommands() && command.find_subcommand(second).is_none() {
                    let text = format!("there is no `cargo xtask {} {second}`", &found[1]);
                    complaints.push(source.complain(number, text));
                }
            }
        }
    }
    Ok(complaints)
}
