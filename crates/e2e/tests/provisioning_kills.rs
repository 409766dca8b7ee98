//! A server that is killed while a driver makes or removes a cluster: whenever that happens, there
//! is one cluster at the provider in the end, or none.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster_provider::FEW;
use e2e::driver_world::ACTIVE_TIME_MAX;
use e2e::{ClusterProvider, DriverWorld, poll_until, programs};
use serde_json::Value;

/// A simulated cluster is made in less than the sum of these steps.
const STEP: Duration = Duration::from_millis(70);
const STEPS: u32 = 14;
/// Between looks at something that changes within milliseconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until a moment after an event: there is no other way to meet a server in the middle of
/// what it does.
fn at(moment: Duration) {
    let start = std::time::Instant::now();
    let passed = || if start.elapsed() >= moment { Ok(()) } else { Err("not yet") };
    poll_until(moment * 2, LOOK_INTERVAL, passed).unwrap();
}

fn world() -> (ClusterProvider, DriverWorld) {
    let provider = ClusterProvider::start(FEW, &[]).unwrap();
    let program = programs::example_driver().unwrap();
    let world = DriverWorld::start(&program, &provider.ports, &[]).unwrap();
    (provider, world)
}

fn names(provider: &ClusterProvider) -> Result<Vec<String>> {
    let clusters = provider.clusters()?.into_iter();
    Ok(clusters.map(|made| made["name"].as_str().unwrap_or_default().to_owned()).collect())
}

#[test]
fn a_server_killed_while_it_makes_a_cluster_makes_one() {
    let (provider, mut world) = world();
    for step in 0..STEPS {
        let id = world.create(&format!("made-{step}"), &provider.options(1)).unwrap();
        at(STEP * step);
        world.kill_and_restart().unwrap();
        world.wait_for(&id, "active", "");
        assert_eq!(names(&provider).unwrap(), [id.as_str()], "killed in step {step}");
        world.remove(&id).unwrap();
        assert_eq!(provider.clusters().unwrap(), [] as [Value; 0], "step {step}");
    }
}

#[test]
fn a_server_killed_while_it_makes_a_cluster_that_is_removed_then_leaves_none() {
    let (provider, mut world) = world();
    for step in 0..STEPS {
        let id = world.create(&format!("unwanted-{step}"), &provider.options(1)).unwrap();
        at(STEP * step);
        world.kill_and_restart().unwrap();
        world.remove(&id).unwrap();
        assert_eq!(names(&provider).unwrap(), [] as [String; 0], "killed in step {step}");
        assert_eq!(world.record(&id).unwrap(), None);
    }
}

#[test]
fn a_server_killed_while_it_removes_a_cluster_removes_it() {
    let (provider, mut world) = world();
    for step in 0..STEPS {
        let id = world.create(&format!("going-{step}"), &provider.options(1)).unwrap();
        world.wait_for(&id, "active", "");
        world.api.delete(&format!("/v3/clusters/{id}")).unwrap().success().unwrap();
        at(STEP / 4 * step);
        world.kill_and_restart().unwrap();
        world.wait_until_gone(&id);
        let gone = poll_until(ACTIVE_TIME_MAX, Duration::from_millis(50), || {
            let left = names(&provider)?;
            ensure!(left.is_empty(), "left: {left:?}");
            Ok::<_, anyhow::Error>(())
        });
        gone.unwrap_or_else(|error| panic!("killed in step {step}: {error}"));
        assert_eq!(world.record(&id).unwrap(), None);
    }
}
