//! Many clients that create, read and replace objects as fast as the server responds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::super::{Row, Samples, Target};
use super::side::{Both, Side};
use crate::http::{Body, Connection, empty, runtime};

/// The namespace of these measurements.
pub const NAMESPACE: &str = "load";
pub const OBJECTS: usize = 10_000;
const CLIENTS: usize = 64;
const READS: usize = 30_000;
const WRITE_RATIO_MIN: f64 = 3.0;
/// Padding that makes an object 1 KiB.
const FILLING_BYTES: usize = 1024;
/// One object in this many has the label that selectors request.
pub const LABELLED_EVERY: usize = 100;

/// The request with a number.
type BuildRequest = fn(usize) -> Result<Request<Body>>;

/// The results of one kind of request.
struct Load {
    per_second: f64,
    took: Samples,
    /// Processor time of the server per request.
    processor_micros: f64,
}

/// Creates, replaces and reads.
pub fn writes_and_reads(both: &Both) -> Result<Vec<Row>> {
    both.each("namespace", |side| create_namespace(side, NAMESPACE))?;
    let kinds: [(&str, usize, Target, BuildRequest); 3] = [
        ("create", OBJECTS, Target::AtLeast(WRITE_RATIO_MIN), |number| creation(NAMESPACE, number)),
        ("update", OBJECTS, Target::AtLeast(WRITE_RATIO_MIN), replacement),
        ("get", READS, Target::Context, |number| {
            Ok(Request::builder().uri(path_of(number % OBJECTS)).body(empty())?)
        }),
    ];
    let mut rows = Vec::new();
    for (what, number, target, request) in kinds {
        let [drover, peer] = both.each(what, |side| run(side, number, request))?;
        let what = format!("{what}, {CLIENTS} clients");
        let row = Both::row(&what, "/s", target, drover.per_second, peer.per_second);
        let p99 = format!(
            "; p99 {:.1} and {:.1} ms",
            drover.took.percentile(99),
            peer.took.percentile(99)
        );
        let note = row.note.clone() + &p99;
        rows.push(row.note(note));
        let what = format!("{what}: processor time of the server");
        let (drover, peer) = (drover.processor_micros, peer.processor_micros);
        rows.push(Both::row(&what, "µs", Target::Context, drover, peer));
    }
    Ok(rows)
}

/// Creates `number` objects of 1 KiB on both sides.
pub fn fill(both: &Both, namespace: &'static str, number: usize) -> Result<()> {
    both.each("filling", |side| {
        create_namespace(side, namespace)?;
        run(side, number, move |number| creation(namespace, number))
    })?;
    Ok(())
}

/// Creates a namespace on one side.
///
/// # Errors
/// The request fails, for example because the namespace exists.
pub fn create_namespace(side: &Side, name: &str) -> Result<()> {
    let body = json!({"metadata": {"name": name}});
    side.client.post("/api/v1/namespaces", &body)?.success()?;
    Ok(())
}

fn run(
    side: &Side,
    number: usize,
    request: impl Fn(usize) -> Result<Request<Body>> + Copy + Send + 'static,
) -> Result<Load> {
    runtime().block_on(async {
        let mut connections = Vec::new();
        for _ in 0..CLIENTS {
            connections.push(side.client.connect().await?);
        }
        let next = Arc::new(AtomicUsize::new(0));
        let before = side.processor_time()?;
        let since = Instant::now();
        let clients: Vec<_> = connections
            .into_iter()
            .map(|connection| {
                tokio::spawn(send_requests(connection, Arc::clone(&next), number, request))
            })
            .collect();
        let mut took = Samples::default();
        for client in clients {
            client.await??.into_iter().for_each(|one| took.push(one));
        }
        let seconds = since.elapsed().as_secs_f64();
        let used = side.processor_time()? - before;
        #[expect(clippy::cast_precision_loss, reason = "thousands of requests")]
        let number = number as f64;
        Ok(Load { per_second: number / seconds, took, processor_micros: used / number * 1e6 })
    })
}

/// One client: takes the next number until all are done.
async fn send_requests(
    mut connection: Connection,
    next: Arc<AtomicUsize>,
    number: usize,
    request: impl Fn(usize) -> Result<Request<Body>>,
) -> Result<Vec<std::time::Duration>> {
    let mut took = Vec::new();
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= number {
            return Ok(took);
        }
        let request = request(at)?;
        let since = Instant::now();
        let response = connection.send(request).await?;
        took.push(since.elapsed());
        ensure!(response.status.is_success(), "{}: {}", response.status, response.text());
    }
}

fn creation(namespace: &str, number: usize) -> Result<Request<Body>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    with_body(Method::POST, &path, &object(number, "a"))
}

fn replacement(number: usize) -> Result<Request<Body>> {
    with_body(Method::PUT, &path_of(number), &object(number, "b"))
}

fn path_of(number: usize) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/object-{number}")
}

fn object(number: usize, letter: &str) -> Value {
    let mut metadata = json!({"name": format!("object-{number}")});
    if number.is_multiple_of(LABELLED_EVERY) {
        metadata["labels"] = json!({"rare": "yes"});
    }
    json!({"metadata": metadata, "data": {"filling": letter.repeat(FILLING_BYTES)}})
}

/// A request with a JSON body.
///
/// # Errors
/// The path is invalid.
pub fn with_body(method: Method, path: &str, body: &Value) -> Result<Request<Body>> {
    let body = Full::new(serde_json::to_vec(body)?.into()).boxed_unsync();
    let request = Request::builder().method(method).uri(path);
    Ok(request.header(CONTENT_TYPE, "application/json").body(body)?)
}
