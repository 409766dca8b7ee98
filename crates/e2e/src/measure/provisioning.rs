//! A call of the driver `example`, and clusters that it makes at a simulated provider: one, and
//! many at once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Row, Samples, Target, memory};
use crate::{ClusterProvider, DriverWorld, poll_until, programs};

/// Clusters that are made one after the other.
const ROUNDS: usize = 9;
/// Clusters that are ordered at once.
const AT_ONCE: u16 = 50;
/// Ports of the provider: one for itself, and one or more for each cluster.
const PORTS: u16 = 120;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const CALL_LOOK_INTERVAL: Duration = Duration::from_millis(2);
const DONE_TIME_MAX: Duration = Duration::from_secs(300);

/// See the module.
///
/// # Errors
/// A cluster is not made, changed or removed.
pub fn measure() -> Result<Vec<Row>> {
    let provider = ClusterProvider::start(PORTS, &[])?;
    let world = DriverWorld::start(&programs::example_driver()?, &provider.ports, &[])?;
    let mut rows = vec![overhead(&world)?];
    rows.extend(one_by_one(&world, &provider)?);
    rows.extend(at_once(&world, &provider)?);
    Ok(rows)
}

/// An activation is one call that costs a driver nothing, the one for its options.
fn overhead(world: &DriverWorld) -> Result<Row> {
    let path = format!("/v3/kontainerdrivers/{}", world.driver);
    let lead_to = |action: &str, state: &str| -> Result<Duration> {
        let since = Instant::now();
        world.api.post(&format!("{path}?action={action}"), &json!({}))?.success()?;
        poll_until(DONE_TIME_MAX, CALL_LOOK_INTERVAL, || {
            let found = world.api.get(&path)?.success()?["state"].clone();
            ensure!(found == state, "it is {found}");
            Ok(())
        })?;
        Ok(since.elapsed())
    };
    let mut calls = Samples::default();
    for _ in 0..ROUNDS {
        lead_to("deactivate", "inactive")?;
        calls.push(lead_to("activate", "active")?);
    }
    let note = format!(
        "median of {ROUNDS}, worst {:.0} ms; activation: the driver starts in its sandbox, is called, and ends, and its \
         types are written",
        calls.percentile(100)
    );
    Ok(Row::new("overhead of a driver call", calls.median(), "ms", Target::Context)
        .note(note)
        .recorded(true))
}

fn one_by_one(world: &DriverWorld, provider: &ClusterProvider) -> Result<Vec<Row>> {
    let [mut made, mut changed, mut removed] = [(); 3].map(|()| Samples::default());
    for round in 0..ROUNDS {
        let since = Instant::now();
        let id = world.create(&format!("one-{round}"), &provider.options(1))?;
        until_active(world, &id)?;
        made.push(since.elapsed());

        let since = Instant::now();
        world.change(&id, &json!({"nodeCount": 2}))?;
        until_active(world, &id)?;
        changed.push(since.elapsed());

        let since = Instant::now();
        world.api.delete(&format!("/v3/clusters/{id}"))?.success()?;
        poll_until(DONE_TIME_MAX, LOOK_INTERVAL, || {
            let found = world.api.get(&format!("/v3/clusters/{id}"))?;
            ensure!(found.status == 404, "it is there");
            Ok(())
        })?;
        removed.push(since.elapsed());
    }
    let row = |what: &str, samples: &Samples, how: &str| {
        let worst = samples.percentile(100);
        Row::new(what, samples.median(), "ms", Target::Context)
            .note(format!("median of {ROUNDS}, worst {worst:.0} ms; {how}"))
            .recorded(true)
    };
    Ok(vec![
        row(
            "cluster by a driver, until active",
            &made,
            "request to active: the driver's calls, its cluster, the agent",
        ),
        row("one node more, until applied", &changed, "the driver starts, and is called"),
        row("its removal, until it is gone", &removed, "at the provider too"),
    ])
}

fn at_once(world: &DriverWorld, provider: &ClusterProvider) -> Result<Vec<Row>> {
    let process = world.server.process_id().context("the server has ended")?;
    let before = memory(process)?;
    let since = Instant::now();
    let names = (0..AT_ONCE).map(|number| format!("many-{number}"));
    let ids: Vec<String> =
        names.map(|name| world.create(&name, &provider.options(1))).collect::<Result<_>>()?;
    for id in &ids {
        until_active(world, id)?;
    }
    let seconds = since.elapsed().as_secs_f64();
    let (after, there) = (memory(process)?, provider.clusters()?.len());
    ensure!(there == usize::from(AT_ONCE), "the provider has {there} clusters");
    Ok(vec![
        Row::new(
            format!("{AT_ONCE} clusters by a driver at once, until all are active"),
            seconds,
            "s",
            Target::Context,
        )
        .note("each with a driver of its own, a simulated cluster and its agent, on this machine")
        .recorded(true),
        Row::new(
            "server memory for each of them",
            (after - before) / f64::from(AT_ONCE),
            "MB",
            Target::Context,
        )
        .note(format!("{before:.0} MB before, {after:.0} MB after"))
        .recorded(true),
    ])
}

/// Waits until the cluster is active and the driver has done all that the object says.
fn until_active(world: &DriverWorld, id: &str) -> Result<()> {
    poll_until(DONE_TIME_MAX, LOOK_INTERVAL, || {
        let path = format!("/apis/management.cattle.io/v3/clusters/{id}");
        let object: Value = world.api.get(&path)?.success()?;
        let reported = &object["status"]["provisioning"];
        let is_current = reported["generation"] == object["metadata"]["generation"];
        let is_done = is_current && reported["stage"] == "Provisioned";
        ensure!(is_done, "the driver is at it: {reported}");
        let state = world.cluster(id)?["state"].clone();
        ensure!(state == "active", "it is {state}");
        Ok(())
    })
}
