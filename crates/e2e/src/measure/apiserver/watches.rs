//! Many watchers of one collection, and many informers that start at once.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::JoinSet;

use super::super::{Row, Target};
use super::load::{self, with_body};
use super::side::{Both, Side};
use crate::Client;
use crate::http::{Connection, runtime};

const NAMESPACE: &str = "watched";
const OBJECT: &str = "/api/v1/namespaces/watched/configmaps/changing";
const WATCHERS: [usize; 3] = [100, 1_000, 10_000];
/// Changes that every watcher receives.
const EVENTS: usize = 20;
/// Streams of one connection; Go's server takes 250 by default.
const STREAMS: usize = 100;
const WATCHER_MAX_KILOBYTES: f64 = 4.0;
const INFORMERS: usize = 500;
/// Annotation at the end of the initial events.
const END_OF_INITIAL: &[u8] = b"k8s.io/initial-events-end";

/// The results of a number of watchers.
struct FanOut {
    per_second: f64,
    processor_micros: f64,
    kilobytes: f64,
}

/// Watchers that all receive the same changes.
pub fn fan_out(both: &Both) -> Result<Vec<Row>> {
    both.each("an object to watch", |side| {
        load::create_namespace(side, NAMESPACE)?;
        let body = json!({"metadata": {"name": "changing"}});
        let path = "/api/v1/namespaces/watched/configmaps";
        side.client.post(path, &body)?.success()
    })?;
    let mut rows = Vec::new();
    for number in WATCHERS {
        let what = format!("{number} watchers");
        let [drover, peer] =
            both.each(&what, |side| runtime().block_on(watch_changes(side, number)))?;
        let row = |what: &str, unit: &str, read: fn(&FanOut) -> f64| {
            Both::row(what, unit, Target::Context, read(&drover), read(&peer))
        };
        rows.push(row(&format!("events to {what}"), "/s", |one| one.per_second));
        let what = format!("processor time of an event to one of {what}");
        rows.push(row(&what, "µs", |one| one.processor_micros));
        let target = Target::AtMost(WATCHER_MAX_KILOBYTES);
        let what = format!("memory of each of {number} watchers");
        rows.push(Row::new(what, drover.kilobytes, "KB", target).note(format!(
            "kube-apiserver + etcd {:.1} KB; {STREAMS} streams a connection, TLS included",
            peer.kilobytes
        )));
    }
    Ok(rows)
}

async fn watch_changes(side: &Side, number: usize) -> Result<FanOut> {
    let mut writer = side.client.connect().await?;
    let from = change(&mut writer, 0).await?;
    let path =
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps?watch=true&resourceVersion={from}");
    let memory = side.memory()?;
    let mut connections = Vec::new();
    let watches = open(&side.client, &path, number, &mut connections).await?;
    let kilobytes = (side.memory()? - memory) * 1024.0 / as_float(number);
    let processor = side.processor_time()?;
    let since = Instant::now();
    let mut readers = JoinSet::new();
    for body in watches {
        readers.spawn(read_until(body, Seen::lines(EVENTS)));
    }
    for round in 1..=EVENTS {
        change(&mut writer, round).await?;
    }
    while let Some(reader) = readers.join_next().await {
        reader??;
    }
    let deliveries = as_float(number * EVENTS);
    Ok(FanOut {
        per_second: deliveries / since.elapsed().as_secs_f64(),
        processor_micros: (side.processor_time()? - processor) / deliveries * 1e6,
        kilobytes,
    })
}

/// Informers that start at the same moment, each with the whole of [`load::NAMESPACE`].
pub fn informers_at_once(both: &Both) -> Result<Vec<Row>> {
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?watch=true&sendInitialEvents=true\
         &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=rare",
        load::NAMESPACE
    );
    let everything = path.replace("&labelSelector=rare", "");
    let selected = load::OBJECTS / load::LABELLED_EVERY;
    Ok(vec![
        both.ratio(
            &format!("{INFORMERS} informers start at once, {selected} objects each"),
            "ms",
            Target::Context,
            |side| runtime().block_on(start_informers(side, &path, INFORMERS)),
        )?,
        both.ratio(
            &format!("{} informers start at once, {} objects each", INFORMERS / 10, load::OBJECTS),
            "ms",
            Target::Context,
            |side| runtime().block_on(start_informers(side, &everything, INFORMERS / 10)),
        )?,
    ])
}

/// Milliseconds until the last has everything.
async fn start_informers(side: &Side, path: &str, number: usize) -> Result<f64> {
    let since = Instant::now();
    let mut connections = Vec::new();
    let mut readers = JoinSet::new();
    for body in open(&side.client, path, number, &mut connections).await? {
        readers.spawn(read_until(body, Seen::mark(END_OF_INITIAL)));
    }
    while let Some(reader) = readers.join_next().await {
        reader??;
    }
    Ok(since.elapsed().as_secs_f64() * 1e3)
}

/// Opens `number` watches; they end with `connections`.
pub async fn open(
    client: &Client,
    path: &str,
    number: usize,
    connections: &mut Vec<Connection>,
) -> Result<Vec<Incoming>> {
    let mut opening = JoinSet::new();
    for first in (0..number).step_by(STREAMS) {
        let (client, path) = (client.clone(), path.to_owned());
        opening.spawn(async move {
            let mut connection = client.connect().await?;
            let mut bodies = Vec::new();
            for _ in first..number.min(first + STREAMS) {
                let response = connection.stream(&path).await?;
                ensure!(response.status() == StatusCode::OK, "a watch: {}", response.status());
                bodies.push(response.into_body());
            }
            anyhow::Ok((connection, bodies))
        });
    }
    let mut all = Vec::new();
    while let Some(opened) = opening.join_next().await {
        let (connection, bodies) = opened??;
        connections.push(connection);
        all.extend(bodies);
    }
    Ok(all)
}

/// The version after the change.
async fn change(writer: &mut Connection, round: usize) -> Result<String> {
    let body = json!({
        "metadata": {"name": "changing"},
        "data": {"round": round.to_string(), "filling": "x".repeat(1024)},
    });
    let answer = writer.send(with_body(Method::PUT, OBJECT, &body)?).await?;
    let object = answer.success()?;
    Ok(object["metadata"]["resourceVersion"].as_str().context("no version")?.to_owned())
}

/// The condition that a watcher waits for.
enum Seen {
    Lines { remaining: usize },
    Mark { mark: &'static [u8], tail: Vec<u8> },
}

impl Seen {
    fn lines(remaining: usize) -> Self {
        Self::Lines { remaining }
    }

    fn mark(mark: &'static [u8]) -> Self {
        Self::Mark { mark, tail: Vec::new() }
    }

    /// Whether the condition holds after `chunk`.
    fn with(&mut self, chunk: &Bytes) -> bool {
        match self {
            Self::Lines { remaining } => {
                let lines = chunk.iter().filter(|byte| **byte == b'\n').count();
                *remaining = remaining.saturating_sub(lines);
                *remaining == 0
            }
            Self::Mark { mark, tail } => {
                // It may be split across two chunks.
                tail.extend_from_slice(chunk);
                let found = tail.windows(mark.len()).any(|window| window == *mark);
                tail.drain(..tail.len().saturating_sub(mark.len()));
                found
            }
        }
    }
}

async fn read_until(mut body: Incoming, mut seen: Seen) -> Result<()> {
    while let Some(frame) = body.frame().await {
        if frame?.data_ref().is_some_and(|chunk| seen.with(chunk)) {
            return Ok(());
        }
    }
    anyhow::bail!("a watch ended early")
}

#[expect(clippy::cast_precision_loss, reason = "some hundred thousands")]
fn as_float(number: usize) -> f64 {
    number as f64
}
