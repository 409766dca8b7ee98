//! Keycloak for the long version of the tests of logins: its distribution from Maven Central,
//! unpacked below target/deps and prepared for a database in memory.
//!
//! It is not part of `cargo xtask deps`: it takes half a minute to start, so that only
//! `cargo xtask soak` runs it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::remove_other_builds;
use crate::process;

const NAME: &str = "keycloak";
const VERSION: &str = "26.4.0";
const SHA256: &str = "1b6a11a2726ac8a8dc9c91d5fafe989a75ce4f1622d7f7b45c21d5bc16629c0a";
/// What to do if it cannot be fetched or prepared.
const MISSING_HINT: &str = "the long version of the tests of logins needs Keycloak, and for it Java 17 or newer, Maven and \
    Python 3; on Debian `apt-get install default-jre-headless maven python3`";

pub fn provide(deps: &Path) -> Result<()> {
    let builds = deps.join(NAME);
    let build = builds.join(VERSION);
    if !build.is_dir() {
        fetch(&build).context(MISSING_HINT)?;
        remove_other_builds(&builds, &build)?;
    }
    Ok(())
}

fn fetch(build: &Path) -> Result<()> {
    let start = Instant::now();
    let unfinished = build.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    eprintln!("fetching Keycloak (once; 160 MB)");
    let folder = tempfile::tempdir()?;
    process::run(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "dependency:copy"])
            .arg(format!("-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"))
            .arg(format!("-DoutputDirectory={}", folder.path().display())),
    )?;
    let archive = folder.path().join(format!("keycloak-quarkus-dist-{VERSION}.zip"));
    let hash = Sha256::digest(fs::read(&archive)?);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(hash == SHA256, "the archive of Keycloak has the hash {hash}, not {SHA256}");
    process::run(
        Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&archive).arg(&unfinished),
    )?;
    let unpacked = unfinished.join(format!("{NAME}-{VERSION}"));
    // Zip files that Python unpacks have no modes.
    process::run(
        Command::new("bash").arg(unpacked.join("bin/kc.sh")).args(["build", "--db=dev-mem"]),
    )?;
    fs::rename(&unpacked, build).context("cannot put the finished folder in place")?;
    fs::remove_dir_all(&unfinished)?;
    eprintln!("  {NAME}: {}", process::duration_text(start.elapsed()));
    Ok(())
}
