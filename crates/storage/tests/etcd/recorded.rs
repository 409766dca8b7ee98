//! Recorded histories through killed, frozen and cut-off members: one order of commits explains the
//! responses to clients and watchers.
//!
//! `DROVER_HISTORY_SEED=<seed>` runs one seed alone; with `DROVER_SOAK_SECONDS`, new seeds run for
//! that time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use history::check::{Summary, check};
use history::record::Recorder;
use history::run::{Load, Running};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use storage::etcd::EtcdConfig;
use tokio::time::timeout;

use super::cluster::Cluster;
use super::relay::{Line, Relay};

/// Histories of each fault.
const SEEDS: u64 = 1;
/// Seeds of a soak begin here.
const SOAK_SEED: u64 = 1 << 20;
/// Faults of one history.
const FAULTS: usize = 2;
/// Lines between two changes of the network or the members.
const LINES: usize = 400;
/// Longest time for that many lines: there are none while no call succeeds.
const FAULT_MAX: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Freeze,
    Line(Line),
}

/// Several faults, each of the leader or of a follower, under work that uses any member.
async fn under(fault: Fault, seed: u64) -> Summary {
    let mut random = StdRng::seed_from_u64(seed);
    let mut cluster = Cluster::start(3, false, &[]);
    cluster.connect(cluster.config(0)).await;
    let mut relays = Vec::new();
    for index in 0..3 {
        relays.push(Relay::to(cluster.client_port(index)).await);
    }
    let mut endpoints: Vec<_> =
        relays.iter().map(|relay| format!("127.0.0.1:{}", relay.port)).collect();
    let used = random.random_range(0..3);
    endpoints.rotate_left(used);
    let storage = cluster.connect(EtcdConfig { endpoints, ..cluster.config(0) }).await;
    let recorder = Arc::new(Recorder::default());
    let load = Load { seed, epoch: 0, clients: 5, steps: 250, watchers: 3 };
    let mut running = Running::begin(storage, Arc::clone(&recorder), 0, load);
    running.reach(random.random_range(0..LINES)).await;
    for _ in 0..FAULTS {
        let leader = cluster.leader();
        let member = if random.random() { leader } else { random.random_range(0..3) };
        println!("seed {seed}: {fault:?} of member {member}, the leader is {leader}");
        match fault {
            Fault::Kill => cluster.kill(member),
            Fault::Freeze => cluster.freeze(member),
            Fault::Line(line) => relays[member].set(line),
        }
        go_on(&mut running, &recorder, &mut random).await;
        match fault {
            Fault::Kill => cluster.restart(member),
            Fault::Freeze => cluster.thaw(member),
            Fault::Line(_) => relays[member].set(Line::Whole),
        }
        go_on(&mut running, &recorder, &mut random).await;
    }
    let finished = running.finish().await;
    finished.unwrap_or_else(|error| panic!("{fault:?}, seed {seed}: {error}"));
    let entries = recorder.finish();
    check(&entries).unwrap_or_else(|violation| {
        let file = std::env::temp_dir().join(format!("history-{fault:?}-{seed}.json"));
        let _ = std::fs::write(&file, history::record::lines(&entries));
        panic!("{fault:?}, seed {seed}: {violation}; the history is in {}", file.display())
    })
}

async fn go_on(running: &mut Running, recorder: &Recorder, random: &mut StdRng) {
    let lines = recorder.len() + random.random_range(1..LINES);
    // Fails without a majority or a connection, which is the purpose of the fault.
    let _ = timeout(FAULT_MAX, running.reach(lines)).await;
}

async fn for_seeds(fault: Fault) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let until = Instant::now() + Duration::from_secs(number("DROVER_SOAK_SECONDS").unwrap_or(0));
    let seeds: Box<dyn Iterator<Item = u64> + Send> = match number("DROVER_HISTORY_SEED") {
        Some(seed) => Box::new([seed].into_iter()),
        None => {
            let soak = (SOAK_SEED..).take_while(move |_| Instant::now() < until);
            Box::new((1..=SEEDS).chain(soak))
        }
    };
    let (mut all, mut runs) = (Summary::default(), 0);
    for seed in seeds {
        all += under(fault, seed).await;
        runs += 1;
    }
    println!("{fault:?}: {runs} seeds, {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_members_leave_one_history() {
    for_seeds(Fault::Kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_members_leave_one_history() {
    for_seeds(Fault::Freeze).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_are_cut_off_leave_one_history() {
    for_seeds(Fault::Line(Line::Cut)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_responses_leave_one_history() {
    for_seeds(Fault::Line(Line::ResponsesLost)).await;
}
