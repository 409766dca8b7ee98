//! `cargo xtask check`: all checks that run no tests.

use anyhow::Result;

use crate::{deny, process, tidy, ui, workspace};

pub fn run() -> Result<()> {
    run_without_clippy()?;
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    process::run(&mut clippy)
}

/// The checks that compile nothing.
pub fn run_without_clippy() -> Result<()> {
    tidy::run()?;
    process::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    ui::check()?;
    deny::run()
}
