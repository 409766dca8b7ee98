//! `cargo xtask up`: builds the interface and the binary, then replaces itself by `drover up`, so
//! that signals and the exit code are those of that program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, ui, workspace};

pub fn run(release: bool, arguments: &[OsString]) -> Result<()> {
    let root = workspace::root();
    // First: release builds embed it.
    ui::build()?;
    let mut build = workspace::cargo();
    build.args(["build", "--bin", "drover"]);
    let profile = if release {
        build.arg("--release");
        "release"
    } else {
        "debug"
    };
    eprintln!("building drover (the first time takes minutes)");
    process::run(&mut build)?;
    let binary = root.join("target").join(profile).join("drover");
    let failed = Command::new(&binary).arg("up").args(arguments).current_dir(&root).exec();
    Err(failed).with_context(|| format!("cannot run '{}'", binary.display()))
}

#[cfg(test)]
mod tests;
