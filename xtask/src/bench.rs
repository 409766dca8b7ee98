//! `cargo xtask bench`: the measurements of `crates/e2e`, built with optimisation.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::{deps, process, workspace};

pub fn run(arguments: &[OsString]) -> Result<()> {
    deps::run()?;
    // In one go, so that what they share is built once.
    let mut build = workspace::cargo();
    build.args(["build", "--release", "-p", "drover", "-p", "agent", "-p", "e2e"]);
    build.args(["--bin", "drover", "--bin", "drover-agent", "--bin", "bench"]);
    process::succeed(&mut build)?;
    let root = workspace::root();
    let mut bench = Command::new(root.join("target/release/bench"));
    process::succeed(bench.args(arguments).current_dir(root))
}
