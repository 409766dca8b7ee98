//! Where our binaries are: beside the running test program, unless the environment says otherwise.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Names another `drover` than the one of this build.
pub const DROVER_ENV: &str = "DROVER_BIN";
/// Names another `drover-agent` than the one of this build.
pub const AGENT_ENV: &str = "DROVER_AGENT_BIN";

/// The one binary.
///
/// # Errors
/// It is not there; the message has the command that builds it.
pub fn drover() -> Result<PathBuf> {
    locate("drover", DROVER_ENV, "drover")
}

/// The slim agent.
///
/// # Errors
/// It is not there; the message has the command that builds it.
pub fn agent() -> Result<PathBuf> {
    locate("drover-agent", AGENT_ENV, "agent")
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

/// `target/debug` or `target/release`, whichever this program was built into.
fn profile_folder() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = this.parent().unwrap_or(Path::new("."));
    // Test programs are one folder further down than binaries.
    let up = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    Ok(up.unwrap_or(folder).to_owned())
}
