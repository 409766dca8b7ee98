//! `drover cluster ls|get|kubeconfig`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{self, Api, text};
use crate::args::OutputArgs;
use crate::error::CliError;
use crate::output::{self, Column, age};

pub const COLUMNS: &[Column] = &[
    Column { heading: "NAME", cell: |cluster, _| text(cluster, "name").to_owned() },
    Column { heading: "ID", cell: |cluster, _| text(cluster, "id").to_owned() },
    Column { heading: "STATE", cell: |cluster, _| text(cluster, "state").to_owned() },
    Column { heading: "VERSION", cell: |cluster, _| version(cluster) },
    Column { heading: "PROVIDER", cell: |cluster, _| provider(cluster) },
    Column { heading: "NODES", cell: |cluster, _| cluster["nodeCount"].to_string() },
    Column { heading: "AGE", cell: |cluster, now| age(text(cluster, "created"), now) },
];

pub const ROWS: &[Column] = &[
    Column { heading: "Name", cell: |cluster, _| text(cluster, "name").to_owned() },
    Column { heading: "Id", cell: |cluster, _| text(cluster, "id").to_owned() },
    Column { heading: "Description", cell: |cluster, _| text(cluster, "description").to_owned() },
    Column { heading: "State", cell: |cluster, _| state(cluster) },
    Column { heading: "Version", cell: |cluster, _| version(cluster) },
    Column { heading: "Provider", cell: |cluster, _| provider(cluster) },
    Column { heading: "Nodes", cell: |cluster, _| cluster["nodeCount"].to_string() },
    Column { heading: "CPU", cell: |cluster, _| share(cluster, "cpu") },
    Column { heading: "Memory", cell: |cluster, _| share(cluster, "memory") },
    Column { heading: "Pods", cell: |cluster, _| share(cluster, "pods") },
    Column { heading: "Labels", cell: |cluster, _| labels(cluster) },
    Column { heading: "Created", cell: created },
    Column { heading: "Conditions", cell: |cluster, _| conditions(cluster) },
];

fn version(cluster: &Value) -> String {
    text(&cluster["version"], "gitVersion").to_owned()
}

fn provider(cluster: &Value) -> String {
    match text(cluster, "provider") {
        "" => text(cluster, "driver").to_owned(),
        provider => provider.to_owned(),
    }
}

fn state(cluster: &Value) -> String {
    match text(cluster, "transitioningMessage") {
        "" => text(cluster, "state").to_owned(),
        message => format!("{} ({message})", text(cluster, "state")),
    }
}

/// Requested of allocatable.
fn share(cluster: &Value, resource: &str) -> String {
    let of = |field: &str| text(&cluster[field], resource).to_owned();
    match (of("requested"), of("allocatable")) {
        (_, total) if total.is_empty() => String::new(),
        (used, total) if used.is_empty() => total,
        (used, total) => format!("{used} of {total} requested"),
    }
}

fn labels(cluster: &Value) -> String {
    let labels = cluster["labels"].as_object().into_iter().flatten();
    let shown = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    shown.collect::<Vec<_>>().join(", ")
}

fn created(cluster: &Value, now: Timestamp) -> String {
    match text(cluster, "created") {
        "" => String::new(),
        at => format!("{at} ({} ago)", age(at, now)),
    }
}

/// Those that do not hold, with their reason; `all hold` otherwise.
fn conditions(cluster: &Value) -> String {
    let Some(list) = cluster["conditions"].as_array().filter(|list| !list.is_empty()) else {
        return String::new();
    };
    let failing: Vec<String> = list
        .iter()
        .filter(|condition| text(condition, "status") != "True")
        .map(|condition| {
            let (kind, message) = (text(condition, "type"), text(condition, "message"));
            format!("{kind} is {} {message}", text(condition, "status")).trim_end().to_owned()
        })
        .collect();
    if failing.is_empty() { "all hold".to_owned() } else { failing.join("\n") }
}

pub async fn list(args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    let mut clusters = api.list("clusters", &[]).await?;
    clusters.sort_by(|a, b| text(a, "name").cmp(text(b, "name")));
    output::list(args.output, COLUMNS, &clusters)
}

pub async fn get(name: &str, args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    let cluster = api.resolve(&api::CLUSTER, name).await?;
    output::one(args.output, ROWS, &cluster)
}

pub async fn kubeconfig(name: &str, server: Option<&str>) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let cluster = api.resolve(&api::CLUSTER, name).await?;
    let what = format!("making a kubeconfig of cluster \"{name}\"");
    let id = text(&cluster, "id");
    let answer = api.action("clusters", id, "generateKubeconfig", &json!({}), &what).await?;
    output::print(text(&answer, "config"))
}
