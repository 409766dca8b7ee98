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
    TableColumn { heading: "EXPIRES", cell: expires },
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
        TokenCommand::Create { description, ttl, cluster, output } => {
            let api = Api::open(output.server.name())?;
            create(&api, &description, ttl, cluster.as_deref(), output.output).await
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

async fn create(
    api: &Api,
    description: &str,
    ttl: Duration,
    cluster: Option<&str>,
    format: OutputFormat,
) -> Result<(), CliError> {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let mut body = json!({"description": description, "ttl": millis});
    if let Some(name) = cluster {
        body["clusterId"] = api.resolve(&api::CLUSTER, name).await?["id"].take();
    }
    let token = api.create("tokens", &body, "creating a token").await?;
    match format.is_table() {
        true => output::print(text(&token, "token"))?,
        false => output::one(format, &[], &token)?,
    }
    notify!("created token {}; it cannot be shown again", text(&token, "id"));
    Ok(())
}
