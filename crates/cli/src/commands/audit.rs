//! `drover audit`: events of the server's audit log.

use std::collections::HashSet;
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::{self, Api, encode, id, path_of, text};
use crate::args::AuditArgs;
use crate::error::{CliError, Failure};
use crate::output::{self, Printer, TableColumn};

/// Pause between two requests for new events.
const FOLLOW_EVERY: Duration = Duration::from_secs(2);
/// New events are requested from this long before the last one: events are written when they end,
/// so they are only nearly in order.
const OVERLAP: SignedDuration = SignedDuration::from_secs(5);
/// Maximum number of events of one request.
const PAGE: usize = 1000;
/// Maximum number of new events per request; of more, only the newest are read.
const FOLLOWED_MAX: usize = 10_000;
/// Longest path in a table, in characters.
const PATH_CHARS_MAX: usize = 80;
/// The event that a request to read the log creates.
const AUDIT_READ: &str = "audit-read";

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "TIME", cell: |event, _| seconds(text(event, "created")).to_owned() },
    TableColumn { heading: "EVENT", cell: |event, _| text(event, "event").to_owned() },
    TableColumn { heading: "USER", cell: |event, _| user(event).to_owned() },
    TableColumn { heading: "FROM", cell: |event, _| from(event).to_owned() },
    TableColumn { heading: "STATUS", cell: |event, _| status(event) },
    TableColumn { heading: "VERB", cell: |event, _| text(event, "verb").to_owned() },
    TableColumn { heading: "PATH", cell: |event, _| path(event) },
];

/// A time without fractions of a second.
fn seconds(time: &str) -> &str {
    time.split('.').next().unwrap_or_default()
}

/// The login name if known, else the id, else the name given at a login.
fn user(event: &Value) -> &str {
    let known = event["user"]["extra"]["username"][0].as_str();
    let known = known.or(event["user"]["username"].as_str());
    known.or(event["annotations"]["drover.io/login-name"].as_str()).unwrap_or("-")
}

fn from(event: &Value) -> &str {
    event["sourceIPs"][0].as_str().unwrap_or("-")
}

fn status(event: &Value) -> String {
    event["responseStatus"]["code"].as_u64().map_or_else(|| "-".to_owned(), |code| code.to_string())
}

/// The path; for a summary of suppressed events, their kinds.
fn path(event: &Value) -> String {
    let suppressed = event["annotations"]["drover.io/suppressed-events"].as_str();
    let path = suppressed.unwrap_or(text(event, "requestURI"));
    let shown: String = path.chars().take(PATH_CHARS_MAX).collect();
    if shown.len() < path.len() { format!("{shown} …") } else { shown }
}

/// Prints the events that match the filters; with `--follow` also new ones, until the process ends.
///
/// # Errors
/// A filter names nothing, or a request fails.
pub async fn run(args: AuditArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let mut filters = Vec::new();
    if let Some(cluster) = &args.cluster {
        let cluster = api.resolve(&api::CLUSTER, cluster).await?;
        filters.push(("clusterId", id(&cluster).to_owned()));
    }
    let address = args.address.map(|address| address.to_string());
    let texts = [("user", &args.user), ("event", &args.event), ("verb", &args.verb)];
    let texts = texts.into_iter().chain([("status", &args.status), ("address", &address)]);
    filters.extend(texts.filter_map(|(name, value)| Some((name, value.clone()?))));
    let since = args.since.map(|since| Timestamp::now().checked_sub(since));
    // The duration reaches back beyond the first timestamp.
    let since = since.map(|since| since.unwrap_or(Timestamp::UNIX_EPOCH));
    let events = read(&api, &filters, since, args.limit).await.map_err(|error| {
        let needs_cluster = error.failure == Failure::Forbidden && args.cluster.is_none();
        let hint = "owners of a cluster read its events with --cluster, administrators all";
        if needs_cluster { error.hint(hint) } else { error }
    })?;
    if args.follow {
        return follow(&api, &args, &filters, events).await;
    }
    output::list(args.output.output, COLUMNS, &events)
}

/// Prints events, and new ones as they come. Ends with the process.
async fn follow(
    api: &Api,
    args: &AuditArgs,
    filters: &[(&str, String)],
    mut events: Vec<Value>,
) -> Result<(), CliError> {
    let mut printer = Printer::new(args.output.output, COLUMNS.into());
    let mut printed = HashSet::new();
    let mut last = Timestamp::now();
    loop {
        // Without a filter, each request of this command would be a new event for the next one.
        let is_own = |event: &Value| args.event.is_none() && event["event"] == AUDIT_READ;
        let mut new = events.clone();
        new.retain(|event| !printed.contains(id(event)) && !is_own(event));
        if !new.is_empty() && !printer.print(&new)? {
            return Ok(());
        }
        printed = events.iter().map(|event| id(event).to_owned()).collect();
        let newest = events.iter().filter_map(|event| text(event, "created").parse().ok()).max();
        last = newest.unwrap_or(last).max(last);
        tokio::time::sleep(FOLLOW_EVERY).await;
        events = read(api, filters, Some(last - OVERLAP), FOLLOWED_MAX).await?;
    }
}

/// The newest events, oldest first. A page may be shorter than its limit if the search takes the
/// server too long.
async fn read(
    api: &Api,
    filters: &[(&str, String)],
    since: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<Value>, CliError> {
    let mut path = format!("/v3/auditevents?limit={}", limit.clamp(1, PAGE));
    let since = since.map(|since| ("since", since.to_string()));
    for (name, value) in filters.iter().chain(&since) {
        path += &format!("&{name}={}", encode(value));
    }
    let mut all = Vec::new();
    loop {
        let page = api.call(Method::GET, &path, None, "reading the audit log").await?;
        all.extend(page["data"].as_array().into_iter().flatten().cloned());
        match page["pagination"]["next"].as_str() {
            Some(next) if all.len() < limit => path = path_of(next),
            _ => break,
        }
    }
    all.truncate(limit);
    all.reverse();
    Ok(all)
}
