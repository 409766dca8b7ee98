//! `cargo xtask bench`: the measurements of `crates/e2e` and of the web interface, built with
//! optimisation.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::{deps, process, ui, workspace};

/// The measurement in a browser. The program `bench` defines the other names.
const INTERFACE: &str = "interface";

/// What releases are built with.
const PROFILE: &str = "dist";

pub fn run(arguments: &[OsString]) -> Result<()> {
    deps::run()?;
    ui::build()?;
    // One build, so that shared crates are compiled once.
    let mut build = workspace::cargo();
    build.args(["build", "--profile", PROFILE, "-p", "drover", "-p", "agent", "-p", "e2e"]);
    build.args(["--bin", "drover", "--bin", "drover-agent", "--bin", "bench"]);
    process::run(&mut build)?;
    let root = workspace::root();
    let (interface, others): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|argument| *argument == INTERFACE);
    if arguments.is_empty() || !others.is_empty() {
        let mut bench = Command::new(root.join(format!("target/{PROFILE}/bench")));
        process::run(bench.args(others).current_dir(&root))?;
    }
    if arguments.is_empty() || !interface.is_empty() {
        let mut vitest = ui::node("vitest/vitest.mjs");
        vitest.args(["run", "--config", "e2e/bench.config.ts"]);
        vitest.env("DROVER_BIN", root.join(format!("target/{PROFILE}/drover")));
        process::run(&mut vitest)?;
    }
    Ok(())
}
