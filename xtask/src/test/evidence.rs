//! The folders of failed tests, `target/test-failures/<test>`, and the output of all programs,
//! `target/test-logs/<program>.log`.
//!
//! Programs write into them while the processes of the failed test still run (`testbed::evidence`).
//! This module names them, adds the output of the test, and prints them at the end.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::outcome::TestFailure;

/// Lines of each log in the summary.
const LOG_LINES_SHOWN: usize = 30;
const OUTPUT_FILE: &str = "output.txt";
/// Suffix of the folder of a test that was run once more.
const FIRST_TRY: &str = ".first-try";

/// The folders with the evidence of a run.
pub struct Evidence {
    failures: PathBuf,
    logs: PathBuf,
}

impl Evidence {
    /// Creates the folders below `target`, without the files of an earlier run.
    pub fn begin(target: &Path) -> Result<Self> {
        let begun = Self { failures: target.join("test-failures"), logs: target.join("test-logs") };
        for folder in [&begun.failures, &begun.logs] {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create '{}'", folder.display()))?;
        }
        Ok(begun)
    }

    /// Prefix of the folders of all tests of `program`.
    pub fn prefix(&self, program: &str) -> OsString {
        self.failures.join(format!("{program}::")).into_os_string()
    }

    /// The file with the output of the last run of `program`.
    pub fn log(&self, program: &str) -> PathBuf {
        self.logs.join(format!("{program}.log"))
    }

    /// The last lines of that file.
    pub fn end_of_log(&self, program: &str) -> String {
        end_of(&self.log(program))
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.failures.join(name.replace('/', "-"))
    }

    /// Adds the output of a failed test to its folder.
    pub fn store_output(&self, failure: &TestFailure) -> Result<()> {
        let folder = self.folder(&failure.name);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join(OUTPUT_FILE), &failure.output))
            .with_context(|| format!("cannot write to '{}'", folder.display()))
    }

    /// Renames the folder of a test before its second try.
    pub fn rename_first_try(&self, name: &str) -> Result<()> {
        let (from, to) = (self.folder(name), self.folder(&format!("{name}{FIRST_TRY}")));
        fs::rename(&from, &to).with_context(|| format!("cannot rename '{}'", from.display()))
    }

    /// Removes the folders of tests that panicked on purpose: all but those of `failed`.
    pub fn remove_all_but(&self, failed: &[&str]) -> Result<()> {
        let folders: Vec<PathBuf> = failed.iter().map(|name| self.folder(name)).collect();
        for entry in fs::read_dir(&self.failures)? {
            let path = entry?.path();
            let text = path.to_string_lossy();
            let test = Path::new(text.strip_suffix(FIRST_TRY).unwrap_or(&text));
            if !folders.iter().any(|folder| folder == test) {
                fs::remove_dir_all(&path)
                    .with_context(|| format!("cannot remove '{}'", path.display()))?;
            }
        }
        Ok(())
    }

    /// The failed assertion, its location, and the last lines of each log.
    pub fn describe(&self, failure: &TestFailure) -> String {
        let first = self.folder(&format!("{}{FIRST_TRY}", failure.name));
        let folder = if first.is_dir() { first } else { self.folder(&failure.name) };
        let mut text = format!("---- {} ----\n{}", failure.name, failure.assertion());
        let _ = writeln!(text, "evidence: {}", folder.display());
        text.push_str(&ends_of_logs(&folder));
        text
    }
}

fn ends_of_logs(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let mut logs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    logs.sort();
    logs.iter().map(|log| end_of(log)).collect()
}

fn end_of(log: &Path) -> String {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("  -- end of {name}:\n");
    let bytes = fs::read(log).unwrap_or_default();
    for line in last_lines(&String::from_utf8_lossy(&bytes), LOG_LINES_SHOWN) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The last `number` lines of a text, or all.
pub fn last_lines(text: &str, number: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(number)..].to_vec()
}
