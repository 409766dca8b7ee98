//! The web interface's own tools: Node, npm and what npm installs, run from here.
//!
//! Installed and built once for everything that goes in; a second run costs nothing.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{fingerprint, process, workspace};

/// What Vite needs.
const NODE_MIN: (u32, u32) = (20, 19);
/// Made by npm and by builds; the rest of `ui` is ours.
const MADE: [&str; 2] = ["node_modules", "dist"];

fn folder() -> PathBuf {
    workspace::root().join("ui")
}

/// A program of an npm package, run with Node in `ui`. `script`: below `node_modules`.
pub fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.current_dir(folder()).arg(PathBuf::from("node_modules").join(script));
    command
}

/// Installs what package-lock.json names, unless that is there already.
pub fn install() -> Result<()> {
    check_node()?;
    let target = workspace::root().join("target/ui");
    fs::create_dir_all(&target)?;
    // Two at once would take each other's folder away.
    let lock = File::create(target.join("lock")).context("cannot create the lock of ui")?;
    lock.lock().context("cannot lock ui")?;
    let wanted = fs::read_to_string(folder().join("package-lock.json"))?;
    let stamp = folder().join("node_modules/.installed-from");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("installing the web interface's libraries (once)");
    let mut npm = Command::new("npm");
    npm.current_dir(folder()).args(["ci", "--loglevel", "error"]);
    process::succeed(&mut npm).context("npm's registry may be out of reach")?;
    fs::write(stamp, wanted)?;
    Ok(())
}

/// Builds `ui/dist`, unless it is the build of these sources already.
pub fn build() -> Result<()> {
    install()?;
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    let sources = fingerprint::of(&folder(), &MADE, &manifest)?;
    let stamp = workspace::root().join("target/ui/built-from");
    let built = folder().join("dist/index.html").is_file();
    if built && fs::read_to_string(&stamp).is_ok_and(|last| last == sources) {
        return Ok(());
    }
    eprintln!("building the web interface");
    let start = Instant::now();
    process::succeed(node("vite/bin/vite.js").args(["build", "--logLevel", "warn"]))?;
    eprintln!("  ui/dist: {}", process::length(start.elapsed()));
    fs::write(stamp, sources)?;
    Ok(())
}

/// Types, lints and format.
pub fn check() -> Result<()> {
    install()?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder()).args(["run", "--silent", "check"]);
    process::succeed(&mut npm)
}

fn check_node() -> Result<()> {
    let (major, minor) = NODE_MIN;
    let needed = format!(
        "Node {major}.{minor} or newer with npm must be in the PATH: the web interface is built with it"
    );
    let output = Command::new("node").arg("--version").output().with_context(|| needed.clone())?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match numbers(&version) {
        Some(found) if found >= NODE_MIN => Ok(()),
        _ => bail!("{needed}; the one that is there says '{version}'"),
    }
}

/// The 20 and 19 of `v20.19.4`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_told_apart() {
        assert!(numbers("v20.19.0").unwrap() >= NODE_MIN);
        assert!(numbers("v24.1.0").unwrap() >= NODE_MIN);
        assert!(numbers("v20.9.0").unwrap() < NODE_MIN);
        assert_eq!(numbers("nonsense"), None);
    }
}
