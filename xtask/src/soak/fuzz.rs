//! The fuzz targets under libFuzzer, one after the other.
//!
//! They are built in `target/debug` with everything else: a wrapper around the compiler has our own
//! crates count what an input reaches, so the stable toolchain will do and dependencies are not
//! built again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{process, workspace};

pub const SUITE: &str = "fuzz";
/// Each target goes on for so long when nothing else is said.
const TARGET_SECONDS: u64 = 3600;
/// Names the target to the program.
const TARGET_ENV: &str = "DROVER_FUZZ_TARGET";
/// Bytes of an input; most of what there is to find needs few.
const INPUT_BYTES_MAX: usize = 4096;
/// Seconds that one input may take.
const INPUT_SECONDS_MAX: usize = 25;
/// Resident memory at which a run is a finding.
const MEMORY_MIB_MAX: usize = 2048;

/// Adds counters of edges and of comparisons to our crates, and keeps the checks of a debug build.
const WRAPPER: &str = "#!/bin/sh\nexec \"$@\" -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on\n";

/// Runs every target, or `only` one, for their shares of `time`; for one hour each without it. With
/// the `seed` that a run has told, it makes the same inputs again.
pub fn run(only: Option<&str>, time: Option<Duration>, seed: Option<u32>) -> Result<()> {
    let root = workspace::root();
    let corpora = root.join("crates/fuzz/corpus");
    let targets: Vec<String> =
        targets(&corpora)?.into_iter().filter(|name| only.is_none_or(|o| name == o)).collect();
    ensure!(
        !targets.is_empty(),
        "no fuzz target is called so; 'crates/fuzz/corpus' has a folder of each"
    );
    let share = time.map_or(Duration::from_secs(TARGET_SECONDS), |time| {
        time / u32::try_from(targets.len()).unwrap_or(u32::MAX)
    });
    let program = build(&root)?;
    let mut broken = Vec::new();
    for target in &targets {
        let start = Instant::now();
        if !fuzz(&program, &corpora.join(target), &root, target, share, seed)? {
            broken.push(target.as_str());
        }
        println!("fuzz {target} took {}", process::length(start.elapsed()));
    }
    if !broken.is_empty() {
        bail!("inputs that break {} are below target/fuzz", broken.join(", "));
    }
    Ok(())
}

/// The folders of corpora; a test of the crate holds them against its list.
fn targets(corpora: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(corpora).context("cannot list the corpora")?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn build(root: &Path) -> Result<std::path::PathBuf> {
    let folder = root.join("target/fuzz");
    fs::create_dir_all(&folder)?;
    let wrapper = folder.join("instrumented-rustc");
    fs::write(&wrapper, WRAPPER)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let mut cargo = workspace::cargo();
    cargo
        .args(["build", "-p", "fuzz", "--features", "libfuzzer", "--bin", "fuzz"])
        .env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
    process::succeed(&mut cargo).context("libFuzzer needs a compiler for C++")?;
    // Other builds of the same name would replace it halfway.
    let program = folder.join("fuzz");
    fs::copy(root.join("target/debug/fuzz"), &program)?;
    Ok(program)
}

/// Whether nothing was found.
fn fuzz(
    program: &Path,
    corpus: &Path,
    root: &Path,
    target: &str,
    time: Duration,
    seed: Option<u32>,
) -> Result<bool> {
    let folder = root.join("target/fuzz").join(target);
    let (found, grown) = (folder.join("found/"), folder.join("corpus"));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&grown)?;
    let mut run = Command::new(program);
    // What is new goes into the first folder.
    run.env(TARGET_ENV, target).args([grown.as_path(), corpus]).args([
        format!("-max_total_time={}", time.as_secs().max(1)),
        format!("-max_len={INPUT_BYTES_MAX}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        format!("-artifact_prefix={}", found.display()),
        "-print_final_stats=1".to_owned(),
        "-verbosity=1".to_owned(),
    ]);
    if let Some(seed) = seed {
        run.arg(format!("-seed={seed}"));
    }
    println!("{TARGET_ENV}={target} {}", process::shown(&run));
    let output = run.output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let told = ["INFO: Seed", "DONE", "Done ", "stat::", "ERROR", "panicked"];
    let lines: Vec<&str> =
        text.lines().filter(|line| told.iter().any(|mark| line.contains(mark))).collect();
    println!("{}", lines.join("\n"));
    if !output.status.success() {
        let tail: Vec<&str> = text.lines().rev().take(60).collect();
        println!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    Ok(output.status.success())
}
