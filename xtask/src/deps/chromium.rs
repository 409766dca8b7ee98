//! Chromium for the browser tests: Debian's package and its missing dependencies, unpacked below
//! target/deps. Nothing is installed.
//!
//! An unpacked version stays; after removing `target/deps/chromium`, the newest one is fetched.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::link;
use super::packages::unpack;
use crate::process;

const PACKAGE: &str = "chromium";
/// The program within the package.
const PROGRAM: &str = "usr/lib/chromium/chromium";
/// What to do if the package cannot be downloaded.
const MISSING_HINT: &str = "the browser tests need Chromium; on Debian run this as root with the package lists \
    in reach, elsewhere install Chromium so that `chromium` is in the PATH";

pub fn provide(deps: &Path) -> Result<()> {
    let folder = deps.join(PACKAGE);
    let starter = folder.join("start");
    if !starter.is_file() {
        install_below(&folder, &starter).context(MISSING_HINT)?;
    }
    link(deps, PACKAGE, &starter)
}

/// Unpacks Chromium. The starter is written last, so that it exists only after success.
fn install_below(folder: &Path, starter: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let text = if let Some(installed) = in_path(PACKAGE) {
        format!("#!/bin/sh\nexec '{}' \"$@\"\n", installed.display())
    } else {
        eprintln!("fetching Chromium from the distribution's packages (once; 130 MB)");
        let root = folder.join("root");
        unpack(&root, download)?;
        ensure!(root.join(PROGRAM).is_file(), "the package has no {PROGRAM}");
        unpacked_starter(&libraries(&root)?)
    };
    // Written to a temporary file first, so that a starter is always complete.
    let fresh = folder.join(".start");
    fs::write(&fresh, text)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755))?;
    let version = Command::new(&fresh).arg("--version").output().context("cannot run Chromium")?;
    ensure!(
        version.status.success(),
        "Chromium does not start: {}",
        String::from_utf8_lossy(&version.stderr).trim()
    );
    eprintln!("  {}", String::from_utf8_lossy(&version.stdout).trim());
    fs::rename(&fresh, starter)?;
    Ok(())
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn download(archives: &Path) -> Result<()> {
    fs::create_dir_all(archives.join("partial"))?;
    let cache = format!("Dir::Cache::archives={}", archives.display());
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-y", "--download-only", "--no-install-recommends", "-o", &cache]);
    apt.args(["install", PACKAGE]).stdin(Stdio::null()).stdout(Stdio::null());
    process::run(&mut apt)
}

/// Folders with shared libraries, relative to the folder of the starter.
fn libraries(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if name.contains(".so") {
                let parent = root.parent().unwrap_or(root);
                found.insert(folder.strip_prefix(parent)?.to_owned());
            }
        }
    }
    Ok(found)
}

/// Finds its libraries relative to itself, so that a copy of target/deps works too.
fn unpacked_starter(libraries: &BTreeSet<PathBuf>) -> String {
    let paths: Vec<String> =
        libraries.iter().map(|path| format!("$here/{}", path.display())).collect();
    format!(
        "#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n\
         export LD_LIBRARY_PATH=\"{}\"\nexec \"$here/root/{PROGRAM}\" \"$@\"\n",
        paths.join(":")
    )
}
