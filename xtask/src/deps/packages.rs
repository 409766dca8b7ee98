//! Packages of Debian, unpacked rather than installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Unpacks into `root` all archives that `download` writes into the given folder. Returns their
/// number.
///
/// If `download` fails, it runs once more after `apt-get update`: a fresh machine may have no
/// lists, or old ones whose files are no longer on the mirror.
pub fn unpack(root: &Path, download: impl Fn(&Path) -> Result<()>) -> Result<usize> {
    let archives = tempfile::tempdir()?;
    if download(archives.path()).is_err() {
        process::run(Command::new("apt-get").args(["update", "-qq"]))
            .context("`apt-get update` needs root")?;
        download(archives.path())?;
    }
    let mut unpacked = 0;
    for entry in fs::read_dir(archives.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            process::run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(root))?;
            unpacked += 1;
        }
    }
    Ok(unpacked)
}
