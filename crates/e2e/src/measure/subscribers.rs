//! Many sockets of the change feed that receive the same changes, first alone, then with one among
//! them that requests much and reads nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::apiserver::load::with_body;
use super::people::{self, Person};
use super::{Row, Samples, Target, memory, processor_time};
use crate::http::{Connection, runtime};
use crate::server::ADMIN_PASSWORD;
use crate::socket::Event;
use crate::{Client, Protocol, Server, Socket};

const SUBSCRIBERS: usize = 1_000;
/// Sockets that one user opens; a server grants 64.
const SOCKETS_PER_USER: usize = 50;
/// New objects that each subscriber receives.
const EVENTS: usize = 50;
/// Objects that only the slow socket requested, and their size: more than a connection buffers
/// before its client reads.
const LARGE: usize = 100;
const LARGE_BYTES: usize = 200_000;
/// Longest wait of a subscriber for all changes.
const SEEN_TIMEOUT: Duration = Duration::from_secs(120);
/// With a slow socket among them, the others take at most this many times as long.
const SLOWED_MAX: f64 = 1.5;

/// The result of the subscribers.
struct Seen {
    per_second: f64,
    /// From a write's response to the last change at each subscriber.
    took: Samples,
    processor_micros: f64,
}

/// See the module.
///
/// # Errors
/// The server does not start, a request fails, or a subscriber misses a change.
pub fn measure() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let admin = server.anyone()?.bearer(&server.login("admin", ADMIN_PASSWORD)?);
    let before = memory(process)?;
    let mut sockets = subscribe(&server, &admin)?;
    let kilobytes = (memory(process)? - before) * 1024.0 / as_float(SUBSCRIBERS);
    let mut rows = vec![
        Row::new("memory of each subscriber", kilobytes, "KB", Target::Context)
            .note(format!("{SUBSCRIBERS} sockets of {} users, TLS included", users())),
    ];

    // New sockets first read the existing objects.
    runtime().block_on(watch(process, &admin, &mut sockets, "before"))?;
    let alone = runtime().block_on(watch(process, &admin, &mut sockets, "alone"))?;
    let path = "/v3/subscribe?resourceTypes=catalog&resourceTypes=template";
    let mut slow = open_socket(&admin, path)?;
    runtime().block_on(make_large(&admin))?;
    let beside = runtime().block_on(watch(process, &admin, &mut sockets, "beside"))?;
    let grown = memory(process)? - before;
    for (what, seen) in [("alone", &alone), ("with a slow one among them", &beside)] {
        let row = Row::new(
            format!("events to {SUBSCRIBERS} subscribers, {what}"),
            seen.per_second,
            "/s",
            Target::Context,
        );
        rows.push(row.recorded(true).note(format!(
            "the last of {EVENTS} changes seen after {:.0} ms at the median, {:.0} ms at worst; \
             processor time of one event to one subscriber {:.0} µs",
            seen.took.median(),
            seen.took.percentile(100),
            seen.processor_micros,
        )));
    }
    let times = beside.took.percentile(100) / alone.took.percentile(100);
    let what = "longest wait with a slow one among them, against without";
    rows.push(
        Row::new(what, times, "×", Target::AtMost(SLOWED_MAX))
            .note(format!("{LARGE} changes of {LARGE_BYTES} bytes wait for the slow one")),
    );
    let row = Row::new("memory for all subscribers with what waits", grown, "MB", Target::Context);
    rows.push(
        row.recorded(true)
            .note("what the slow one has not read is not kept: only which objects changed"),
    );
    ensure!(
        slow.until(|event| matches!(event, Event::Frame(_)).then_some(())).is_ok(),
        "the slow one got nothing"
    );
    Ok(rows)
}

fn users() -> usize {
    SUBSCRIBERS.div_ceil(SOCKETS_PER_USER)
}

fn subscribe(server: &Server, admin: &Client) -> Result<Vec<Socket>> {
    let rule = json!({
        "apiGroups": ["management.cattle.io"], "resources": ["catalogs"],
        "verbs": ["get", "list", "watch"],
    });
    people::role(admin, "watchers", &rule)?;
    let names = (0..users()).map(|number| format!("watcher-{number}"));
    let people: Vec<Person> =
        names.map(|name| people::new(server, admin, &name)).collect::<Result<_>>()?;
    people::bind(admin, "watchers", &people)?;
    let people = people.iter().cycle().take(SUBSCRIBERS);
    people
        .map(|person| open_socket(&person.client, "/v3/subscribe?resourceTypes=catalog"))
        .collect()
}

fn open_socket(client: &Client, path: &str) -> Result<Socket> {
    match Socket::open(client, path, &[])? {
        Ok(socket) => Ok(socket),
        Err((status, body)) => bail!("no socket: {status} {body}"),
    }
}

/// Creates objects, and waits until every socket has received them.
async fn watch(
    process: u32,
    admin: &Client,
    sockets: &mut Vec<Socket>,
    round: &str,
) -> Result<Seen> {
    let names: BTreeSet<String> = (0..EVENTS).map(|number| format!("{round}-{number}")).collect();
    let used = processor_time(process)?;
    let since = Instant::now();
    let mut readers = JoinSet::new();
    for mut socket in sockets.drain(..) {
        let mut missing = names.clone();
        readers.spawn(async move {
            while !missing.is_empty() {
                match socket.next().await? {
                    Event::Frame(frame) => {
                        missing.remove(frame["data"]["id"].as_str().unwrap_or_default());
                    }
                    Event::Closed(code, reason) => bail!("closed with {code}: {reason}"),
                }
            }
            anyhow::Ok((socket, Instant::now()))
        });
    }
    let mut connection = admin.over(Protocol::Http2).connect().await?;
    for name in &names {
        let spec = json!({"url": "https://charts.example", "description": name});
        make(&mut connection, "catalogs", "Catalog", name, spec).await?;
    }
    let written = Instant::now();
    let mut took = Samples::default();
    let all = async {
        while let Some(reader) = readers.join_next().await {
            let (socket, at) = reader??;
            sockets.push(socket);
            took.push(at.saturating_duration_since(written));
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SEEN_TIMEOUT, all).await.context("some see nothing")??;
    let deliveries = as_float(SUBSCRIBERS * EVENTS);
    Ok(Seen {
        per_second: deliveries / since.elapsed().as_secs_f64(),
        took,
        processor_micros: (processor_time(process)? - used) / deliveries * 1e6,
    })
}

async fn make_large(admin: &Client) -> Result<()> {
    let mut connection = admin.over(Protocol::Http2).connect().await?;
    for number in 0..LARGE {
        let name = format!("large-{number}");
        let spec = json!({"description": "x".repeat(LARGE_BYTES)});
        let plural = "namespaces/cattle-global-data/catalogtemplates";
        make(&mut connection, plural, "CatalogTemplate", &name, spec).await?;
    }
    Ok(())
}

async fn make(
    connection: &mut Connection,
    plural: &str,
    kind: &str,
    name: &str,
    spec: serde_json::Value,
) -> Result<()> {
    let body = json!({
        "apiVersion": "management.cattle.io/v3", "kind": kind, "metadata": {"name": name},
        "spec": spec,
    });
    let path = format!("/apis/management.cattle.io/v3/{plural}");
    connection.send(with_body(Method::POST, &path, &body)?).await?.success()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some ten thousands")]
fn as_float(number: usize) -> f64 {
    number as f64
}
