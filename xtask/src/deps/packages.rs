//! Packages of Debian, unpacked rather than installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Unpacks into `root` all archives that `download` puts into the folder it is given, and counts them.
///
/// When `download` fails it is asked once more after `apt-get update`: lists may be missing on a fresh machine, or so
/// old that their files are gone.
pub fn unpack(root: &Path, download: impl Fn(&Path) -> Result<()>) -> Result<usize> {
    let archives = tempfile::tempdir()?;
    if download(archives.path()).is_err() {
        process::succeed(Command::new("apt-get").args(["update", "-qq"]))
            .context("`apt-get update` needs root")?;
        download(archives.path())?;
    }
    let mut unpacked = 0;
    for entry in fs::read_dir(archives.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            process::succeed(Command::new("dpkg-deb").arg("-x").arg(&path).arg(root))?;
            unpacked += 1;
        }
    }
    Ok(unpacked)
}
