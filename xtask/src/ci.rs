//! `cargo xtask ci`: all checks and tests, fastest failures first.

use anyhow::Result;

use crate::{check, test};

pub fn run() -> Result<()> {
    check::run_without_clippy()?;
    // Clippy runs while the tests are built.
    test::run_linted()
}
