//! `cargo xtask ci`: everything that must be green, in the order in which it fails fastest.

use anyhow::Result;

use crate::{check, test};

pub fn run() -> Result<()> {
    check::run_without_clippy()?;
    // Clippy runs while the tests are built.
    test::run_linted()
}
