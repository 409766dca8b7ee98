//! The check finds planted bugs, and reports nothing for a correct storage.

use std::sync::Arc;

use history::check::{Rule, Violation, check};
use history::planted::{Bug, Planted};
use history::record::Recorder;
use history::run::{Load, Running};
use storage::Storage;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tokio::task::JoinSet;

/// Runs of each bug.
const SEEDS: u64 = 4;
/// A bug that shows this often must be found. A single time may do no harm, because another client
/// did the same at the same time.
const SHOWN_MIN: u64 = 3;

fn load(seed: u64) -> Load {
    Load { seed, epoch: 0, clients: 5, steps: 60, watchers: 3 }
}

/// The result of the check, and how often the bug showed.
async fn run(bug: Option<Bug>, seed: u64) -> (Option<Violation>, u64) {
    let folder = tempfile::tempdir().expect("there is room for a test");
    let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default())
        .expect("an empty folder opens");
    let planted = bug.map(|bug| Planted::new(Arc::clone(&storage) as Arc<dyn Storage>, bug));
    let subject: Arc<dyn Storage> = match &planted {
        Some(planted) => Arc::clone(planted) as Arc<dyn Storage>,
        None => storage,
    };
    let recorder = Arc::new(Recorder::default());
    let running = Running::begin(subject, Arc::clone(&recorder), 0, load(seed));
    running.finish().await.expect("no wait is endless");
    let violation = check(&recorder.finish()).err();
    (violation, planted.map_or(0, |planted| planted.shown_count()))
}

/// Rules that may report a bug first: it depends on which client encounters it.
fn finders(bug: Bug) -> &'static [Rule] {
    match bug {
        Bug::LostPut | Bug::LostDelete => &[Rule::Chain, Rule::Complete, Rule::State],
        Bug::NotCompared => &[Rule::Compared],
        Bug::RefusedAndDone | Bug::DoneTwice => &[Rule::Requested],
        Bug::RevisionTwice => &[Rule::RevisionOnce],
        Bug::StaleGet | Bug::StaleList => &[Rule::NeverBack],
        Bug::TornList => &[Rule::State, Rule::RevisionOnce],
        Bug::NewestForPast => &[Rule::State],
        Bug::CompactedRead => &[Rule::State, Rule::Forgotten],
        Bug::LostEvent | Bug::CompactedWatch => &[Rule::Complete],
        Bug::EventTwice | Bug::EventsSwapped | Bug::EarlyProgress => &[Rule::Order, Rule::Complete],
        Bug::WrongPrevious => &[Rule::RevisionOnce, Rule::Chain],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_bug_is_found() {
    let mut runs = JoinSet::new();
    for bug in Bug::ALL {
        runs.spawn(async move { (bug, runs_of(bug).await) });
    }
    while let Some(run) = runs.join_next().await {
        let (bug, found) = run.expect("what was found is what was planted");
        println!("{bug:?}: found in {} of {SEEDS} runs, as {found:?}", found.len());
        assert!(!found.is_empty(), "{bug:?} never showed");
    }
}

async fn runs_of(bug: Bug) -> Vec<Rule> {
    let mut found = Vec::new();
    for seed in 1..=SEEDS {
        let (violation, shown) = run(Some(bug), seed).await;
        match violation {
            Some(violation) if finders(bug).contains(&violation.rule) => found.push(violation.rule),
            Some(violation) => panic!("{bug:?}, seed {seed}: found as {violation}"),
            None => assert!(shown < SHOWN_MIN, "{bug:?}, seed {seed}: shown {shown} times"),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_storage_is_found_sound() {
    for seed in 1..=SEEDS {
        let (violation, _) = run(None, seed).await;
        assert_eq!(violation, None, "seed {seed}");
    }
}
