//! A simulated cluster whose controllers are those of Kubernetes: an unmodified
//! kube-controller-manager reconciles workloads, namespaces, owned objects, quotas and accounts
//! through Drover's API, without recurring errors.
//!
//! It works in rounds, each in a namespace of its own, one every [`ROUND_EVERY`], for [`SECONDS`],
//! or for `DROVER_SOAK_SECONDS`. In between it waits, to detect errors without activity.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "controller_manager/round.rs"]
mod round;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::{ControllerManager, Sim, eventually, wait::within};

use round::Round;

const SECONDS: u64 = 300;
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
const NODES: usize = 3;
/// From the start of a round to that of the next.
const ROUND_EVERY: Duration = Duration::from_secs(300);
/// A cron job of every minute has begun after at most that.
const MINUTE: Duration = Duration::from_secs(90);

/// Expected errors: a part of their text, how often in a round, and the reason.
const EXPLAINED: [(&str, usize, &str); 8] = [
    ("The manifest file is empty", 0, "the start reports an unused flag"),
    ("is not as new as written version", 200, "a controller waits until it sees its own write"),
    ("exceeded quota: room", 40, "the round requests more pods than a quota allows"),
    (
        "the object has been modified",
        20,
        "two controllers write one object; the second tries again",
    ),
    (
        "unable to fetch metrics from resource metrics API",
        10,
        "nothing measures the load of pods here",
    ),
    ("\\\" not found", 10, "a controller is late to observe that an object is deleted"),
    ("ResourceClaim not created yet", 5, "a pod is seen before the claim that is made for it"),
    ("is being terminated", 20, "a controller is late to learn that a namespace goes"),
];
/// Expected errors of the start.
const OF_START_MAX: usize = 2;

#[test]
fn a_real_controller_manager_runs_a_cluster() {
    let length = std::env::var(SOAK_ENV).ok().map_or(SECONDS, |text| text.parse().unwrap());
    let nodes = NODES.to_string();
    let sim = Sim::start(&["--external-controllers", "--nodes", &nodes]).unwrap();
    let mut manager = ControllerManager::start(&sim).unwrap();
    let kubectl = sim.kubectl().unwrap();
    let first = ControllerManager::renewed(&sim).unwrap();
    kubectl
        .succeed(&[
            "create",
            "cronjob",
            "tick",
            "--image=task:1",
            "--schedule=* * * * *",
            "--",
            "x",
        ])
        .unwrap();

    let end = Instant::now() + Duration::from_secs(length);
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        rounds += 1;
        let next = Instant::now() + ROUND_EVERY;
        Round::new(&kubectl, rounds, NODES).run();
        manager.still_runs().unwrap();
        manager.watch_until(next.min(end)).unwrap();
    }

    within(MINUTE, "the cron job has finished a job", || -> Result<()> {
        let jobs = kubectl.json(&["get", "jobs"])?;
        let done = jobs["items"].as_array().into_iter().flatten();
        ensure!(done.clone().any(|job| job["status"]["succeeded"] == 1), "{jobs}");
        Ok(())
    });
    eventually("the lease is renewed", || {
        let renewed = ControllerManager::renewed(&sim)?;
        ensure!(renewed > first, "{renewed}");
        Ok(())
    });
    manager.still_runs().unwrap();

    let mut counts = [0; EXPLAINED.len()];
    let mut unexplained = Vec::new();
    for (complaint, count) in manager.complaints().unwrap() {
        match EXPLAINED.iter().position(|(text, ..)| complaint.text.contains(text)) {
            Some(known) => counts[known] += count,
            None => unexplained.push((count, complaint)),
        }
    }
    assert!(unexplained.is_empty(), "in {rounds} rounds: {unexplained:#?}");
    for ((text, in_round_max, why), count) in EXPLAINED.iter().zip(counts) {
        println!("{count} errors in {rounds} rounds: \"{text}\" ({why})");
        assert!(count <= OF_START_MAX + in_round_max * rounds, "{count} times: {text}");
    }
}
