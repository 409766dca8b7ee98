//! A server under a flood, by unauthenticated clients and by the clusters it manages: its memory,
//! and the effect on other clients.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use testbed::Process;

use super::{Row, Samples, Target, memory, settled_memory};
use crate::flood::{Flood, Sizes};
use crate::hostile_cluster::Manner;
use crate::http::runtime;
use crate::journey;
use crate::server::ADMIN_PASSWORD;
use crate::wait::pace;
use crate::{Cli, Client, HostileCluster, Server, Sim, poll_until, programs};

const STRANGERS: Sizes = Sizes {
    addresses: 100,
    silent: 9_000,
    slow_heads: 500,
    slow_bodies: 500,
    logins_per_second: 50,
};
const FLOOD_TIME: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(10);
/// Limit of the memory for unauthenticated clients, in megabytes: documented in
/// `docs/operations/limits.md`.
const STRANGERS_MEGABYTES: f64 = 256.0;
const CLUSTERS_MEGABYTES: f64 = 20.0;

/// What was seen while something went on.
pub struct Seen {
    pub samples: Samples,
    /// Megabytes at most.
    pub most: f64,
}

/// GETs on one connection for some time, and the memory of the server meanwhile.
///
/// # Errors
/// A request fails.
pub fn watch(client: &Client, path: &str, process: u32, time: Duration) -> Result<Seen> {
    let mut seen = Seen { samples: Samples::default(), most: 0.0 };
    runtime().block_on(async {
        let mut connection = client.connect().await?;
        let since = Instant::now();
        while since.elapsed() < time {
            let began = Instant::now();
            connection.measure(path).await?;
            seen.samples.push(began.elapsed());
            seen.most = seen.most.max(memory(process)?);
            pace(PAUSE).await;
        }
        Ok(seen)
    })
}

/// Unauthenticated clients: see [`crate::flood`].
///
/// # Errors
/// The server does not start, or a request of a logged-in user fails.
pub fn of_strangers() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let admin = server.anyone()?.bearer(&server.login("admin", ADMIN_PASSWORD)?);
    let before = settled_memory(process)?;
    let idle = watch(&admin, "/v3/users", process, FLOOD_TIME / 10)?;
    let flood = Flood::begin(&server.anyone()?, STRANGERS)?;
    let seen = watch(&admin, "/v3/users", process, FLOOD_TIME)?;
    let began = Instant::now();
    server.login("admin", ADMIN_PASSWORD)?;
    let login = began.elapsed();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let note = format!(
        "{} silent, {} slow heads, {} slow bodies, {} logins a second from {} addresses; {} connections made, {} \
         guesses compared, {} rejected",
        STRANGERS.silent,
        STRANGERS.slow_heads,
        STRANGERS.slow_bodies,
        STRANGERS.logins_per_second,
        STRANGERS.addresses,
        count(&flood.counts.connections),
        count(&flood.counts.compared),
        count(&flood.counts.turned_away),
    );
    drop(flood);
    let after = settled_memory(process)?;
    let row = |what: &str, value, unit, target| Row::new(what, value, unit, target);
    Ok(vec![
        row(
            "strangers: memory beyond idle",
            seen.most - before,
            "MB",
            Target::AtMost(STRANGERS_MEGABYTES),
        )
        .note(note),
        row("strangers: memory left behind", after - before, "MB", Target::Context),
        row("strangers: p99 of a user", seen.samples.percentile(99), "ms", Target::AtMost(100.0))
            .note(format!("idle {:.1} ms", idle.samples.percentile(99))),
        row(
            "strangers: a login from a known address",
            login.as_secs_f64() * 1e3,
            "ms",
            Target::Context,
        ),
    ])
}

/// Clusters: see [`crate::hostile_cluster`].
///
/// # Errors
/// A process does not start, or a request to the healthy cluster fails.
pub fn of_clusters() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let cli = Cli::admin(&server)?;
    let sim = Sim::start(&[])?;
    let target = journey::ImportTarget::reached_by(&sim.kubeconfig(), server.folder())?;
    let well = journey::import(&server, &cli, "well", &target)?;
    let path = format!("/k8s/clusters/{}/api/v1/namespaces", well.id);
    let admin = server.admin()?;
    let before = settled_memory(process)?;
    let idle = watch(&admin, &path, process, FLOOD_TIME / 3)?;
    let hostile = join_all(&server)?;
    let seen = watch(&admin, &path, process, FLOOD_TIME)?;
    let requests: u64 = hostile.iter().map(|one| one.cluster.requests()).sum();
    let after = settled_memory(process)?;
    let ratio = seen.samples.percentile(99) / idle.samples.percentile(99);
    let note = format!("{} clusters, {requests} requests to them", hostile.len());
    Ok(vec![
        Row::new(
            "hostile clusters: memory, settled",
            after - before,
            "MB",
            Target::AtMost(CLUSTERS_MEGABYTES),
        ),
        Row::new("hostile clusters: memory at most", seen.most - before, "MB", Target::Context)
            .note(note),
        Row::new("hostile clusters: p99 of another, to idle", ratio, "×", Target::AtMost(2.0))
            .note(format!("idle {:.1} ms", idle.samples.percentile(99))),
    ])
}

/// A hostile cluster and its agent, which is Drover's.
#[derive(Debug)]
pub struct Hostile {
    pub manner: Manner,
    pub id: String,
    pub cluster: HostileCluster,
    pub agent: Process,
}

/// Imports one cluster of each manner.
///
/// # Errors
/// A step fails.
pub fn join_all(server: &Server) -> Result<Vec<Hostile>> {
    Manner::ALL.into_iter().map(|manner| join(server, manner)).collect()
}

fn join(server: &Server, manner: Manner) -> Result<Hostile> {
    let cluster = HostileCluster::start(manner)?;
    let name = format!("hostile-{manner:?}").to_lowercase();
    let id = journey::create_cluster(server, &name)?;
    let token =
        poll_until(Duration::from_secs(60), PAUSE, || journey::registration_token(server, &id))?;
    let token = token["status"]["token"].as_str().context("no token")?.to_owned();
    let home = server.folder().join(&name);
    std::fs::create_dir(&home)?;
    let kubeconfig = home.join("kubeconfig");
    cluster.write_kubeconfig(&kubeconfig)?;
    let agent = agent(server, &home, &kubeconfig, &token)?;
    Ok(Hostile { manner, id, cluster, agent })
}

/// An agent that is started by hand.
fn agent(server: &Server, home: &Path, kubeconfig: &Path, token: &str) -> Result<Process> {
    let pem = server.ca_pem().trim_end().to_owned() + "\n";
    let digest = Sha256::digest(pem);
    let checksum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new(programs::drover()?);
    command
        .args(["agent", "cluster", "--server", server.url(), "--token", token])
        .args(["--ca-checksum", &checksum, "--kubeconfig"])
        .arg(kubeconfig)
        .env("HOME", home);
    Ok(Process::start("drover agent", &command, &home.join("agent.log"))?)
}

/// The condition `Ready` of the cluster, or `Waiting` while it has never been ready.
///
/// # Errors
/// The object cannot be read.
pub fn condition(server: &Server, id: &str) -> Result<Value> {
    let path = format!("{}/clusters/{id}", journey::MANAGEMENT);
    let object = server.admin()?.get(&path)?.success()?;
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|one| one["type"] == "Ready");
    ready.with_context(|| format!("no condition Ready: {}", object["status"]))
}
