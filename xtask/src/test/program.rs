//! A unit that runs tests: a test program built by cargo, or the tests of one Vitest configuration.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::child;
use super::evidence::Evidence;
use super::outcome::{self, KilledProgram, TestOutcome};
use crate::{ui, workspace};

/// A test program.
pub enum TestProgram {
    Cargo(CargoProgram),
    /// Vitest with a configuration in `ui`.
    Vitest {
        suite: &'static str,
        configuration: &'static str,
    },
}

/// A test program that cargo built.
pub struct CargoProgram {
    pub package: String,
    version: String,
    folder: PathBuf,
    /// The file under `tests`; none for the tests inside a library or binary.
    target: Option<String>,
    executable: PathBuf,
}

/// Which tests of a program to run.
pub enum Selection {
    All,
    /// By their names within the program; those of the interface begin with their file.
    Only(Vec<String>),
}

impl TestProgram {
    /// Prefix of the names of its tests, as in `e2e::subscribe`.
    pub fn name(&self) -> String {
        match self {
            Self::Cargo(program) => program.name(),
            Self::Vitest { suite, .. } => (*suite).to_owned(),
        }
    }

    /// Runs the selected tests; the program is killed at `deadline`.
    pub fn run(
        &self,
        selection: &Selection,
        deadline: Instant,
        evidence: &Evidence,
    ) -> Result<TestOutcome> {
        match self {
            Self::Cargo(program) => program.run(selection, deadline, evidence),
            Self::Vitest { suite, configuration } => {
                run_vitest(suite, configuration, selection, deadline, evidence)
            }
        }
    }

    /// The names of its tests within the program.
    pub fn tests(&self) -> Result<Vec<String>> {
        match self {
            Self::Cargo(program) => program.tests(),
            Self::Vitest { configuration, .. } => vitest_tests(configuration),
        }
    }

    /// The full name of one of its tests.
    pub fn full_name(&self, test: &str) -> String {
        match self {
            Self::Cargo(program) => format!("{}::{test}", program.name()),
            // The name begins with its file.
            Self::Vitest { .. } => format!("ui::{test}"),
        }
    }
}

/// `-D warnings` as Clippy reads it from its environment.
const DENY_WARNINGS: &str = "-Dwarnings__CLIPPY_HACKERY__";

#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    package_id: Option<String>,
    executable: Option<PathBuf>,
    profile: Option<CargoProfile>,
    target: Option<CargoTarget>,
}

#[derive(Deserialize)]
struct CargoProfile {
    test: bool,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
    kind: Vec<String>,
}

/// Whether Clippy checks the workspace's crates during the build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lints {
    /// Compiler warnings only.
    No,
    /// Every warning of Clippy is an error. Clippy runs in place of the compiler, so that nothing
    /// is analysed twice: this saves a fifth of the build time on a fresh machine.
    Clippy,
}

/// Builds all tests but those of `excluded` packages, and the binaries that system tests start, and
/// returns the test programs sorted by name.
pub fn build(root: &Path, excluded: &[&str], lints: Lints) -> Result<Vec<CargoProgram>> {
    let metadata = workspace::metadata(root, &["--no-deps"])?;
    let packages: BTreeMap<&str, _> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let mut cargo = workspace::cargo();
    cargo.current_dir(root).args(["build", "--workspace", "--lib", "--bins", "--tests"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.args(excluded.iter().flat_map(|name| ["--exclude", name]));
    if lints == Lints::Clippy {
        // Like `cargo clippy`, but with the command `build`.
        cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", DENY_WARNINGS);
    }
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        let message: CargoMessage =
            serde_json::from_str(&line?).context("cannot read the output of cargo")?;
        if message.reason != "compiler-artifact" || !message.profile.is_some_and(|one| one.test) {
            continue;
        }
        let (Some(executable), Some(target)) = (message.executable, message.target) else {
            continue;
        };
        let id = message.package_id.unwrap_or_default();
        let Some(package) = packages.get(id.as_str()) else { continue };
        let inside = !target.kind.iter().any(|kind| kind == "test");
        // A package may have several programs with unit tests; they need distinct names.
        let main = target.kind.iter().any(|kind| kind == "lib") || target.name == package.name;
        programs.push(CargoProgram {
            package: package.name.clone(),
            version: package.version.clone(),
            folder: package.manifest_path.parent().unwrap_or(&package.manifest_path).to_owned(),
            target: (!(inside && main)).then_some(target.name),
            executable,
        });
    }
    if !child.wait()?.success() {
        // A linker without room ends with a bus error and no word of the disk.
        bail!("the tests do not build; the disk has {}", workspace::free_space(root)?);
    }
    programs.sort_by_key(CargoProgram::name);
    Ok(programs)
}

impl CargoProgram {
    pub fn name(&self) -> String {
        match &self.target {
            Some(target) => format!("{}::{target}", self.package),
            None => self.package.clone(),
        }
    }

    fn command(&self) -> Command {
        // Ends with this process, even if that is killed: a program may run servers and clusters.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.executable)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env("CARGO_PKG_VERSION", &self.version)
            // A changed snapshot is a failure, not a new file.
            .env("INSTA_UPDATE", "no")
            // A test program of the stable toolchain reports times only with this variable.
            .env("RUSTC_BOOTSTRAP", "1");
        command
    }

    fn run(
        &self,
        selection: &Selection,
        deadline: Instant,
        evidence: &Evidence,
    ) -> Result<TestOutcome> {
        let name = self.name();
        let mut command = self.command();
        command.env(testbed::evidence::EVIDENCE_ENV, evidence.prefix(&name));
        command.args(["-Z", "unstable-options", "--report-time"]);
        if let Selection::Only(tests) = selection {
            command.args(["--exact", "--show-output"]).args(tests);
        }
        let mut reader = outcome::OutputReader::new(&name);
        let mut read = |line: &str| reader.line(line);
        let ended = child::run(&mut command, &evidence.log(&name), deadline, &mut read)?;
        let killed = match ended.killed_after {
            Some(after) => {
                Some(KilledProgram { after, unfinished: self.unfinished(&reader, selection)? })
            }
            None => None,
        };
        let mut outcome = reader.finish(ended.status, killed);
        outcome.processor = ended.processor;
        Ok(outcome)
    }

    /// The selected tests that have not ended according to `reader`.
    fn unfinished(
        &self,
        reader: &outcome::OutputReader,
        selection: &Selection,
    ) -> Result<Vec<String>> {
        let ended: Vec<&str> = reader.ended_tests().collect();
        let mut tests = match selection {
            Selection::All => self.tests()?,
            Selection::Only(tests) => tests.clone(),
        };
        tests.retain(|test| !ended.contains(&test.as_str()));
        Ok(tests)
    }

    fn tests(&self) -> Result<Vec<String>> {
        let output = self.command().args(["--list", "--format", "terse"]).output();
        let output = output.with_context(|| format!("cannot run {}", self.name()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect())
    }
}

/// `keyboard::signing in …` in Vitest's arguments: the beginning of a file name, and a pattern.
fn split_vitest(test: &str) -> (&str, &str) {
    test.split_once("::").unwrap_or(("", test))
}

fn run_vitest(
    suite: &str,
    configuration: &str,
    selection: &Selection,
    deadline: Instant,
    evidence: &Evidence,
) -> Result<TestOutcome> {
    let written = workspace::root().join("target/ui").join(format!("{suite}.json"));
    // The report of an earlier run must not be read.
    let _ = std::fs::remove_file(&written);
    let mut vitest = ui::node("vitest/vitest.mjs");
    vitest.args(["run", "--config", configuration, "--reporter", "default", "--reporter", "json"]);
    vitest.arg("--outputFile.json").arg(&written);
    vitest.env(testbed::evidence::EVIDENCE_ENV, evidence.prefix("ui"));
    if let Selection::Only(tests) = selection {
        let (mut files, names): (Vec<&str>, Vec<&str>) =
            tests.iter().map(|test| split_vitest(test)).unzip();
        files.dedup();
        let pattern: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
        vitest.args(files.iter().map(|file| format!("{file}.")));
        vitest.arg("-t").arg(format!("^({})$", pattern.join("|")));
    }
    let ended = child::run(&mut vitest, &evidence.log(suite), deadline, &mut |_| {})?;
    let report = std::fs::read_to_string(written).unwrap_or_default();
    let killed = ended.killed_after.map(|after| KilledProgram { after, unfinished: Vec::new() });
    let mut outcome = outcome::of_vitest(suite, &report, ended.status, killed);
    outcome.processor = ended.processor;
    Ok(outcome)
}

#[derive(Deserialize)]
struct ListedTest {
    name: String,
    file: String,
}

fn vitest_tests(configuration: &str) -> Result<Vec<String>> {
    let mut vitest = ui::node("vitest/vitest.mjs");
    vitest.args(["list", "--json", "--config", configuration]);
    let output = vitest.output().context("cannot run Vitest")?;
    let tests: Vec<ListedTest> = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("Vitest lists no tests: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    // `vitest list` joins the names of groups by ` > `; a name on the command line has spaces.
    let name = |test: &ListedTest| test.name.replace(" > ", " ");
    Ok(tests.iter().map(|test| format!("{}::{}", outcome::stem(&test.file), name(test))).collect())
}
