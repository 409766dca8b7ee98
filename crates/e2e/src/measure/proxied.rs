//! The way of every request to a downstream cluster, beside the ways that people have without
//! Drover: all lead to the same API server, are used by the same client, and take turns in one run.

mod floor;
mod load;
pub mod long_way;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::json;

use self::load::Small;
use self::world::{DIRECT, DROVER, REMOTEDIALER, Way, World};
use super::{Row, Samples, Target, memory, rounded};
use crate::http::{body, runtime};
use crate::wait::{LOOK_INTERVAL, SETTLE_TIMEOUT};
use crate::{Client, poll_until};

/// Each way has one turn in each round.
const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_secs(2);
const BULK_OBJECTS: usize = 38;
const BULK_OBJECT_BYTES: usize = 900_000;
/// Of a list that slow readers take.
const SLOW_OBJECTS: usize = 5;
const SLOW_READERS: usize = 200;
const SLOW_TIME: Duration = Duration::from_secs(15);
const BULK_CONNECTIONS: [usize; 2] = [1, 4];
const SMALL_CONNECTIONS: [usize; 2] = [1, 32];
const REVIEW_BYTES: usize = 2_000_000;

/// Each byte comes back.
const EXEC_BYTES: u64 = 64_000_000;
const EXEC_ROUNDS: usize = 3;

const POD: &str = "box";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SMALL: &str = "/api/v1/namespaces/default/configmaps/small";
const LIST: &str = "/api/v1/namespaces/bulk/configmaps";
const SLOW_LIST: &str = "/api/v1/namespaces/slow/configmaps";
const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

const BULK_RATIO: f64 = 1.5;
const SMALL_RATIO: f64 = 1.2;
const BESIDE_RATIO: f64 = 0.7;
const BESIDE_P99_MILLIS: f64 = 5.0;
const OF_DIRECT: f64 = 0.6;
const ADDED_P99_MILLIS: f64 = 1.0;

/// Bulk down and up, small calls, small calls beside bulk, watches, and `exec`.
///
/// # Errors
/// A part does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let mut rows = floor_rows()?;
    rows.extend(loopback_rows()?);
    Ok(rows)
}

fn floor_rows() -> Result<Vec<Row>> {
    let bulk: Vec<f64> = (0..ROUNDS).map(|_| floor::bulk(TURN)).collect::<Result<_>>()?;
    let calls = floor::calls(TURN)?;
    let what = "floor of three hops of TLS";
    Ok(vec![
        Row::new(format!("{what}, bulk"), median(bulk.clone()), "MB/s", Target::Context)
            .note(span(&bulk)),
        Row::new(format!("{what}, a small call, p50"), calls.median(), "ms", Target::Context)
            .note(format!("p99 {:.2} ms", calls.percentile(99))),
    ])
}

fn loopback_rows() -> Result<Vec<Row>> {
    let world = World::start(None)?;
    fill(&world.direct)?;
    let review = review();
    let mut rows = Vec::new();
    for connections in BULK_CONNECTIONS {
        let down =
            in_turns(&world, ROUNDS, |way| load::download(&way.client, LIST, connections, TURN))?;
        rows.extend(bulk_rows("down", connections, &down, Target::AtLeast(BULK_RATIO)));
        rows.extend(memory_after(&world, &format!("bulk down, {connections} connections"))?);
        let up = in_turns(&world, ROUNDS, |way| {
            load::upload(&way.client, REVIEW, &review, connections, TURN)
        })?;
        rows.extend(bulk_rows("up", connections, &up, Target::AtLeast(BULK_RATIO)));
        rows.extend(memory_after(&world, &format!("bulk up, {connections} connections"))?);
    }
    for connections in SMALL_CONNECTIONS {
        let small =
            in_turns(&world, ROUNDS, |way| load::small(&way.client, SMALL, connections, TURN))?;
        let what = format!("GET, {connections} connections");
        rows.extend(small_rows(&what, &small));
        rows.extend(memory_after(&world, &what)?);
    }
    let beside =
        in_turns(&world, ROUNDS, |way| load::small_beside_bulk(&way.client, SMALL, LIST, 4, TURN))?;
    rows.extend(beside_rows(&beside));
    let watched = in_turns(&world, ROUNDS, |way| {
        load::watch(&way.client, &world.direct, CONFIG_MAPS, "small", TURN)
    })?;
    rows.extend(watch_rows(&watched));
    rows.extend(memory_after(&world, "a watch")?);
    rows.extend(exec(&world)?);
    rows.extend(memory_after(&world, "exec")?);
    rows.extend(slow_readers(&world)?);
    Ok(rows)
}

/// Bytes that go into a pod and come back. A way on which they do not has no rate, and says why.
fn exec(world: &World) -> Result<Vec<Row>> {
    let input = tempfile::NamedTempFile::new()?;
    input.as_file().set_len(EXEC_BYTES)?;
    let mut rows = Vec::new();
    for way in &world.ways {
        let Some(kubectl) = &way.kubectl else { continue };
        let rate = |_| load::exec(kubectl, POD, input.path());
        let rates: Result<Vec<f64>> = (0..EXEC_ROUNDS).map(rate).collect();
        let (rate, note) = match rates {
            Ok(rates) => (median(rates.clone()), span(&rates)),
            Err(error) => (f64::NAN, format!("it broke off: {error:#}")),
        };
        let what = format!("there and back through exec, {}", way.name);
        rows.push(Row::new(what, rate, "MB/s", Target::Context).note(note));
    }
    Ok(rows)
}

/// What the processes of the ways through a tunnel hold after a load.
fn memory_after(world: &World, load: &str) -> Result<Vec<Row>> {
    let tunnels = world.ways.iter().filter(|way| [REMOTEDIALER, DROVER].contains(&way.name));
    let row = |way: &Way| {
        let mut all = 0.0;
        let mut each = Vec::new();
        for (name, process) in &way.processes {
            let memory = memory(*process)?;
            all += memory;
            each.push(format!("{name} {memory:.0} MB"));
        }
        let what = format!("memory after {load}, {}", way.name);
        Ok(Row::new(what, all, "MB", Target::Context).note(each.join(", ")))
    };
    tunnels.map(row).collect()
}

/// The most memory that the processes of a way take while many clients hardly read.
fn slow_readers(world: &World) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for way in world.ways.iter().filter(|way| [REMOTEDIALER, DROVER].contains(&way.name)) {
        let mut most = vec![0.0_f64; way.processes.len()];
        let before: f64 =
            way.processes.iter().map(|(_, process)| memory(*process)).sum::<Result<_>>()?;
        let broken = load::slow_readers(&way.client, SLOW_LIST, SLOW_READERS, SLOW_TIME, || {
            for ((_, process), most) in way.processes.iter().zip(&mut most) {
                *most = most.max(memory(*process)?);
            }
            Ok(())
        })
        .context(way.name)?;
        let each = way.processes.iter().zip(&most);
        let each: Vec<String> =
            each.map(|((name, _), most)| format!("{name} {most:.0} MB")).collect();
        let most: f64 = most.iter().sum();
        let what = format!("memory with {SLOW_READERS} slow readers, {}", way.name);
        let row = Row::new(what, most, "MB", Target::Context).recorded(way.name == DROVER);
        rows.push(row.note(format!(
            "{}; {before:.0} MB before; {broken} answers broke off",
            each.join(", ")
        )));
    }
    Ok(rows)
}

/// What each way gave, in the order of the ways.
type Turns<T> = Vec<(&'static str, Vec<T>)>;

fn in_turns<T>(
    world: &World,
    rounds: usize,
    mut turn: impl FnMut(&Way) -> Result<T>,
) -> Result<Turns<T>> {
    let mut turns: Turns<T> = world.ways.iter().map(|way| (way.name, Vec::new())).collect();
    for _ in 0..rounds {
        for (way, (name, found)) in world.ways.iter().zip(&mut turns) {
            found.push(turn(way).with_context(|| *name)?);
        }
    }
    Ok(turns)
}

fn of<T, R>(turns: &Turns<T>, name: &str, value: impl Fn(&T) -> R) -> Vec<R> {
    let found = turns.iter().find(|(way, _)| *way == name);
    found.map(|(_, found)| found.iter().map(value).collect()).unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn span(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{}–{}, median of {}", rounded(least), rounded(most), values.len())
}

fn bulk_rows(what: &str, connections: usize, turns: &Turns<f64>, ratio: Target) -> Vec<Row> {
    let rate = |name: &str| median(of(turns, name, |rate| *rate));
    let mut rows: Vec<Row> = turns
        .iter()
        .map(|(name, rates)| {
            let what = format!("bulk {what}, {connections} connections, {name}");
            Row::new(what, median(rates.clone()), "MB/s", Target::Context)
                .recorded(*name == DROVER)
                .note(span(rates))
        })
        .collect();
    for (other, target) in [(REMOTEDIALER, ratio), (DIRECT, Target::AtLeast(OF_DIRECT))] {
        let what = format!("bulk {what}, {connections} connections, to {other}");
        rows.push(Row::new(what, rate(DROVER) / rate(other), "×", target));
    }
    rows
}

fn small_rows(what: &str, turns: &Turns<Small>) -> Vec<Row> {
    let number = |name: &str| median(of(turns, name, |small| small.per_second));
    let mut rows = Vec::new();
    for (name, found) in turns {
        let all: Vec<f64> = found.iter().map(|small| small.per_second).collect();
        let row = Row::new(format!("{what}, {name}"), number(name), "/s", Target::Context);
        rows.push(row.recorded(*name == DROVER).note(format!(
            "{}; p50 {:.2} ms, p99 {:.2} ms",
            span(&all),
            percentile(turns, name, 50),
            percentile(turns, name, 99)
        )));
    }
    let ratio = number(DROVER) / number(REMOTEDIALER);
    let p50 = percentile(turns, REMOTEDIALER, 50) / percentile(turns, DROVER, 50);
    let added = percentile(turns, DROVER, 99) - percentile(turns, DIRECT, 99);
    rows.push(Row::new(
        format!("{what}, number to {REMOTEDIALER}"),
        ratio,
        "×",
        Target::AtLeast(SMALL_RATIO),
    ));
    rows.push(
        Row::new(format!("{what}, p50 to {REMOTEDIALER}"), p50, "×", Target::AtLeast(SMALL_RATIO))
            .note("theirs divided by ours"),
    );
    rows.push(Row::new(
        format!("{what}, p99 added to {DIRECT}"),
        added,
        "ms",
        Target::AtMost(ADDED_P99_MILLIS),
    ));
    rows
}

fn beside_rows(turns: &Turns<Small>) -> Vec<Row> {
    let what = "GET beside 4 bulk lists";
    let mut rows: Vec<Row> = turns
        .iter()
        .map(|(name, found)| {
            let all: Vec<f64> = found.iter().map(|small| small.per_second).collect();
            Row::new(
                format!("{what}, p50, {name}"),
                percentile(turns, name, 50),
                "ms",
                Target::Context,
            )
            .note(format!(
                "p99 {:.2} ms; {} /s",
                percentile(turns, name, 99),
                span(&all)
            ))
        })
        .collect();
    let ratio = percentile(turns, DROVER, 50) / percentile(turns, REMOTEDIALER, 50);
    rows.push(Row::new(
        format!("{what}, p50 to {REMOTEDIALER}"),
        ratio,
        "×",
        Target::AtMost(BESIDE_RATIO),
    ));
    let p99 = percentile(turns, DROVER, 99);
    rows.push(Row::new(format!("{what}, p99"), p99, "ms", Target::AtMost(BESIDE_P99_MILLIS)));
    rows
}

fn watch_rows(turns: &Turns<Samples>) -> Vec<Row> {
    let after = |name: &str, percent| median(of(turns, name, |found| found.percentile(percent)));
    let what = "from a change to the event of a watch";
    let mut rows: Vec<Row> = turns
        .iter()
        .map(|(name, _)| {
            let row =
                Row::new(format!("{what}, p50, {name}"), after(name, 50), "ms", Target::Context);
            row.note(format!("p99 {:.2} ms", after(name, 99)))
        })
        .collect();
    let added = after(DROVER, 99) - after(DIRECT, 99);
    rows.push(Row::new(
        format!("{what}, p99 added to {DIRECT}"),
        added,
        "ms",
        Target::AtMost(ADDED_P99_MILLIS),
    ));
    rows
}

/// Median over the rounds, in milliseconds.
fn percentile(turns: &Turns<Small>, name: &str, percent: usize) -> f64 {
    median(of(turns, name, |small| small.samples.percentile(percent)))
}

fn fill(direct: &Client) -> Result<()> {
    let small = json!({"metadata": {"name": "small"}, "data": {"x": "x".repeat(700)}});
    direct.post(CONFIG_MAPS, &small)?.success()?;
    let container = json!({"name": "main", "image": "box", "command": ["sh"], "stdin": true});
    let pod = json!({"metadata": {"name": POD}, "spec": {"containers": [container]}});
    direct.post(PODS, &pod)?.success()?;
    poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || {
        let pod = direct.get(&format!("{PODS}/{POD}"))?.success()?;
        ensure!(pod["status"]["phase"] == "Running", "{}", pod["status"]);
        Ok(())
    })?;
    fill_namespace(direct, "bulk", BULK_OBJECTS)?;
    fill_namespace(direct, "slow", SLOW_OBJECTS)
}

fn fill_namespace(direct: &Client, name: &str, objects: usize) -> Result<()> {
    direct.post("/api/v1/namespaces", &json!({"metadata": {"name": name}}))?.success()?;
    let filling = "x".repeat(BULK_OBJECT_BYTES);
    runtime().block_on(async {
        // Only one, since each starts slowly over a long way.
        let mut connection = direct.connect().await?;
        for number in 0..objects {
            let object =
                json!({"metadata": {"name": format!("bulk-{number}")}, "data": {"x": filling}});
            let request = Request::post(format!("/api/v1/namespaces/{name}/configmaps"))
                .header(CONTENT_TYPE, "application/json")
                .body(body(object.to_string()))?;
            connection.send(request).await?.success()?;
        }
        Ok(())
    })
}

/// A request of [`REVIEW_BYTES`], nearly all of it white space, so that the response is short.
fn review() -> Bytes {
    let attributes = json!({"verb": "get", "resource": "pods", "name": "small"});
    let review = json!({"spec": {"resourceAttributes": attributes}}).to_string();
    Bytes::from(format!("{}{review}", " ".repeat(REVIEW_BYTES - review.len())))
}
