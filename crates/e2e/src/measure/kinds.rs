//! Lists of `/v1`: one kind with very many objects in a cluster of real Kubernetes components, and
//! one question over very many simulated clusters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::RealCluster;
use tokio::time::interval;

use super::apiserver::load::with_body;
use super::fleet::import_all;
use super::{Row, Samples, Target, settled_memory};
use crate::http::{Connection, empty, runtime};
use crate::journey::{self, ImportTarget};
use crate::{Cli, Client, Kubeconfig, Protocol, Server, Sim, poll_until};

const OBJECTS: usize = 100_000;
/// Clients that create the objects.
const CLIENTS: usize = 16;
/// Distinct values of the field that is filtered by.
const COLORS: usize = 53;
const ROUNDS: usize = 200;
const PAGE_MAX_MILLIS: f64 = 50.0;
const FIRST_TIMEOUT: Duration = Duration::from_secs(120);
const CHANGES_PER_SECOND: u64 = 50;
/// Objects whose age is measured while others change.
const PROBES: usize = 200;
const AGE_MAX_MILLIS: f64 = 1_000.0;
const LISTS: [(&str, &str); 5] = [
    ("first page", "pagesize=100"),
    ("filter", "pagesize=100&filter=data.color='color-7'"),
    ("sort", "pagesize=100&sort=-data.rank"),
    ("filter and sort", "pagesize=100&filter=data.color!='color-7'&sort=data.rank"),
    ("page in the middle", "pagesize=100&page=500&sort=data.rank"),
];

const CLUSTERS: usize = 300;
/// Clusters that are away in the second half.
const AWAY: usize = 10;
const FLEET_ROUNDS: usize = 50;
const QUESTION: &str = "/v1/configmaps?clusters=*&sort=metadata.name&pagesize=100";

/// Both.
///
/// # Errors
/// A part does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let mut rows = many_objects()?;
    rows.extend(many_clusters()?);
    Ok(rows)
}

fn many_objects() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let cluster = RealCluster::start()?;
    let target = ImportTarget::of(&cluster)?;
    let imported = journey::import(&server, &Cli::admin(&server)?, "large", &target)?;
    let direct = Client::of(&Kubeconfig::read(&cluster.kubeconfig_path())?)?;
    let direct = direct.over(Protocol::Http2);
    runtime().block_on(fill(&direct))?;
    let admin = server.admin()?.over(Protocol::Http2);
    let path = format!("/k8s/clusters/{}/v1/configmaps", imported.id);
    let before = settled_memory(process)?;

    let since = Instant::now();
    // Beyond what one list reads, so it waits for the index.
    poll_until(FIRST_TIMEOUT, Duration::from_millis(100), || {
        let page = admin.get(&format!("{path}?{}", LISTS[0].1))?.success()?;
        ensure!(page["count"].as_u64() >= Some(OBJECTS as u64), "{}", page["count"]);
        Ok(())
    })?;
    let first = since.elapsed().as_secs_f64();
    let mut rows = vec![
        Row::new(format!("first list of {OBJECTS} objects"), first, "s", Target::Context)
            .recorded(true)
            .note("the index is built meanwhile"),
    ];
    for (what, query) in &LISTS[1..] {
        let took = runtime().block_on(time(&admin, &format!("{path}?{query}"), 1))?.median();
        rows.push(
            Row::new(format!("{what}, first time"), took, "ms", Target::Context)
                .note("the column and the order are made"),
        );
    }
    for (what, query) in LISTS {
        let took = runtime().block_on(time(&admin, &format!("{path}?{query}"), ROUNDS))?;
        rows.push(
            Row::new(
                format!("{what} of {OBJECTS}: p99"),
                took.percentile(99),
                "ms",
                Target::AtMost(PAGE_MAX_MILLIS),
            )
            .note(format!("100 objects, p50 {:.1} ms, {ROUNDS} times", took.median())),
        );
    }
    let after = settled_memory(process)?;
    rows.push(
        Row::new("memory with the index", after, "MB", Target::Context)
            .recorded(true)
            .note(format!("{before:.0} MB before the first list")),
    );
    let ages = runtime().block_on(ages(&direct, &admin, &path))?;
    rows.push(
        Row::new("age of a row: p99", ages.percentile(99), "ms", Target::AtMost(AGE_MAX_MILLIS))
            .note(format!(
                "{CHANGES_PER_SECOND} changes a second; p50 {:.1} ms, {PROBES} objects",
                ages.median()
            )),
    );
    Ok(rows)
}

fn name(number: usize) -> String {
    format!("c{number:06}")
}

fn config_map(number: usize, stamp: &str) -> Value {
    // In an order that is not that of the names.
    let rank = number * 7_919 % OBJECTS;
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": name(number),
            "labels": {"app.kubernetes.io/name": format!("app-{}", number % 20),
                "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": format!("release-{}", number % 400)}},
        "data": {"color": format!("color-{}", rank % COLORS), "rank": format!("{rank:06}"),
            "stamp": stamp, "config.yaml": settings(rank)},
    })
}

/// About a kilobyte.
fn settings(rank: usize) -> String {
    let line = |key: usize| format!("setting-{key}: {}\n", rank.wrapping_mul(key + 31) % 9_973);
    (0..50).map(line).collect()
}

async fn fill(direct: &Client) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut makers = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut connection, next) = (direct.connect().await?, next.clone());
        makers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= OBJECTS {
                    return anyhow::Ok(());
                }
                let path = "/api/v1/namespaces/default/configmaps";
                let body = config_map(number, "");
                connection.send(with_body(Method::POST, path, &body)?).await?.success()?;
            }
        });
    }
    while let Some(maker) = makers.join_next().await {
        maker??;
    }
    Ok(())
}

/// Times of a list on one connection. The response must have objects.
async fn time(client: &Client, path: &str, rounds: usize) -> Result<Samples> {
    let mut connection = client.connect().await?;
    let mut took = Samples::default();
    for _ in 0..rounds {
        let since = Instant::now();
        let page = list(&mut connection, path).await?;
        took.push(since.elapsed());
        ensure!(page["data"][0].is_object(), "an empty page of {path}");
    }
    Ok(took)
}

async fn list(connection: &mut Connection, path: &str) -> Result<Value> {
    connection.send(Request::get(path).body(empty())?).await?.success()
}

/// Times from the response to a change until a list has it, while other objects change.
async fn ages(direct: &Client, admin: &Client, path: &str) -> Result<Samples> {
    let ended = Arc::new(AtomicBool::new(false));
    let changer = tokio::spawn(change(direct.connect().await?, ended.clone()));
    let (mut writer, mut reader) = (direct.connect().await?, admin.connect().await?);
    let mut ages = Samples::default();
    for probe in 0..PROBES {
        let stamp = format!("probe-{probe}");
        put(&mut writer, probe, &stamp).await?;
        let since = Instant::now();
        let query = format!("{path}?pagesize=1&filter=data.stamp='{stamp}'");
        while list(&mut reader, &query).await?["count"] != 1 {
            ensure!(since.elapsed() < FIRST_TIMEOUT, "the change is in no list");
        }
        ages.push(since.elapsed());
    }
    ended.store(true, Ordering::Relaxed);
    changer.await??;
    Ok(ages)
}

/// Changes other objects, [`CHANGES_PER_SECOND`].
async fn change(mut connection: Connection, ended: Arc<AtomicBool>) -> Result<()> {
    let mut pace = interval(Duration::from_millis(1_000 / CHANGES_PER_SECOND));
    for number in PROBES.. {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        pace.tick().await;
        put(&mut connection, PROBES + number % (OBJECTS - PROBES), "changed").await?;
    }
    Ok(())
}

async fn put(connection: &mut Connection, number: usize, stamp: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/default/configmaps/{}", name(number));
    let request = with_body(Method::PUT, &path, &config_map(number, stamp))?;
    connection.send(request).await?.success().map(drop)
}

fn many_clusters() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let cli = Cli::admin(&server)?;
    let (staying, leaving) = ((CLUSTERS - AWAY).to_string(), AWAY.to_string());
    let sim = Sim::start(&["--clusters", &staying, "--nodes", "1"])?;
    let away = Sim::start(&["--clusters", &leaving, "--nodes", "1"])?;
    for (index, sim) in [&sim, &away].into_iter().enumerate() {
        import_all(&cli, &format!("sim-{index}"), &sim.kubeconfigs()?)?;
    }
    let admin = server.admin()?.over(Protocol::Http2);
    let before = settled_memory(process)?;
    let first = runtime().block_on(time(&admin, QUESTION, 1))?.median();
    poll_until(FIRST_TIMEOUT, Duration::from_secs(1), || {
        let page = admin.get(QUESTION)?.success()?;
        ensure!(page["unavailable"] == json!([]), "{}", page["unavailable"]);
        Ok(())
    })?;
    let took = runtime().block_on(time(&admin, QUESTION, FLEET_ROUNDS))?;
    let after = settled_memory(process)?;
    drop(away);
    poll_until(FIRST_TIMEOUT, Duration::from_secs(1), || {
        let page = admin.get(QUESTION)?.success()?;
        let unavailable = page["unavailable"].as_array().map_or(0, Vec::len);
        ensure!(unavailable == AWAY, "{unavailable} are away");
        Ok(())
    })?;
    let without = runtime().block_on(time(&admin, QUESTION, FLEET_ROUNDS))?;
    let what = |text: &str| format!("one question over {CLUSTERS} clusters, {text}");
    let note =
        |took: &Samples| format!("100 objects, p50 {:.0} ms, {FLEET_ROUNDS} times", took.median());
    Ok(vec![
        Row::new(what("first time"), first, "ms", Target::Context),
        Row::new(what("p99"), took.percentile(99), "ms", Target::Context)
            .recorded(true)
            .note(note(&took)),
        Row::new(what("ten of them away, p99"), without.percentile(99), "ms", Target::Context)
            .recorded(true)
            .note(note(&without)),
        Row::new(what("memory"), after, "MB", Target::Context)
            .recorded(true)
            .note(format!("{before:.0} MB before")),
    ])
}
