//! Clients at the API of servers that are killed and started again on their data, while history is
//! compacted: one order of commits explains everything that anybody was told.
//!
//! Many simulated clusters live in one process, so that a kill ends all of them in the middle of
//! their work; a history is that of one cluster through all of its lives. `check` decides afterwards; `wire` is the check of the check.

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
use crate::run::{Fleet, KEPT};
use crate::wire::Bug;

/// Clusters in one process, and how often it is killed: a seed is the work of one cluster up to one
/// kill.
const CLUSTERS: u64 = 20;
const KILLS: u64 = 10;
const SEEDS: u64 = CLUSTERS * KILLS;
/// How long to go on, in seconds, with further seeds.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Names a history to check again instead, as a failed run wrote it.
const REPLAY_ENV: &str = "DROVER_API_HISTORY";

#[test]
fn what_clients_were_told_is_one_history_across_kills() {
    no_second_try(Guarantee::Consistency);
    if let Some(file) = std::env::var_os(REPLAY_ENV) {
        let text = std::fs::read_to_string(file).unwrap();
        let entries: Vec<Entry> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        println!("{:?}", check::check(&entries, KEPT).unwrap());
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
            all +=
                check::check(&entries, KEPT).unwrap_or_else(|error| fail(seed, &entries, &error));
        }
        seeds += SEEDS;
        println!("{seeds} seeds in {:.0?}: {all:?}", start.elapsed());
    }
    assert!(all.unknown > 0, "no kill met a write: {all:?}");
    assert!(all.gone > 0, "nothing was compacted: {all:?}");
}

#[test]
fn every_planted_bug_is_found() {
    no_second_try(Guarantee::Consistency);
    // The last one is sound: it is not the check that is at fault.
    let mut fleet = Fleet::start(0..1 + Bug::ALL.len() as u64, &Bug::ALL).unwrap();
    fleet.live(0, false).unwrap();
    let mut planted = fleet.planted();
    for (bug, (entries, shown)) in Bug::ALL.iter().zip(planted.by_ref()) {
        let found = check::check(&entries, KEPT);
        println!("{bug:?}, shown {shown} times: {found:?}");
        assert!(shown > 0, "{bug:?} did not show");
        assert!(found.is_err(), "{bug:?} showed {shown} times and was not found");
    }
    let (entries, _) = planted.next().unwrap();
    check::check(&entries, KEPT).unwrap_or_else(|error| fail(0, &entries, &error));
}

/// Keeps the history for whoever looks into it.
fn fail(seed: u64, entries: &[Entry], error: &str) -> ! {
    let file = std::env::temp_dir().join(format!("drover-api-history-{seed}.jsonl"));
    let line = |entry| serde_json::to_string(entry).unwrap() + "\n";
    std::fs::write(&file, entries.iter().map(line).collect::<String>()).unwrap();
    panic!("cluster {seed}: {error}\n{REPLAY_ENV}={} checks it again", file.display());
}
