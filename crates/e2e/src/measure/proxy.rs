//! What the way through Drover costs: the same requests by the same client to the same kube-apiserver,
//! directly and through server, tunnel and agent, in turns.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use testbed::RealCluster;

use super::{Row, Samples, Target, processor_time, settled_memory};
use crate::http::{Connection, runtime};
use crate::journey::{self, Imported, Target as Downstream};
use crate::{Cli, Client, Kubeconfig, Protocol, Server};

const SMALL_REQUESTS: usize = 3000;
const SMALL_WARM_UP: usize = 200;
const ADDED_P99_MAX_MILLIS: f64 = 2.0;
const BULK_OBJECTS: usize = 48;
const BULK_OBJECT_BYTES: usize = 900_000;
const BULK_ROUNDS: usize = 15;
const BULK_RATIO_MIN: f64 = 0.8;
const IMPORT_MAX_SECONDS: f64 = 5.0;
const AGENT_MAX_MEGABYTES: f64 = 15.0;
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// An imported real cluster, and the two ways to it.
struct World {
    direct: Client,
    through: Client,
    // Ended in this order.
    imported: Imported,
    server: Server,
    _cluster: RealCluster,
}

impl World {
    fn new() -> Result<Self> {
        let cluster = RealCluster::start()?;
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let imported = journey::import(&server, &cli, "real", &Downstream::of(&cluster)?)?;
        let direct = Client::of(&Kubeconfig::parse(cluster.kubeconfig())?)?;
        let through = Client::of(&Kubeconfig::read(&cli.kubeconfig_file("real")?)?)?;
        Ok(Self { direct, through, imported, server, _cluster: cluster })
    }
}

/// Import, the agent at rest, and small requests both ways.
///
/// # Errors
/// A part does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let world = World::new()?;
    let import = world.imported.took.as_secs_f64();
    let agent = settled_memory(world.imported.agent.process_id())?;
    let mut rows = vec![
        Row::new("import to active, real cluster", import, "s", Target::AtMost(IMPORT_MAX_SECONDS))
            .note("whole run of `drover cluster import`"),
        Row::new("slim agent memory", agent, "MB", Target::AtMost(AGENT_MAX_MEGABYTES))
            .note("resident, settled, connected"),
    ];
    for protocol in Protocol::BOTH {
        let (direct, through) = (world.direct.over(protocol), world.through.over(protocol));
        rows.extend(latency(&direct, &through, protocol)?);
    }
    Ok(rows)
}

/// Large lists both ways.
///
/// # Errors
/// A part does not start, or a request fails.
pub fn measure_bulk() -> Result<Vec<Row>> {
    let world = World::new()?;
    let processes = [
        ("server", world.server.process_id().unwrap_or_default()),
        ("agent", world.imported.agent.process_id()),
    ];
    let before = processes.map(|(_, process)| processor_time(process));
    let (mut rows, carried) = bulk(&world.direct, &world.through)
        .with_context(|| format!("{}\n{}", world.server.log_tail(), world.imported.agent.log()))?;
    for ((name, process), before) in processes.into_iter().zip(before) {
        let used = (processor_time(process)? - before?) / (carried / 1024.0);
        rows.push(Row::new(format!("{name} processor time"), used, "s/GB", Target::Context));
    }
    let [server, agent] = processes.map(|(_, process)| settled_memory(process));
    let (server, agent) = (server?, agent?);
    rows.push(
        Row::new("server memory after bulk lists", server, "MB", Target::Context)
            .note(format!("the agent has {agent:.1} MB")),
    );
    Ok(rows)
}

fn latency(direct: &Client, through: &Client, protocol: Protocol) -> Result<Vec<Row>> {
    let path = "/api/v1/namespaces/default";
    let (mut one, mut other) = (Samples::default(), Samples::default());
    runtime().block_on(async {
        let mut direct = direct.connect().await?;
        let mut through = through.connect().await?;
        for round in 0..SMALL_REQUESTS + SMALL_WARM_UP {
            for (connection, samples) in [(&mut direct, &mut one), (&mut through, &mut other)] {
                let since = Instant::now();
                connection.measure(path).await?;
                if round >= SMALL_WARM_UP {
                    samples.push(since.elapsed());
                }
            }
        }
        anyhow::Ok(())
    })?;
    let name = if protocol == Protocol::Http1 { "HTTP/1.1" } else { "HTTP/2" };
    let row = |percent: usize, target: Target| {
        let (one, other) = (one.percentile(percent), other.percentile(percent));
        Row::new(format!("proxy latency added, p{percent}, {name}"), other - one, "ms", target)
            .note(format!(
                "direct {one:.2} ms, through {other:.2} ms; {SMALL_REQUESTS} GETs in turns"
            ))
    };
    Ok(vec![row(50, Target::Context), row(99, Target::AtMost(ADDED_P99_MAX_MILLIS))])
}

/// Rows, and the megabytes that went through Drover.
fn bulk(direct: &Client, through: &Client) -> Result<(Vec<Row>, f64)> {
    direct
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "bulk"}}))?
        .success()
        .context("namespace of the bulk data")?;
    let filling = "x".repeat(BULK_OBJECT_BYTES);
    for number in 0..BULK_OBJECTS {
        let body = json!({"metadata": {"name": format!("bulk-{number}")}, "data": {"x": filling}});
        direct.post("/api/v1/namespaces/bulk/configmaps", &body)?.success()?;
    }
    let path = "/api/v1/namespaces/bulk/configmaps";
    let (mut one, mut other, mut size) = (Samples::default(), Samples::default(), 0);
    runtime().block_on(async {
        let mut direct = direct.connect().await?;
        let mut through = through.connect().await?;
        list(&mut direct, path).await.context("directly")?;
        list(&mut through, path).await.context("through Drover")?;
        for _ in 0..BULK_ROUNDS {
            for (connection, samples) in [(&mut direct, &mut one), (&mut through, &mut other)] {
                let since = Instant::now();
                size = list(connection, path).await.context("a list in a round")?;
                samples.push(since.elapsed());
            }
        }
        anyhow::Ok(())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let megabytes = size as f64 / MEGABYTE;
    let rate = |samples: &Samples| megabytes / (samples.median() / 1e3);
    let (direct, through) = (rate(&one), rate(&other));
    let rows = vec![
        Row::new("bulk rate, direct", direct, "MB/s", Target::Context)
            .note(format!("list of {megabytes:.0} MB, median of {BULK_ROUNDS}")),
        Row::new("bulk rate, through Drover", through, "MB/s", Target::Context),
        Row::new("bulk rate, of direct", through / direct, "", Target::AtLeast(BULK_RATIO_MIN))
            .note("same kube-apiserver, same client, in turns"),
    ];
    #[expect(clippy::cast_precision_loss, reason = "a few rounds and the one before")]
    let rounds = (BULK_ROUNDS + 1) as f64;
    Ok((rows, megabytes * rounds))
}

async fn list(connection: &mut Connection, path: &str) -> Result<usize> {
    connection.measure(path).await
}
