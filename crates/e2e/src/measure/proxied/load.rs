//! What is sent along a way, and how it fares. Everything runs for a time and counts what came
//! through.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::future::{try_join, try_join_all};
use http::Request;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::super::Samples;
use crate::http::{Connection, body, empty, runtime};
use crate::wait::pace;
use crate::{Client, Kubectl};

const MEGABYTE: f64 = 1e6;
/// What a slow reader takes at a time.
const SLOW_BYTES: usize = 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(200);

/// Small requests that ended in time.
pub(super) struct Small {
    pub(super) samples: Samples,
    pub(super) per_second: f64,
}

/// Megabytes (10^6 bytes) per second of a list that `connections` clients fetch again and again.
///
/// # Errors
/// A request fails.
pub(super) fn download(
    client: &Client,
    path: &str,
    connections: usize,
    time: Duration,
) -> Result<f64> {
    rate(client, connections, time, async |connection, until| {
        let mut bytes = 0;
        while Instant::now() < until {
            bytes += fetch(connection, path, until).await?;
        }
        Ok(bytes)
    })
}

/// As [`download`], of a body that the API server reads, evaluates and drops.
///
/// # Errors
/// A request fails.
pub(super) fn upload(
    client: &Client,
    path: &str,
    review: &Bytes,
    connections: usize,
    time: Duration,
) -> Result<f64> {
    rate(client, connections, time, async |connection, until| {
        let mut bytes = 0;
        while Instant::now() < until {
            let request = Request::post(path).header(CONTENT_TYPE, "application/json");
            let answer = connection.send(request.body(body(review.clone()))?).await?;
            ensure!(answer.status == 201, "{}: {}", answer.status, answer.text());
            bytes += review.len();
        }
        Ok(bytes)
    })
}

/// Small GETs, one after the other on each of `connections` connections.
///
/// # Errors
/// A request fails.
pub(super) fn small(
    client: &Client,
    path: &str,
    connections: usize,
    time: Duration,
) -> Result<Small> {
    runtime().block_on(async {
        let mut all = connect(client, connections).await?;
        for connection in &mut all {
            connection.measure(path).await?;
        }
        let began = Instant::now();
        let until = began + time;
        let each = all.iter_mut().map(|connection| small_on(connection, path, until));
        let samples: Samples = try_join_all(each).await?.into_iter().flatten().collect();
        Ok(Small { per_second: samples.len() as f64 / began.elapsed().as_secs_f64(), samples })
    })
}

/// Small GETs on one connection while `bulk` others download without a pause.
///
/// # Errors
/// A request fails.
pub(super) fn small_beside_bulk(
    client: &Client,
    path: &str,
    list: &str,
    bulk: usize,
    time: Duration,
) -> Result<Small> {
    runtime().block_on(async {
        let mut loaded = connect(client, bulk).await?;
        let mut quick = client.connect().await?;
        let began = Instant::now();
        let until = began + time;
        let mut loads = Vec::new();
        for mut connection in loaded.drain(..) {
            let list = list.to_owned();
            loads.push(tokio::spawn(async move {
                while Instant::now() < until {
                    fetch(&mut connection, &list, until).await?;
                }
                anyhow::Ok(())
            }));
        }
        let loads = async { try_join_all(loads).await?.into_iter().collect::<Result<()>>() };
        let ((), samples) = try_join(loads, small_on(&mut quick, path, until)).await?;
        let samples: Samples = samples.into_iter().collect();
        Ok(Small { per_second: samples.len() as f64 / began.elapsed().as_secs_f64(), samples })
    })
}

/// From the moment a change is sent to the API server, by the straight way, until a client that
/// watches has its event.
///
/// # Errors
/// A request fails, or the watch ends.
pub(super) fn watch(
    client: &Client,
    direct: &Client,
    collection: &str,
    name: &str,
    time: Duration,
) -> Result<Samples> {
    runtime().block_on(async {
        let mut watching = client.connect().await?;
        let mut changing = direct.connect().await?;
        let path = format!("{collection}?watch=true&fieldSelector=metadata.name%3D{name}");
        let response = watching.response(Request::get(path).body(empty())?).await?;
        ensure!(response.status() == 200, "the watch was answered by {}", response.status());
        let mut events = response.into_body();
        // As it is now.
        next_event(&mut events).await?;
        let mut samples = Samples::default();
        let until = Instant::now() + time;
        while Instant::now() < until {
            let change = json!({"data": {"number": samples.len().to_string()}});
            let request = Request::patch(format!("{collection}/{name}"))
                .header(CONTENT_TYPE, "application/merge-patch+json")
                .body(body(change.to_string()))?;
            let since = Instant::now();
            let changed = async {
                let answer = changing.send(request).await?;
                ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
                Ok(())
            };
            let seen = async {
                next_event(&mut events).await?;
                Ok(since.elapsed())
            };
            let ((), sample) = try_join(changed, seen).await?;
            samples.push(sample);
        }
        Ok(samples)
    })
}

async fn next_event(events: &mut Incoming) -> Result<()> {
    loop {
        let frame = events.frame().await.context("the watch ended")??;
        if frame.data_ref().is_some_and(|data| data.ends_with(b"\n")) {
            return Ok(());
        }
    }
}

/// Megabytes per second of `file` through `kubectl exec … cat`, each byte there and back; its start
/// is in the time.
///
/// # Errors
/// It fails, or not all came back.
pub(super) fn exec(kubectl: &Kubectl, pod: &str, file: &Path) -> Result<f64> {
    let length = fs::metadata(file)?.len();
    let since = Instant::now();
    let mut command = kubectl.command(["exec", "--stdin", pod, "--", "cat"]);
    command.stdin(File::open(file)?).stdout(Stdio::piped());
    let mut running = command.spawn().context("cannot start kubectl")?;
    let mut output = running.stdout.take().context("kubectl has no output")?;
    let back = io::copy(&mut output, &mut io::sink());
    let ended = running.wait()?;
    let back = back?;
    ensure!(ended.success() && back == length, "{ended}: {back} of {length} bytes came back");
    Ok(length as f64 / MEGABYTE / since.elapsed().as_secs_f64())
}

/// Lists that `readers` clients take [`SLOW_BYTES`] of now and then; `look` is called meanwhile,
/// again and again. Gives how many of the answers broke off.
///
/// # Errors
/// A connection is not made, or `look` fails.
pub(super) fn slow_readers(
    client: &Client,
    path: &str,
    readers: usize,
    time: Duration,
    mut look: impl FnMut() -> Result<()>,
) -> Result<usize> {
    runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..readers {
            let mut connection = client.handshake().await?;
            connection.write_all(client.head(path).as_bytes()).await?;
            tasks.spawn(async move {
                let mut some = vec![0; SLOW_BYTES];
                while connection.read_exact(&mut some).await.is_ok() {
                    pace(SLOW_PAUSE).await;
                }
            });
        }
        let until = Instant::now() + time;
        while Instant::now() < until {
            look()?;
            pace(SLOW_PAUSE).await;
        }
        let mut broken = 0;
        while tasks.try_join_next().is_some() {
            broken += 1;
        }
        Ok(broken)
    })
}

async fn small_on(
    connection: &mut Connection,
    path: &str,
    until: Instant,
) -> Result<Vec<Duration>> {
    let mut samples = Vec::new();
    while Instant::now() < until {
        let since = Instant::now();
        connection.measure(path).await?;
        samples.push(since.elapsed());
    }
    Ok(samples)
}

fn rate(
    client: &Client,
    connections: usize,
    time: Duration,
    load: impl AsyncFn(&mut Connection, Instant) -> Result<usize>,
) -> Result<f64> {
    runtime().block_on(async {
        let mut all = connect(client, connections).await?;
        let began = Instant::now();
        let each = all.iter_mut().map(|connection| load(connection, began + time));
        let bytes: usize = try_join_all(each).await?.into_iter().sum();
        Ok(bytes as f64 / MEGABYTE / began.elapsed().as_secs_f64())
    })
}

async fn connect(client: &Client, connections: usize) -> Result<Vec<Connection>> {
    try_join_all((0..connections).map(|_| client.connect())).await
}

/// Bytes of an answer that came before `until`. A connection whose answer was not read to its end
/// is not to be used again.
async fn fetch(connection: &mut Connection, path: &str, until: Instant) -> Result<usize> {
    // Go's transports request gzip by default, and then carry less than the client receives.
    let request = Request::get(path).header(ACCEPT_ENCODING, "identity").body(empty())?;
    let response = connection.response(request).await?;
    ensure!(response.status() == 200, "'{path}' was answered by {}", response.status());
    let mut answer = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = answer.frame().await {
        let frame = frame.context("the answer broke off")?;
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if Instant::now() >= until {
            break;
        }
    }
    Ok(bytes)
}
