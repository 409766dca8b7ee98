//! The cost of the path through Drover: the same requests by the same client to the same
//! kube-apiserver, directly and through server, tunnel and agent, alternately.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use testbed::RealCluster;

use super::{Row, Samples, Target, processor_time, settled_memory};
use crate::http::{Connection, runtime};
use crate::journey::{self, ImportTarget as Downstream, Imported};
use crate::server::Options;
use crate::{Cli, Client, Kubeconfig, Protocol, Server, Sim};

const SMALL_REQUESTS: usize = 3000;
const SMALL_WARM_UP: usize = 200;
const AUDIT_ROUNDS: u32 = 10;
const AUDIT_REQUESTS: u32 = 2000;
const ADDED_P99_MAX_MILLIS: f64 = 2.0;
const BULK_OBJECTS: usize = 48;
const BULK_OBJECT_BYTES: usize = 900_000;
const BULK_ROUNDS: usize = 15;
const BULK_RATIO_MIN: f64 = 0.8;
const IMPORT_MAX_SECONDS: f64 = 5.0;
const AGENT_MAX_MEGABYTES: f64 = 15.0;
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// An imported real cluster, and the two paths to it.
struct World {
    direct: Client,
    through: Client,
    // Dropped in this order.
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

/// Import, the idle agent, and small requests over both paths.
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

/// The cost of the audit log for a request through the proxy: the same requests, alternately, to a
/// server that records and to one that does not.
///
/// # Errors
/// A part does not start, or a request fails.
pub fn measure_audit() -> Result<Vec<Row>> {
    let world = |log: &[&str]| -> Result<_> {
        let sim = Sim::start(&["--nodes", "1"])?;
        let flags = log.iter().map(|flag| (*flag).to_owned()).collect();
        let server = Server::start_with(Options { flags, ..Options::default() })?;
        let cli = Cli::admin(&server)?;
        let kubeconfig = sim.kubeconfig();
        let kubeconfig = kubeconfig.to_str().context("the path is no text")?;
        cli.succeed(&["cluster", "import", "simulated", "--kubeconfig", kubeconfig])?;
        let client = Client::of(&Kubeconfig::read(&cli.kubeconfig_file("simulated")?)?)?;
        Ok((client, server, sim))
    };
    let (on, off) = (world(&[])?, world(&["--audit-log-path", "none"])?);
    let log = on.1.data_dir().join("audit/audit.log");
    let before = std::fs::metadata(&log)?.len();
    let path = "/api/v1/namespaces/default";
    let (mut with, mut without) = (Samples::default(), Samples::default());
    let mut used = [0.0; 2];
    runtime().block_on(async {
        let mut one = on.0.connect().await?;
        let mut other = off.0.connect().await?;
        for _ in 0..SMALL_WARM_UP {
            one.measure(path).await?;
            other.measure(path).await?;
        }
        for _ in 0..AUDIT_ROUNDS {
            let turns = [(&mut one, &on.1, &mut with), (&mut other, &off.1, &mut without)];
            for ((connection, server, samples), used) in turns.into_iter().zip(&mut used) {
                let process = server.process_id().unwrap_or_default();
                let before = processor_time(process)?;
                for _ in 0..AUDIT_REQUESTS {
                    let since = Instant::now();
                    connection.measure(path).await?;
                    samples.push(since.elapsed());
                }
                *used += processor_time(process)? - before;
            }
        }
        anyhow::Ok(())
    })?;
    let requests = f64::from(AUDIT_ROUNDS * AUDIT_REQUESTS);
    #[expect(clippy::cast_precision_loss, reason = "a file of megabytes")]
    let bytes = (std::fs::metadata(&log)?.len() - before) as f64 / requests;
    let micros = used.map(|seconds| seconds * 1e6 / requests);
    let (with, without) = (with.percentile(50), without.percentile(50));
    let latency = (with - without) * 1e3;
    Ok(vec![
        Row::new(
            "audit of a proxied GET, processor time",
            micros[0] - micros[1],
            "µs",
            Target::Context,
        )
        .recorded(true)
        .note(format!(
            "server: with {:.0} µs, without {:.0} µs; {requests} GETs each, in turns",
            micros[0], micros[1]
        )),
        Row::new("audit of a proxied GET, latency added, p50", latency, "µs", Target::Context)
            .note(format!("with {with:.3} ms, without {without:.3} ms")),
        Row::new("audit of a proxied GET, on disk", bytes, "bytes", Target::Context),
    ])
}

/// Large lists over both paths.
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

/// Rows, and the megabytes that Drover carried.
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
        Row::new("bulk rate, through Drover", through, "MB/s", Target::Context).recorded(true),
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
