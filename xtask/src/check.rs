//! `cargo xtask check`: what can be said without running anything.

use anyhow::Result;

use crate::{deny, process, tidy, ui, workspace};

pub fn run() -> Result<()> {
    run_without_clippy()?;
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    process::succeed(&mut clippy)
}

/// All that compiles nothing.
pub fn run_without_clippy() -> Result<()> {
    tidy::run()?;
    process::succeed(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    ui::check()?;
    deny::run()
}
