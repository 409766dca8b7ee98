//! `drover get`: the objects of any type in one cluster or in all, read by the server. A cluster
//! that does not respond is reported.

use http::Method;
use serde_json::Value;

use crate::api::{Api, encode, id, text};
use crate::args::GetArgs;
use crate::commands::scope;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn, age};

const COLUMNS: &[TableColumn] = &[CLUSTER, NAMESPACE, NAME, STATE, AGE];

/// Columns of objects of several clusters.
pub const CLUSTER: TableColumn =
    TableColumn { heading: "CLUSTER", cell: |row, _| text(cluster(row), "name").to_owned() };
pub const NAMESPACE: TableColumn = TableColumn {
    heading: "NAMESPACE",
    cell: |row, _| text(&row["metadata"], "namespace").to_owned(),
};
pub const NAME: TableColumn =
    TableColumn { heading: "NAME", cell: |row, _| text(&row["metadata"], "name").to_owned() };
pub const STATE: TableColumn = TableColumn {
    heading: "STATE",
    cell: |row, _| text(&row["metadata"]["state"], "name").to_owned(),
};
pub const AGE: TableColumn = TableColumn {
    heading: "AGE",
    cell: |row, now| age(text(&row["metadata"], "creationTimestamp"), now),
};

/// The cluster of an object of a list over several.
fn cluster(row: &Value) -> &Value {
    &row["metadata"]["cluster"]
}

/// Prints the objects of a type.
///
/// # Errors
/// No cluster has the type, or a cluster could not be read; what the others have is printed all the
/// same.
pub async fn run(args: GetArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let clusters = match args.all_clusters {
        true => "*".to_owned(),
        false => id(&scope::cluster(&api, args.cluster.name()).await?).to_owned(),
    };
    let list = api.call(Method::GET, &path(&args, &clusters), None, &listing(&args)).await?;
    let rows = list["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let unavailable = list["unavailable"].as_array().map(Vec::as_slice).unwrap_or_default();
    output::list(args.output.output, COLUMNS, rows)?;
    if list["continue"].is_string() {
        notify!("{} of {} are shown; --limit shows more", rows.len(), list["count"]);
    }
    report(unavailable)
}

/// Names the clusters that could not be read.
///
/// # Errors
/// There are some.
pub fn report(unavailable: &[Value]) -> Result<(), CliError> {
    for cluster in unavailable {
        notify!("warning: cluster {}: {}", text(cluster, "name"), text(cluster, "message"));
    }
    outcome(unavailable)
}

fn listing(args: &GetArgs) -> String {
    format!("listing {}", args.kind)
}

fn path(args: &GetArgs, clusters: &str) -> String {
    let mut path = format!("/v1/{}", encode(&args.kind));
    if let Some(namespace) = &args.namespace {
        path.push_str(&format!("/{}", encode(namespace)));
    }
    let limit = args.limit.to_string();
    let mut query = vec![("clusters", clusters), ("limit", &limit)];
    query.extend(args.filter.iter().map(|filter| ("filter", filter.as_str())));
    query.extend(args.selector.as_deref().map(|selector| ("labelSelector", selector)));
    query.extend(args.sort_by.as_deref().map(|sort| ("sort", sort)));
    let pairs: Vec<String> =
        query.into_iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// The result of the command: an unreachable cluster takes precedence over one that refuses.
fn outcome(unavailable: &[Value]) -> Result<(), CliError> {
    if unavailable.is_empty() {
        return Ok(());
    }
    let refuses = |cluster: &Value| cluster["status"] == 403;
    let failure = match unavailable.iter().all(refuses) {
        true => Failure::Forbidden,
        false => Failure::Unreachable,
    };
    let text = format!("{} clusters could not be read", unavailable.len());
    Err(CliError::new(failure, text).hint("\"drover cluster ls\" shows their states"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clusters_that_cannot_be_read_fail_the_command() {
        assert!(outcome(&[]).is_ok());
        let refuses = json!({"status": 403});
        let refused = outcome(std::slice::from_ref(&refuses)).unwrap_err();
        assert_eq!(refused.failure, Failure::Forbidden);
        let away = outcome(&[refuses, json!({"status": 503})]).unwrap_err();
        assert_eq!(away.failure, Failure::Unreachable);
    }
}
