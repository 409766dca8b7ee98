//! The published Python clients of Kubernetes and of the management API, with the programs of this
//! repository that use them, unpacked below target/deps. Nothing is installed, and hashes pin all
//! packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::{link, remove_other_builds};
use crate::{fingerprint, process};

const NAME: &str = "python-client";
/// Each is a file of that name with the extension `.py`.
const PROGRAMS: [&str; 2] = [NAME, "rancher-client"];
/// What to do if it cannot be fetched.
const MISSING_HINT: &str = "tests with the Python client need Python 3.11 or newer and its pip; on Debian \
    `apt-get install python3-pip`. Another version may need its hash of PyYAML in \
    testbed/python-client/requirements.txt";
/// Finds everything relative to itself, so that a copy of target/deps works too.
const STARTER: &str = "#!/bin/sh\nprogram=$(readlink -f \"$0\")\n\
    PYTHONPATH=\"$(dirname \"$program\")/packages\" exec python3 \"$program.py\" \"$@\"\n";

/// `testbed` is the folder of the sources.
pub fn provide(testbed: &Path, deps: &Path) -> Result<()> {
    let source = testbed.join(NAME);
    let builds = deps.join(NAME);
    let build = builds.join(fingerprint::of(&source, &[], STARTER)?);
    if !build.is_dir() {
        fetch(&source, &build).context(MISSING_HINT)?;
        remove_other_builds(&builds, &build)?;
    }
    PROGRAMS.iter().try_for_each(|program| link(deps, program, &build.join(program)))
}

fn fetch(source: &Path, build: &Path) -> Result<()> {
    let start = Instant::now();
    let unfinished = build.with_extension("unfinished");
    // pip does not replace packages of a failed attempt.
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    eprintln!("fetching the Python clients (once; 50 MB)");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--root-user-action=ignore", "--require-hashes", "--no-deps"])
        .args(["--only-binary", ":all:", "--no-compile", "--target"])
        .arg(unfinished.join("packages"))
        .arg("--requirement")
        .arg(source.join("requirements.txt"));
    process::run(&mut pip)?;
    for program in PROGRAMS {
        let file = format!("{program}.py");
        fs::copy(source.join(&file), unfinished.join(&file))?;
        let starter = unfinished.join(program);
        fs::write(&starter, STARTER)?;
        fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(&unfinished, build).context("cannot put the finished folder in place")?;
    eprintln!("  {NAME}: {}", process::duration_text(start.elapsed()));
    Ok(())
}
