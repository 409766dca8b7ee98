//! Kills a working process at a random moment.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use history::record::{Entry, Recorder, covered_revision, next_number};
use history::work::ROOT;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{CRASHES_MAX, LINES_MAX, finish, for_seeds};

/// Kills the process when dropped, also when the test fails.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Some runs that end in kill -9, then one that ends normally.
async fn kills(seed: u64) -> Vec<Entry> {
    let mut random = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().expect("there is room for a test");
    let mut entries = Vec::new();
    let kills = random.random_range(1..=CRASHES_MAX);
    for epoch in 0..kills {
        let lines = random.random_range(1..LINES_MAX);
        let path = folder.path().to_owned();
        let run_until_killed = move || run_until_killed(&path, seed, epoch, entries, lines);
        entries = tokio::task::spawn_blocking(run_until_killed)
            .await
            .expect("the worker could be killed");
        entries.push(Entry::Crashed);
    }
    finish(&folder, entries, seed, kills).await
}

/// Lets a process work until it has printed `lines` lines, and kills it. Returns `entries` and all
/// that it printed.
fn run_until_killed(
    folder: &Path,
    seed: u64,
    epoch: u64,
    mut entries: Vec<Entry>,
    lines: usize,
) -> Vec<Entry> {
    let (first, witnessed) = (next_number(&entries), covered_revision(&entries, ROOT));
    let known = Recorder::after(entries.clone()).newest_reported();
    let numbers = [seed, epoch, first, known, witnessed].map(|number| number.to_string());
    let mut worker = Worker(
        Command::new(env!("CARGO_BIN_EXE_history-work"))
            .arg(folder)
            .args(numbers)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the worker starts"),
    );
    let mut output = BufReader::new(worker.0.stdout.take().expect("it is piped"));
    let (mut read, mut line) = (0, String::new());
    // A line that the kill truncated has no end: it was not delivered.
    while output.read_line(&mut line).expect("the pipe works") > 0 && line.ends_with('\n') {
        entries.push(serde_json::from_str(&line).expect("a line is an entry"));
        line.clear();
        read += 1;
        if read == lines {
            worker.0.kill().expect("it is a child of this process");
        }
    }
    assert!(read >= lines, "seed {seed}: the worker ended by itself after {read} lines");
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_one_history() {
    for_seeds("kills", 40, kills).await;
}
