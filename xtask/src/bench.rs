//! `cargo xtask bench`: the measurements of `crates/e2e` and of the web interface, built with
//! optimisation. Each one that succeeds appends a line to the history, [`HISTORY`].

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{deps, process, ui, workspace};

/// The measurement in a browser. The program `bench` defines the other names.
const INTERFACE: &str = "interface";
/// The measurement of `bench` that needs a process of its own.
const LONG_WAY: &str = "proxied-long";

/// What releases are built with.
const PROFILE: &str = "dist";

/// Date, commit, machine, measurement and its main figures of each run, with tabs between them.
/// Whoever measures commits the new lines.
const HISTORY: &str = "docs/operations/bench-history.tsv";
/// Read by the programs that measure: the path of the history, and the first columns of its lines.
const HISTORY_VARIABLE: &str = "DROVER_BENCH_HISTORY";
const RUN_VARIABLE: &str = "DROVER_BENCH_RUN";

/// Makes the measurements that `arguments` name; without any, all.
///
/// # Errors
/// A program cannot be built, or a measurement cannot be made.
pub fn run(arguments: &[OsString]) -> Result<()> {
    deps::run()?;
    ui::build()?;
    // One build, so that shared crates are compiled once.
    let mut build = workspace::cargo();
    build.args(["build", "--profile", PROFILE, "-p", "drover", "-p", "agent", "-p", "e2e"]);
    build.args(["-p", "drivers", "--bin", "kontainer-engine-driver-example"]);
    build.args(["--bin", "drover", "--bin", "drover-agent", "--bin", "bench"]);
    process::run(&mut build)?;
    let root = workspace::root();
    let recorded = [
        (HISTORY_VARIABLE, root.join(HISTORY).into_os_string()),
        (RUN_VARIABLE, described_run(&root)?.into()),
    ];
    let is_requested = |name| arguments.is_empty() || arguments.iter().any(|one| one == name);
    let others: Vec<&OsString> =
        arguments.iter().filter(|one| *one != INTERFACE && *one != LONG_WAY).collect();
    let bench = || {
        let mut bench = Command::new(root.join(format!("target/{PROFILE}/bench")));
        bench.current_dir(&root).envs(recorded.clone());
        bench
    };
    if arguments.is_empty() || !others.is_empty() {
        process::run(bench().args(others))?;
    }
    if is_requested(LONG_WAY) {
        process::run(bench().arg(LONG_WAY))?;
    }
    if is_requested(INTERFACE) {
        let mut vitest = ui::node("vitest/vitest.mjs");
        vitest.args(["run", "--config", "e2e/bench.config.ts"]);
        vitest.env("DROVER_BIN", root.join(format!("target/{PROFILE}/drover")));
        process::run(vitest.envs(recorded))?;
    }
    eprintln!("the figures are recorded in {HISTORY}: commit it");
    Ok(())
}

/// The date, the commit that is measured, and the machine, with tabs between them.
fn described_run(root: &Path) -> Result<String> {
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let cores = std::thread::available_parallelism()?;
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Ok(format!("{day}\t{}\t{}", commit(root), machine(cores.get(), &processors)))
}

/// Short id of the commit, with a `+` if files differ from it; `-` outside of a repository.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(id) = git(&["rev-parse", "--short", "HEAD"]) else { return "-".to_owned() };
    // Lines that earlier runs have appended do not change what is measured.
    let changed = git(&["status", "--porcelain", "--", ".", &format!(":!{HISTORY}")]);
    let mark = if changed.is_some_and(|files| files.is_empty()) { "" } else { "+" };
    format!("{id}{mark}")
}

/// Number of cores, and their model if the kernel names one.
fn machine(cores: usize, processors: &str) -> String {
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map(|(_, model)| format!(", {}", model.trim())).unwrap_or_default();
    format!("{cores} cores{model}")
}

#[cfg(test)]
mod tests;
