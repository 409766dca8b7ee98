//! The folders of the workspace, and its `cargo metadata`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The root of the repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// The cargo that runs this program, else the one in the path.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The part of `cargo metadata` that the checks read.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub source: Option<String>,
    pub manifest_path: PathBuf,
    pub dependencies: Vec<Dependency>,
    pub metadata: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `dev`, `build`, or none for a normal one.
    pub kind: Option<String>,
    /// Set for crates of the same workspace.
    pub path: Option<PathBuf>,
}

/// What is free on the disk of a folder, as in `12.3 GB free of 252.0`.
pub fn free_space(folder: &Path) -> Result<String> {
    let disk = nix::sys::statvfs::statvfs(folder).context("cannot look at the disk")?;
    let gigabytes = |blocks: u64| blocks as f64 * disk.fragment_size() as f64 / 1e9;
    Ok(format!(
        "{:.1} GB free of {:.1}",
        gigabytes(disk.blocks_available()),
        gigabytes(disk.blocks())
    ))
}

/// Runs `cargo metadata` for the workspace at `root`; `options` are additional flags.
pub fn metadata(root: &Path, options: &[&str]) -> Result<Metadata> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .args(options)
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")
}
