//! Random changes of users, roles, bindings, clusters and projects. The product allows the same
//! requests as a second, small authorizer without shared code, and no user gains a right that
//! nobody could grant.
//!
//! Each seed is printed when it fails; `DROVER_RIGHTS_SEED=<seed>` runs it alone. With
//! `DROVER_SOAK_SECONDS`, new seeds are run for that long.

#![allow(clippy::unwrap_used)]

#[path = "rights/namespaces.rs"]
mod namespaces;
#[path = "rights/plane.rs"]
mod plane;
#[path = "rights/planted.rs"]
mod planted;
#[path = "rights/reference.rs"]
mod reference;
#[path = "rights/steps.rs"]
mod steps;

use std::time::{Duration, Instant};

use planted::Bug;
use steps::Run;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// Seeds of every run, and steps of each: ten thousand together.
const SEEDS: u64 = 8;
const STEPS: usize = 1_250;
/// Concurrent runs: each waits for the disk and for watches most of the time.
const AT_ONCE: usize = 4;
/// Seeds of a soak begin here.
const SOAK_SEED: u64 = 1 << 20;
/// A planted bug must be found within this many steps of each of this many seeds.
const PLANTED_STEPS: usize = 1_000;
const PLANTED_SEEDS: u64 = 4;
/// Steps that a failure shows.
const SHOWN: usize = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The number of steps that changed something; or the failure, and the steps before it.
async fn run(seed: u64, steps: usize, bug: Option<Bug>) -> Result<usize, String> {
    let mut run = Run::start(seed, bug).await;
    let result = run.steps(steps).await;
    result.map(|()| run.done).map_err(|difference| {
        let last = run.log.len().saturating_sub(SHOWN);
        format!("step {}: {difference}\n{}", run.log.len(), run.log[last..].join("\n"))
    })
}

/// Runs in a runtime of its own, which ends all tasks of the run: a soak has thousands of runs.
fn run_here(seed: u64, steps: usize, bug: Option<Bug>) -> Result<usize, String> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = runtime.block_on(run(seed, steps, bug));
    runtime.shutdown_background();
    result
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_gains_a_right_that_nobody_could_grant() {
    let began = Instant::now();
    let until = began + Duration::from_secs(number("DROVER_SOAK_SECONDS").unwrap_or(0));
    let mut seeds: Box<dyn Iterator<Item = u64> + Send> = match number("DROVER_RIGHTS_SEED") {
        Some(seed) => Box::new([seed].into_iter()),
        None => {
            let soak = (SOAK_SEED..).take_while(move |_| Instant::now() < until);
            Box::new((1..=SEEDS).chain(soak))
        }
    };
    let (mut running, mut steps, mut done) = (JoinSet::new(), 0, 0);
    loop {
        while running.len() < AT_ONCE
            && let Some(seed) = seeds.next()
        {
            running.spawn_blocking(move || (seed, run_here(seed, STEPS, None)));
        }
        let Some(ended) = running.join_next().await else { break };
        let (seed, result) = ended.unwrap();
        match result {
            Ok(writes) => done += writes,
            Err(problem) => {
                panic!("after {steps} steps, DROVER_RIGHTS_SEED={seed} runs this alone: {problem}")
            }
        }
        steps += STEPS;
    }
    println!("{steps} steps in {:?}, {done} of them changed something", began.elapsed());
    assert!(done > steps / 10, "most steps were refused: {done} of {steps}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planted_escalation_is_found() {
    let mut running = JoinSet::new();
    for bug in Bug::ALL {
        running.spawn_blocking(move || {
            for seed in 1..=PLANTED_SEEDS {
                if let Err(problem) = run_here(seed, PLANTED_STEPS, Some(bug)) {
                    let found = problem.lines().next().unwrap_or_default();
                    println!("{bug:?}, seed {seed}: {found}");
                    assert!(found.contains(bug.words()), "{bug:?}, seed {seed}: {problem}");
                    return None;
                }
            }
            Some(bug)
        });
    }
    let hidden: Vec<Bug> = running.join_all().await.into_iter().flatten().collect();
    assert!(hidden.is_empty(), "{hidden:?} stayed hidden");
}
