//! Programs for Node, with their npm packages if they have any, below target/deps. Nothing is
//! installed, and hashes pin all packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::{link, remove_other_builds};
use crate::{fingerprint, process};

/// Folders below `testbed`, each with the program of that name, with the extension `.mjs`.
const NAMES: [&str; 4] =
    ["github-stand-in", "google-stand-in", "microsoft-stand-in", "oidc-provider"];
/// What npm needs to know.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];
/// Where npm puts packages, also when somebody runs it in the sources.
const PACKAGES: &str = "node_modules";
/// Finds everything relative to itself, so that a copy of target/deps works too.
const STARTER: &str =
    "#!/bin/sh\nprogram=$(readlink -f \"$0\")\nexec node \"$program.mjs\" \"$@\"\n";

/// `testbed` is the folder of the sources.
pub fn provide(testbed: &Path, deps: &Path) -> Result<()> {
    NAMES.into_iter().try_for_each(|name| provide_one(name, testbed, deps))
}

fn provide_one(name: &str, testbed: &Path, deps: &Path) -> Result<()> {
    let source = testbed.join(name);
    let builds = deps.join(name);
    let build = builds.join(fingerprint::of(&source, &[PACKAGES], STARTER)?);
    if !build.is_dir() {
        fetch(name, &source, &build)
            .context("tests of identity providers need Node 20 or newer and npm")?;
        remove_other_builds(&builds, &build)?;
    }
    link(deps, name, &build.join(name))
}

fn fetch(name: &str, source: &Path, build: &Path) -> Result<()> {
    let start = Instant::now();
    let unfinished = build.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    let program = format!("{name}.mjs");
    fs::copy(source.join(&program), unfinished.join(&program))?;
    if source.join(MANIFESTS[0]).is_file() {
        eprintln!("fetching the packages of testbed/{name} (once; 4 MB)");
        for file in MANIFESTS {
            fs::copy(source.join(file), unfinished.join(file))?;
        }
        let mut npm = Command::new("npm");
        npm.current_dir(&unfinished).args(["ci", "--ignore-scripts", "--loglevel", "error"]);
        process::run(&mut npm).context("npm's registry may be unreachable")?;
    }
    let starter = unfinished.join(name);
    fs::write(&starter, STARTER)?;
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755))?;
    fs::rename(&unfinished, build).context("cannot put the finished folder in place")?;
    eprintln!("  {name}: {}", process::duration_text(start.elapsed()));
    Ok(())
}
