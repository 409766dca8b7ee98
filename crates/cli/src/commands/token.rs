//! `drover token ls|create|rm`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{self, Api, text};
use crate::args::{OutputFormat, TokenCommand};
use crate::commands::{listing, scope};
use crate::error::CliError;
use crate::output::{self, TableColumn, age};

pub const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "ID", cell: |token, _| text(token, "id").to_owned() },
    TableColumn { heading: "DESCRIPTION", cell: |token, _| text(token, "description").to_owned() },
    TableColumn { heading: "CLUSTER", cell: |token, _| scope::cluster_shown(token) },
    TableColumn { heading: "PROJECT", cell: |token, _| text(token, "projectId").to_owned() },
    TableColumn { heading: "EXPIRES", cell: expires },
    TableColumn { heading: "LAST USED", cell: last_used },
    TableColumn { heading: "CURRENT", cell: |token, _| current(token) },
    TableColumn { heading: "AGE", cell: |token, now| age(text(token, "created"), now) },
];

fn expires(token: &Value, _: Timestamp) -> String {
    match (token["expired"].as_bool(), text(token, "expiresAt")) {
        (Some(true), _) => "expired".to_owned(),
        (_, "") => "never".to_owned(),
        (_, at) => at.to_owned(),
    }
}

fn last_used(token: &Value, now: Timestamp) -> String {
    match text(token, "lastUsedAt") {
        "" => "never".to_owned(),
        at => format!("{} ago", age(at, now)),
    }
}

fn current(token: &Value) -> String {
    if token["current"] == true { "yes".to_owned() } else { String::new() }
}

/// Lists, creates or removes tokens of the caller.
///
/// # Errors
/// The token does not exist, or a request fails.
pub async fn run(command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::Ls(args) => {
            let api = Api::open(args.output.server.name())?;
            let read = async || {
                let mut tokens = api.list("tokens", &[]).await?;
                scope::name_clusters(&api, args.format(), &mut tokens).await?;
                Ok(tokens)
            };
            listing::show(&args, COLUMNS, read).await
        }
        TokenCommand::Create { description, ttl, cluster, project, output } => {
            let api = Api::open(output.server.name())?;
            let place = (cluster.as_deref(), project.as_deref());
            create(&api, &description, ttl, place, output.output).await
        }
        TokenCommand::Rm { tokens, server } => {
            let api = Api::open(server.name())?;
            for id in tokens {
                api.delete("tokens", &id, &format!("deleting token \"{id}\"")).await?;
                notify!("deleted token {id}");
            }
            Ok(())
        }
    }
}

/// `place`: the cluster and the project that it is valid in only, as names or ids.
async fn create(
    api: &Api,
    description: &str,
    ttl: Duration,
    place: (Option<&str>, Option<&str>),
    format: OutputFormat,
) -> Result<(), CliError> {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let mut body = json!({"description": description, "ttl": millis});
    match place {
        (cluster, Some(project)) => {
            body["projectId"] = scope::project(api, cluster, project).await?["id"].take();
        }
        (Some(cluster), None) => {
            body["clusterId"] = api.resolve(&api::CLUSTER, cluster).await?["id"].take();
        }
        (None, None) => {}
    }
    let token = api.create("tokens", &body, "creating a token").await?;
    match format.is_table() {
        true => output::print(text(&token, "token"))?,
        false => output::one(format, &[], &token)?,
    }
    notify!("created token {}; it cannot be shown again", text(&token, "id"));
    if place.1.is_some() {
        let (server, cluster) = (api.url(), text(&token, "clusterId"));
        notify!(
            "next: kubectl --server {server}/k8s/clusters/{cluster} --token TOKEN get pods -n NAMESPACE"
        );
    }
    Ok(())
}
