//! `cargo xtask bench`: the measurements of `crates/e2e` and of the web interface, built with optimisation.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::{deps, process, ui, workspace};

/// What is measured in a browser; the program `bench` knows the other names.
const INTERFACE: &str = "interface";

pub fn run(arguments: &[OsString]) -> Result<()> {
    deps::run()?;
    ui::build()?;
    // In one go, so that what they share is built once.
    let mut build = workspace::cargo();
    build.args(["build", "--release", "-p", "drover", "-p", "agent", "-p", "e2e"]);
    build.args(["--bin", "drover", "--bin", "drover-agent", "--bin", "bench"]);
    process::succeed(&mut build)?;
    let root = workspace::root();
    let (interface, others): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| *argument == INTERFACE);
    if arguments.is_empty() || !others.is_empty() {
        let mut bench = Command::new(root.join("target/release/bench"));
        process::succeed(bench.args(others).current_dir(&root))?;
    }
    if arguments.is_empty() || !interface.is_empty() {
        let mut vitest = ui::node("vitest/vitest.mjs");
        vitest.args(["run", "--config", "e2e/bench.config.ts"]);
        vitest.env("DROVER_BIN", root.join("target/release/drover"));
        process::succeed(&mut vitest)?;
    }
    Ok(())
}
