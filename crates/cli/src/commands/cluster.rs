//! `drover cluster ls|get|create|isolation`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, id, text};
use crate::args::{CreateClusterArgs, ListArgs, OutputArgs, Switch};
use crate::commands::{listing, wait};
use crate::effect;
use crate::error::{CliError, Failure};
use crate::output::{self, Columns, TableColumn, age};

/// The server creates a registration token within this time.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(150);

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |cluster, _| text(cluster, "name").to_owned() },
    TableColumn { heading: "ID", cell: |cluster, _| text(cluster, "id").to_owned() },
    TableColumn { heading: "STATE", cell: |cluster, _| effect::state(cluster) },
    TableColumn { heading: "VERSION", cell: |cluster, _| version(cluster) },
    TableColumn { heading: "PROVIDER", cell: |cluster, _| provider(cluster) },
    TableColumn { heading: "NODES", cell: |cluster, _| cluster["nodeCount"].to_string() },
    TableColumn { heading: "AGE", cell: |cluster, now| age(text(cluster, "created"), now) },
];

pub const ROWS: &[TableColumn] = &[
    TableColumn { heading: "Name", cell: |cluster, _| text(cluster, "name").to_owned() },
    TableColumn { heading: "Id", cell: |cluster, _| text(cluster, "id").to_owned() },
    TableColumn {
        heading: "Description",
        cell: |cluster, _| text(cluster, "description").to_owned(),
    },
    TableColumn { heading: "State", cell: |cluster, _| state(cluster) },
    TableColumn { heading: "Version", cell: |cluster, _| version(cluster) },
    TableColumn { heading: "Provider", cell: |cluster, _| provider(cluster) },
    TableColumn { heading: "Nodes", cell: |cluster, _| cluster["nodeCount"].to_string() },
    TableColumn { heading: "CPU", cell: |cluster, _| share(cluster, "cpu") },
    TableColumn { heading: "Memory", cell: |cluster, _| share(cluster, "memory") },
    TableColumn { heading: "Pods", cell: |cluster, _| share(cluster, "pods") },
    TableColumn { heading: "Labels", cell: |cluster, _| labels(cluster) },
    TableColumn { heading: "Created", cell: created_text },
    TableColumn { heading: "Conditions", cell: |cluster, _| conditions(cluster) },
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
        "" => effect::state(cluster),
        message => format!("{} ({message})", effect::state(cluster)),
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

fn created_text(cluster: &Value, now: Timestamp) -> String {
    match text(cluster, "created") {
        "" => String::new(),
        at => format!("{at} ({} ago)", age(at, now)),
    }
}

/// The conditions that are not true, with their message; `all hold` otherwise.
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

const LISTED: Columns = Columns {
    always: COLUMNS,
    wide: &[
        TableColumn { heading: "CPU", cell: |cluster, _| share(cluster, "cpu") },
        TableColumn { heading: "MEMORY", cell: |cluster, _| share(cluster, "memory") },
        TableColumn { heading: "PODS", cell: |cluster, _| share(cluster, "pods") },
        TableColumn { heading: "LABELS", cell: |cluster, _| labels(cluster) },
        TableColumn {
            heading: "MESSAGE",
            cell: |cluster, _| text(cluster, "transitioningMessage").to_owned(),
        },
    ],
};

/// Prints the clusters that the user may see.
pub async fn list(args: ListArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let read = async || {
        let mut clusters = api.list("clusters", &[]).await?;
        clusters.sort_by(|a, b| text(a, "name").cmp(text(b, "name")));
        Ok(clusters)
    };
    listing::show(&args, LISTED, read).await
}

/// Changes whether the projects of a cluster are closed to each other, or prints it: `on`, `off`,
/// or what it is until the cluster has the change.
///
/// # Errors
/// The cluster does not exist, or a request fails.
pub async fn isolation(
    name: &str,
    state: Option<Switch>,
    server: Option<&str>,
) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let cluster = api.resolve(&api::CLUSTER, name).await?;
    let Some(state) = state else {
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        let (desired, applied) =
            (cluster["enableNetworkPolicy"] == true, cluster["appliedEnableNetworkPolicy"] == true);
        return match desired == applied {
            true => output::print(word(desired)),
            false => output::print(&format!("{}, soon {}", word(applied), word(desired))),
        };
    };
    let is_on = state == Switch::On;
    let what = format!("changing the isolation of cluster \"{name}\"");
    let body = json!({"enableNetworkPolicy": is_on});
    api.update("clusters", id(&cluster), &body, &what).await?;
    if is_on {
        notify!("isolation holds if the network of the cluster enforces NetworkPolicies");
    }
    Ok(())
}

/// Prints one cluster, by its name or id.
///
/// # Errors
/// It does not exist, or a request fails.
pub async fn get(name: &str, args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let cluster = api.resolve(&api::CLUSTER, name).await?;
    effect::warn_if_none(&cluster, &format!("cluster \"{}\"", text(&cluster, "name")));
    output::one(args.output, ROWS, &cluster)
}

/// What every new cluster has, whoever makes it.
pub fn body(args: &CreateClusterArgs) -> Value {
    let labels = args.labels.iter().map(|(k, v)| (k.clone(), Value::from(v.clone())));
    let mut body = json!({"name": args.name, "labels": labels.collect::<Map<_, _>>()});
    if let Some(description) = &args.description {
        body["description"] = description.clone().into();
    }
    body
}

/// Creates a cluster for others to join. The commands to run in it go to stderr, its id to stdout.
pub async fn create(args: CreateClusterArgs) -> Result<(), CliError> {
    let given = &args.options;
    if !given.options.is_empty() || given.options_file.is_some() {
        return Err(CliError::usage("options are those of a driver: name it by --driver"));
    }
    let api = Api::open(args.output.server.name())?;
    let (name, body) = (args.name.as_str(), body(&args));
    let what = format!("creating cluster \"{name}\"");
    let mut cluster = api.create("clusters", &body, &what).await?;
    let command = registration_command(&api, id(&cluster)).await?;
    notify!("created cluster {name}; to join it, run with its kubeconfig");
    notify!("  drover cluster import {name} --kubeconfig FILE --resume");
    notify!("or, without this program and without a check of the server's certificate authority,");
    notify!("  {command}");
    if args.wait.wait {
        let goal = wait::Goal::active();
        cluster = wait::until(&api, "clusters", &cluster, &goal, args.wait.timeout).await?;
    }
    output::print_created(args.output.output, &cluster)
}

/// Waits for the registration token that the server creates by itself, and returns its command.
async fn registration_command(api: &Api, cluster: &str) -> Result<String, CliError> {
    let deadline = Instant::now() + COMMAND_WITHIN;
    loop {
        let tokens = api.list("clusterregistrationtokens", &[("clusterId", cluster)]).await?;
        let own_authority = !api.login().ca_cert.is_empty();
        let mut commands = tokens.iter().map(|token| command_of(token, own_authority));
        if let Some(command) = commands.find(|text| !text.is_empty()) {
            return Ok(command);
        }
        if Instant::now() >= deadline {
            let text = format!("cluster {cluster} has no registration command yet");
            return Err(CliError::new(Failure::Timeout, text)
                .hint("\"drover inspect clusterRegistrationToken\" shows the existing ones"));
        }
        sleep(POLL_EVERY).await;
    }
}

/// The command of a registration token. A server with its own certificate authority also has an
/// insecure one, for machines that do not trust that authority.
fn command_of(token: &Value, own_authority: bool) -> String {
    let insecure = text(token, "insecureCommand");
    match own_authority && !insecure.is_empty() {
        true => insecure.to_owned(),
        false => text(token, "command").to_owned(),
    }
}
