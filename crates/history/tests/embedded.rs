//! The embedded storage under power cuts and kill -9: the responses to clients and watchers
//! before, between and after them are one history.
//!
//! Each seed prints itself when it fails; `DROVER_HISTORY_SEED=<seed>` runs it alone. With
//! `DROVER_SOAK_SECONDS`, new seeds are run for that long.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use history::check::{Summary, check};
use history::power_cut::{Acknowledged, cut};
use history::record::{Entry, Recorder, covered_revision, lines};
use history::run::{Load, Running};
use history::work::ROOT;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tempfile::TempDir;
use tokio::task::JoinSet;

#[path = "embedded/killed.rs"]
mod killed;

/// Runs at once: each waits for the disk most of the time.
const AT_ONCE: usize = 6;
/// Seeds of a soak begin here, above those of every run.
const SOAK_SEED: u64 = 1 << 20;
/// Lines of one run before a crash, at most.
const LINES_MAX: usize = 1500;
/// Crashes of one history, at most.
const CRASHES_MAX: u64 = 3;

/// Runs `history` for the seeds of this run, and prints the sum of their counts.
async fn for_seeds<F>(name: &str, seeds: u64, history: fn(u64) -> F)
where
    F: Future<Output = Vec<Entry>> + Send + 'static,
{
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let started = Instant::now();
    let until = started + Duration::from_secs(number("DROVER_SOAK_SECONDS").unwrap_or(0));
    let mut seeds_to_run: Box<dyn Iterator<Item = u64>> = match number("DROVER_HISTORY_SEED") {
        Some(seed) => Box::new([seed].into_iter()),
        None => {
            let soak = (SOAK_SEED..).take_while(|_| Instant::now() < until);
            Box::new((1..=seeds).chain(soak))
        }
    };
    let (mut all, mut runs) = (Summary::default(), 0);
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE
            && let Some(seed) = seeds_to_run.next()
        {
            running.spawn(checked(seed, history(seed)));
        }
        let Some(run) = running.join_next().await else { break };
        all += run.expect("the history is sound");
        runs += 1;
    }
    println!("{name}: {runs} seeds in {:?}, {all:?}", started.elapsed());
    assert!(all.commits > 0, "nothing happened");
}

async fn checked(seed: u64, history: impl Future<Output = Vec<Entry>>) -> Summary {
    // Its own panics name the seed as well.
    let _seed_on_panic = SeedOnPanic(seed);
    let entries = history.await;
    match check(&entries) {
        Ok(summary) => summary,
        Err(violation) => {
            let file = std::env::temp_dir().join(format!("history-{seed}.json"));
            let _ = std::fs::write(&file, lines(&entries));
            panic!("seed {seed}: {violation}; the history is in {}", file.display());
        }
    }
}

struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {} failed: DROVER_HISTORY_SEED={} runs it alone", self.0, self.0);
        }
    }
}

fn load(seed: u64, epoch: u64) -> Load {
    Load { seed, epoch, clients: 5, steps: 30, watchers: 3 }
}

/// Some runs that end in a power cut, then one that ends normally.
async fn power_cuts(seed: u64) -> Vec<Entry> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut folder = tempfile::tempdir().expect("there is room for a test");
    let mut entries = Vec::new();
    let crashes = random.random_range(1..=CRASHES_MAX);
    for epoch in 0..crashes {
        let (storage, mut running) = begin(&folder, entries, seed, epoch);
        let recorder = running.recorder();
        running.reach(recorder.len() + random.random_range(0..LINES_MAX)).await;
        let acknowledged = Acknowledged::by(&recorder.silence());
        let next = tempfile::tempdir().expect("there is room for a test");
        cut(folder.path(), next.path(), acknowledged, &mut random)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        entries = recorder.finish();
        entries.push(Entry::Crashed);
        running.abandon().await;
        storage.close();
        folder = next;
    }
    finish(&folder, entries, seed, crashes).await
}

fn begin(
    folder: &TempDir,
    entries: Vec<Entry>,
    seed: u64,
    epoch: u64,
) -> (Arc<EmbeddedStorage>, Running) {
    let witnessed = covered_revision(&entries, ROOT);
    let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default())
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let recorder = Arc::new(Recorder::after(entries));
    let subject = Arc::clone(&storage);
    let running = Running::begin(subject, recorder, witnessed, load(seed, epoch));
    (storage, running)
}

/// The last run, which ends normally; then checks the file.
async fn finish(folder: &TempDir, entries: Vec<Entry>, seed: u64, epoch: u64) -> Vec<Entry> {
    let (storage, running) = begin(folder, entries, seed, epoch);
    let recorder = running.recorder();
    running.finish().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    storage.close();
    check_file(folder.path(), seed);
    recorder.finish()
}

fn check_file(folder: &Path, seed: u64) {
    let file = rusqlite::Connection::open(folder.join("storage.db")).expect("the file opens");
    let integrity: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("the file can be checked");
    assert_eq!(integrity, "ok", "seed {seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn power_cuts_leave_one_history() {
    for_seeds("power cuts", 200, power_cuts).await;
}
