//! Lists of `/v3` over a type with very many objects, over TLS, for a user who sees all of them and
//! for a user who sees one in a hundred.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use serde_json::{Value, json};

use super::apiserver::load::with_body;
use super::people;
use super::{Row, Samples, Target, processor_time, settled_memory};
use crate::http::{Connection, empty, runtime};
use crate::server::ADMIN_PASSWORD;
use crate::{Client, Protocol, Server, poll_until};

const OBJECTS: usize = 100_000;
/// Clients that create the objects.
const CLIENTS: usize = 32;
/// The other user sees one object in this many.
const SEEN_EVERY: usize = 100;
/// Distinct values of the field that is filtered by.
const BRANCHES: usize = 53;
const ROUNDS: usize = 200;
const PAGE_MAX_MILLIS: f64 = 50.0;
/// The server is idle when it uses less of a processor than this in a second.
const QUIET_SECONDS: f64 = 0.1;
const QUIET_TIMEOUT: Duration = Duration::from_secs(300);

/// The measured queries.
const LISTS: [(&str, &str); 6] = [
    ("first page", "limit=100"),
    ("first page of 1,000", "limit=1000"),
    ("filter", "limit=100&branch=branch-0"),
    ("sort", "limit=100&sort=description"),
    ("filter and sort, downwards", "limit=100&branch_ne=branch-0&sort=url&order=desc"),
    ("page in the middle", "limit=100&marker=catalog-050000"),
];

/// See the module.
///
/// # Errors
/// The server does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let server = Server::start()?;
    let process = server.process_id().context("the server has ended")?;
    let admin = server.anyone()?.bearer(&server.login("admin", ADMIN_PASSWORD)?);
    let admin = admin.over(Protocol::Http2);
    let before = settled_memory(process)?;
    runtime().block_on(fill(&admin))?;
    let filled = settled_memory(process)?;
    let restricted_user = restricted_user(&server, &admin)?.over(Protocol::Http2);
    let mut rows = vec![
        Row::new(format!("memory with {OBJECTS} objects"), filled, "MB", Target::Context)
            .recorded(true)
            .note(format!("{before:.0} MB before; no list yet")),
    ];

    // The first list of each kind reads everything, and builds the index.
    for (what, query) in LISTS {
        let read = runtime().block_on(time(&admin, query, 1))?.median();
        rows.push(
            Row::new(format!("{what}, before there is an index"), read, "ms", Target::Context)
                .note("once, all objects are read"),
        );
        quiet(process)?;
    }
    rows.push(
        Row::new(
            "memory with an index of five fields",
            settled_memory(process)?,
            "MB",
            Target::Context,
        )
        .recorded(true)
        .note("after those lists, each of which had all objects in memory"),
    );
    for (who, client) in [("all", &admin), ("one in 100", &restricted_user)] {
        for (what, query) in LISTS {
            let took = runtime().block_on(time(client, query, ROUNDS))?;
            eprintln!("    {what}, sees {who}: p99 {:.1} ms", took.percentile(99));
            rows.push(
                Row::new(
                    format!("{what}, sees {who}: p99"),
                    took.percentile(99),
                    "ms",
                    Target::AtMost(PAGE_MAX_MILLIS),
                )
                .note(format!("p50 {:.1} ms, {ROUNDS} times, one after the other", took.median())),
            );
        }
    }
    Ok(rows)
}

/// Times of a list on one connection. The response must have resources.
async fn time(client: &Client, query: &str, rounds: usize) -> Result<Samples> {
    let mut connection = client.connect().await?;
    let mut took = Samples::default();
    for _ in 0..rounds {
        let request = Request::get(format!("/v3/catalogs?{query}")).body(empty())?;
        let since = Instant::now();
        let response = connection.send(request).await?;
        took.push(since.elapsed());
        let page = response.success()?;
        ensure!(page["data"][0].is_object(), "an empty page of {query}");
    }
    Ok(took)
}

/// Waits until the server is idle.
fn quiet(process: u32) -> Result<()> {
    let mut used = f64::MAX;
    poll_until(QUIET_TIMEOUT, Duration::from_secs(1), || {
        let before = std::mem::replace(&mut used, processor_time(process)?);
        ensure!(used - before < QUIET_SECONDS && before <= used, "the server is still busy");
        Ok(())
    })
}

async fn fill(admin: &Client) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut makers = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        makers.spawn(make(admin.connect().await?, next.clone()));
    }
    while let Some(maker) = makers.join_next().await {
        maker??;
    }
    Ok(())
}

async fn make(mut connection: Connection, next: Arc<AtomicUsize>) -> Result<()> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= OBJECTS {
            return Ok(());
        }
        let path = "/apis/management.cattle.io/v3/catalogs";
        connection.send(with_body(Method::POST, path, &catalog(number))?).await?.success()?;
    }
}

fn name(number: usize) -> String {
    format!("catalog-{number:06}")
}

fn catalog(number: usize) -> Value {
    // In an order that is not that of the names.
    let mixed = number * 7_919 % OBJECTS;
    json!({
        "apiVersion": "management.cattle.io/v3", "kind": "Catalog",
        "metadata": {"name": name(number), "labels": {"team": format!("team-{}", number % 20)}},
        "spec": {
            "branch": format!("branch-{}", mixed % BRANCHES),
            "description": format!("Charts of team {} for stage {mixed:06}", number % 20),
            "url": format!("https://charts-{}.example/{mixed:06}", mixed % 1_000),
        },
    })
}

/// A user who may get one object in [`SEEN_EVERY`], each by its name.
fn restricted_user(server: &Server, admin: &Client) -> Result<Client> {
    let names: Vec<String> = (0..OBJECTS).step_by(SEEN_EVERY).map(name).collect();
    let rule = json!({
        "apiGroups": ["management.cattle.io"], "resources": ["catalogs"], "verbs": ["get"],
        "resourceNames": names,
    });
    people::role(admin, "seer", &rule)?;
    let seer = people::new(server, admin, "seer")?;
    people::bind(admin, "seer", [&seer])?;
    Ok(seer.client)
}
