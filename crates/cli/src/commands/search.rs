//! `drover search`: objects of several types whose names have a part, in all clusters or in one.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use http::Method;
use serde_json::Value;

use crate::api::{Api, encode, id, text};
use crate::args::SearchArgs;
use crate::commands::{get, scope};
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};

/// What people look for by name. Secrets are not among them: their lists have the values.
const USUAL_TYPES: [&str; 14] = [
    "namespaces",
    "nodes",
    "apps.deployments",
    "apps.statefulsets",
    "apps.daemonsets",
    "batch.jobs",
    "batch.cronjobs",
    "pods",
    "services",
    "networking.k8s.io.ingresses",
    "configmaps",
    "persistentvolumeclaims",
    "persistentvolumes",
    "serviceaccounts",
];
/// Types that are searched at once.
const TYPES_AT_ONCE: usize = 4;
/// The fields that the table shows.
const FIELDS: [&str; 5] = ["name", "namespace", "cluster", "state", "creationTimestamp"];

const TYPE: TableColumn =
    TableColumn { heading: "TYPE", cell: |row, _| text(row, "type").to_owned() };
const COLUMNS: &[TableColumn] =
    &[get::CLUSTER, TYPE, get::NAMESPACE, get::NAME, get::STATE, get::AGE];

/// Prints what is found.
///
/// # Errors
/// No cluster has one of the given types, or a cluster could not be searched; what the others have
/// is printed all the same.
pub async fn run(args: SearchArgs) -> Result<(), CliError> {
    if args.text.is_empty() || args.text.contains([',', '\'']) {
        return Err(CliError::usage(
            "TEXT is a part of a name: not empty, without commas and quotes",
        ));
    }
    let api = Api::open(args.output.server.name())?;
    let clusters = match args.cluster.name() {
        Some(name) => id(&scope::cluster(&api, Some(name)).await?).to_owned(),
        None => "*".to_owned(),
    };
    let is_usual = args.types.is_empty();
    let types: Vec<&str> = match is_usual {
        true => USUAL_TYPES.into(),
        false => args.types.iter().map(String::as_str).collect(),
    };
    let found: Vec<Option<Value>> = futures::stream::iter(&types)
        .map(|kind| list(&api, &args, kind, &clusters, is_usual))
        .buffered(TYPES_AT_ONCE)
        .try_collect()
        .await?;
    let (mut rows, mut unavailable) = (Vec::new(), BTreeMap::new());
    for (kind, mut list) in types.iter().zip(found).filter_map(|(kind, list)| Some((kind, list?))) {
        for cluster in list["unavailable"].as_array().into_iter().flatten() {
            unavailable.insert(text(cluster, "id").to_owned(), cluster.clone());
        }
        if list["continue"].is_string() {
            notify!("there are {} {kind}; --limit shows more", list["count"]);
        }
        if let Value::Array(objects) = list["data"].take() {
            rows.extend(objects);
        }
    }
    // Types without namespaces are listed all the same.
    rows.retain(|row| args.namespace.is_none() || !text(&row["metadata"], "namespace").is_empty());
    output::list(args.output.output, COLUMNS, &rows)?;
    let unavailable: Vec<Value> = unavailable.into_values().collect();
    get::report(&unavailable)
}

/// The objects of one type; `None` when no cluster has it and nobody named it.
async fn list(
    api: &Api,
    args: &SearchArgs,
    kind: &str,
    clusters: &str,
    is_usual: bool,
) -> Result<Option<Value>, CliError> {
    let path = path(args, kind, clusters);
    match api.call(Method::GET, &path, None, &format!("searching {kind}")).await {
        Err(error) if is_usual && error.failure == Failure::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn path(args: &SearchArgs, kind: &str, clusters: &str) -> String {
    let mut path = format!("/v1/{}", encode(kind));
    if let Some(namespace) = &args.namespace {
        path.push_str(&format!("/{}", encode(namespace)));
    }
    let filter = encode(&format!("metadata.name={}", args.text));
    let fields: Vec<String> =
        FIELDS.iter().map(|field| format!("&include=metadata.{field}")).collect();
    let (clusters, limit) = (encode(clusters), args.limit);
    format!(
        "{path}?clusters={clusters}&filter={filter}&limit={limit}&sort=metadata.name{}",
        fields.concat()
    )
}
