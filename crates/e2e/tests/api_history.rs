//! Clients of API servers that are killed and restarted with their data, while history is
//! compacted: one order of commits explains all responses and events.
//!
//! One process has many simulated clusters, so that a kill interrupts all of them. A history is
//! that of one cluster through all of its lives. `check` decides afterwards; `wire` tests the check
//! with planted bugs.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "api_history/check.rs"]
mod check;
#[path = "api_history/clients.rs"]
mod clients;
#[path = "api_history/commits.rs"]
mod commits;
#[path = "api_history/record.rs"]
mod record;
#[path = "api_history/run.rs"]
mod run;
#[path = "api_history/wait.rs"]
mod wait;
#[path = "api_history/watchers.rs"]
mod watchers;
#[path = "api_history/watches.rs"]
mod watches;
#[path = "api_history/wire.rs"]
mod wire;

use std::time::{Duration, Instant};

use e2e::{Guarantee, no_second_try};

use crate::check::Summary;
use crate::record::Entry;
use crate::run::{Fleet, RETAINED};
use crate::wire::Bug;

/// Clusters in one process, and kills of the process. A seed is the work of one cluster up to one
/// kill.
const CLUSTERS: u64 = 20;
const KILLS: u64 = 10;
const SEEDS: u64 = CLUSTERS * KILLS;
/// Variable with the duration, in seconds, of further seeds.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Variable with the file of a history, written by a failed run, to check again instead.
const REPLAY_ENV: &str = "DROVER_API_HISTORY";

#[test]
fn responses_to_clients_are_one_history_across_kills() {
    no_second_try(Guarantee::Consistency);
    if let Some(file) = std::env::var_os(REPLAY_ENV) {
        let text = std::fs::read_to_string(file).unwrap();
        let entries: Vec<Entry> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        println!("{:?}", check::check(&entries, RETAINED).unwrap());
        return;
    }
    let soak = std::env::var(SOAK_ENV).ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    let start = Instant::now();
    let mut all = Summary::default();
    let mut seeds = 0;
    while seeds == 0 || soak.is_some_and(|soak| start.elapsed() < soak) {
        let first = seeds / KILLS;
        let mut fleet = Fleet::start(first..first + CLUSTERS, &[]).unwrap();
        for life in 0..=KILLS {
            fleet.live(life, life < KILLS).unwrap();
        }
        for (seed, entries) in fleet.histories() {
            all += check::check(&entries, RETAINED)
                .unwrap_or_else(|error| fail(seed, &entries, &error));
        }
        seeds += SEEDS;
        println!("{seeds} seeds in {:.0?}: {all:?}", start.elapsed());
    }
    assert!(all.unknown > 0, "no kill met a write: {all:?}");
    assert!(all.expired > 0, "nothing was compacted: {all:?}");
}

#[test]
fn every_planted_bug_is_found() {
    no_second_try(Guarantee::Consistency);
    // The last cluster has no bug: the check must accept it.
    let mut fleet = Fleet::start(0..1 + Bug::ALL.len() as u64, &Bug::ALL).unwrap();
    fleet.live(0, false).unwrap();
    let mut planted = fleet.planted();
    for (bug, (entries, shown)) in Bug::ALL.iter().zip(planted.by_ref()) {
        let found = check::check(&entries, RETAINED);
        println!("{bug:?}, shown {shown} times: {found:?}");
        assert!(shown > 0, "{bug:?} did not show");
        assert!(found.is_err(), "{bug:?} showed {shown} times and was not found");
    }
    let (entries, _) = planted.next().unwrap();
    check::check(&entries, RETAINED).unwrap_or_else(|error| fail(0, &entries, &error));
}

/// Stores the history for the analysis of the failure.
fn fail(seed: u64, entries: &[Entry], error: &str) -> ! {
    let file = std::env::temp_dir().join(format!("drover-api-history-{seed}.jsonl"));
    let line = |entry| serde_json::to_string(entry).unwrap() + "\n";
    std::fs::write(&file, entries.iter().map(line).collect::<String>()).unwrap();
    panic!("cluster {seed}: {error}\n{REPLAY_ENV}={} checks it again", file.display());
}
