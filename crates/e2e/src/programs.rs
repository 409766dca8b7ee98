//! Paths of Drover's binaries: beside the running test program, unless the environment names
//! others.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Variable with another `drover` than that of this build.
pub const DROVER_ENV: &str = "DROVER_BIN";
/// Variable with another `drover-agent` than that of this build.
pub const AGENT_ENV: &str = "DROVER_AGENT_BIN";

/// Variable with another file of the driver `example`.
pub const EXAMPLE_DRIVER_ENV: &str = "DROVER_EXAMPLE_DRIVER_BIN";

/// The path of `drover`.
///
/// # Errors
/// It is missing; the message has the command that builds it.
pub fn drover() -> Result<PathBuf> {
    locate("drover", DROVER_ENV, "drover")
}

/// The path of `drover-agent`.
///
/// # Errors
/// It is missing; the message has the command that builds it.
pub fn agent() -> Result<PathBuf> {
    locate("drover-agent", AGENT_ENV, "agent")
}

/// The path of the driver `example` as a file of its own.
///
/// # Errors
/// It is missing; the message has the command that builds it.
pub fn example_driver() -> Result<PathBuf> {
    locate("kontainer-engine-driver-example", EXAMPLE_DRIVER_ENV, "drivers")
}

fn locate(name: &str, variable: &str, package: &str) -> Result<PathBuf> {
    let path = match std::env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => profile_folder()?.join(name),
    };
    if !path.is_file() {
        bail!(
            "'{name}' is not at '{}'; build it with `cargo build -p {package} --bin {name}`, with \
             --release for a release build",
            path.display()
        );
    }
    Ok(path)
}

/// `target/debug` or `target/release`, like the running program.
fn profile_folder() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = this.parent().unwrap_or(Path::new("."));
    // Test programs are one folder further down than binaries.
    let up = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    Ok(up.unwrap_or(folder).to_owned())
}
