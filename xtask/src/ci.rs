//! `cargo xtask ci`: everything that must be green, in the order in which it fails fastest.

use anyhow::Result;

use crate::{check, test};

pub fn run() -> Result<()> {
    check::run()?;
    test::run(&test::Arguments::default())
}
