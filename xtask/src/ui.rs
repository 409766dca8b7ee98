//! Runs the tools of the web interface: Node, npm and programs that npm installs.
//!
//! Packages are installed and the interface is built only if their inputs have changed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{fingerprint, process, workspace};

/// The version that Vite needs.
const NODE_MIN: (u32, u32) = (20, 19);
/// Folders that npm and builds create; everything else in `ui` is a source.
const GENERATED: [&str; 2] = ["node_modules", "dist"];

fn folder() -> PathBuf {
    workspace::root().join("ui")
}

/// A program of an npm package, run with Node in `ui`. `script`: below `node_modules`.
pub fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.current_dir(folder()).arg(PathBuf::from("node_modules").join(script));
    command
}

/// Installs the packages of package-lock.json, unless they are installed already.
pub fn install() -> Result<()> {
    check_node()?;
    let target = workspace::root().join("target/ui");
    fs::create_dir_all(&target)?;
    // Concurrent installations would delete each other's folder.
    let lock = File::create(target.join("lock")).context("cannot create the lock of ui")?;
    lock.lock().context("cannot lock ui")?;
    let lock_text = fs::read_to_string(folder().join("package-lock.json"))?;
    let stamp = folder().join("node_modules/.installed-from");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock_text) {
        return Ok(());
    }
    eprintln!("installing the web interface's libraries (once)");
    let mut npm = Command::new("npm");
    npm.current_dir(folder()).args(["ci", "--loglevel", "error"]);
    process::run(&mut npm).context("npm's registry may be unreachable")?;
    fs::write(stamp, lock_text)?;
    Ok(())
}

/// Builds `ui/dist`, unless it is up to date with the sources.
pub fn build() -> Result<()> {
    install()?;
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    let sources = fingerprint::of(&folder(), &GENERATED, &manifest)?;
    let stamp = workspace::root().join("target/ui/built-from");
    let built = folder().join("dist/index.html").is_file();
    if built && fs::read_to_string(&stamp).is_ok_and(|last| last == sources) {
        return Ok(());
    }
    eprintln!("building the web interface");
    let start = Instant::now();
    process::run(node("vite/bin/vite.js").args(["build", "--logLevel", "warn"]))?;
    eprintln!("  ui/dist: {}", process::duration_text(start.elapsed()));
    fs::write(stamp, sources)?;
    Ok(())
}

/// Checks types, lints and format.
pub fn check() -> Result<()> {
    install()?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder()).args(["run", "--silent", "check"]);
    process::run(&mut npm)
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
        _ => bail!("{needed}; the installed one reports '{version}'"),
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
    fn versions_of_node_are_compared_by_number() {
        assert!(numbers("v20.19.0").unwrap() >= NODE_MIN);
        assert!(numbers("v24.1.0").unwrap() >= NODE_MIN);
        assert!(numbers("v20.9.0").unwrap() < NODE_MIN);
        assert_eq!(numbers("nonsense"), None);
    }
}
