//! `drover role ls|grant|revoke`.

use serde_json::{Value, json};

use crate::api::{self, Api, text};
use crate::args::{Format, OutputArgs};
use crate::error::{CliError, Failure};
use crate::output::{self, Column};

const BINDINGS: &str = "clusterroletemplatebindings";

pub const COLUMNS: &[Column] = &[
    Column { heading: "NAME", cell: |role, _| text(role, "name").to_owned() },
    Column { heading: "ID", cell: |role, _| text(role, "id").to_owned() },
    Column { heading: "CONTEXT", cell: |role, _| text(role, "context").to_owned() },
    Column {
        heading: "BUILTIN",
        cell: |role, _| if role["builtin"] == true { "yes" } else { "" }.to_owned(),
    },
    Column { heading: "DESCRIPTION", cell: |role, _| text(role, "description").to_owned() },
];

pub async fn list(args: OutputArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    output::list(args.output, COLUMNS, &api.list("roletemplates", &[]).await?)
}

/// Ids of role template, cluster and user.
async fn ids(api: &Api, role: &str, cluster: &str, user: &str) -> Result<[String; 3], CliError> {
    let id = |resource: Value| text(&resource, "id").to_owned();
    Ok([
        id(api.resolve(&api::ROLE, role).await?),
        id(api.resolve(&api::CLUSTER, cluster).await?),
        id(api.resolve(&api::USER, user).await?),
    ])
}

pub async fn grant(
    role: &str,
    cluster: &str,
    user: &str,
    args: OutputArgs,
) -> Result<(), CliError> {
    let api = Api::open(args.server.server.as_deref())?;
    let [role_id, cluster_id, user_id] = ids(&api, role, cluster, user).await?;
    let body = json!({"roleTemplateId": role_id, "clusterId": cluster_id, "userId": user_id});
    let what = format!("giving \"{user}\" the role \"{role}\" in cluster \"{cluster}\"");
    let binding = api.create(BINDINGS, &body, &what).await?;
    match args.output {
        Format::Table => output::print(text(&binding, "id")),
        format => output::one(format, &[], &binding),
    }
}

pub async fn revoke(
    role: &str,
    cluster: &str,
    user: &str,
    server: Option<&str>,
) -> Result<(), CliError> {
    let api = Api::open(server)?;
    let [role_id, cluster_id, user_id] = ids(&api, role, cluster, user).await?;
    let query = [
        ("clusterId", cluster_id.as_str()),
        ("userId", user_id.as_str()),
        ("roleTemplateId", role_id.as_str()),
    ];
    let found = api.list(BINDINGS, &query).await?;
    if found.is_empty() {
        let text = format!("\"{user}\" does not have the role \"{role}\" in cluster \"{cluster}\"");
        return Err(CliError::new(Failure::NotFound, text));
    }
    for binding in found {
        let id = text(&binding, "id");
        api.delete(BINDINGS, id, &format!("deleting role binding \"{id}\"")).await?;
    }
    eprintln!("took the role {role} in cluster {cluster} from {user}");
    Ok(())
}
