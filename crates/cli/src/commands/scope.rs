//! The scope of a command: a cluster, and optionally a project in it. Arguments take precedence
//! over the context.

use serde_json::Value;

use crate::api::{self, Api, NamedType, id, text};
use crate::args::OutputFormat;
use crate::error::{CliError, Failure};

/// The given cluster, else the context's.
pub async fn cluster(api: &Api, given: Option<&str>) -> Result<Value, CliError> {
    match chosen_cluster(api, given).await? {
        Some(cluster) => Ok(cluster),
        None => Err(CliError::usage("no cluster is given")
            .hint("give --cluster, or choose one by \"drover context use --cluster NAME\"")),
    }
}

/// Like [`cluster`], but none if none is given or selected.
pub async fn chosen_cluster(api: &Api, given: Option<&str>) -> Result<Option<Value>, CliError> {
    let chosen = &api.context().cluster;
    let name = given.or(Some(chosen.id.as_str()).filter(|id| !id.is_empty()));
    match name {
        Some(name) => api.resolve(&api::CLUSTER, name).await.map(Some),
        None => Ok(None),
    }
}

/// The project of this name or id. An id contains its cluster; a name is resolved in the given
/// cluster, else the context's, else all.
pub async fn project(api: &Api, cluster: Option<&str>, name: &str) -> Result<Value, CliError> {
    if name.contains(':') {
        return api.get("projects", name, &format!("project \"{name}\"")).await;
    }
    let cluster = chosen_cluster(api, cluster).await?;
    let inside = cluster.as_ref().map(|cluster| ("clusterId", id(cluster)));
    api.resolve(&NamedType { inside, ..api::PROJECT }, name).await
}

/// A cluster, with the given or selected project. The context's project is ignored if a cluster is
/// given.
pub async fn cluster_and_project(
    api: &Api,
    given_cluster: Option<&str>,
    given_project: Option<&str>,
) -> Result<(Value, Option<Value>), CliError> {
    let chosen = &api.context().project.id;
    let name = match (given_cluster, given_project) {
        (_, Some(project)) => Some(project),
        (None, None) if !chosen.is_empty() => Some(chosen.as_str()),
        _ => None,
    };
    let Some(name) = name else { return Ok((cluster(api, given_cluster).await?, None)) };
    let project = project(api, given_cluster, name).await?;
    let owner = text(&project, "clusterId");
    let cluster = match given_cluster {
        Some(given) => cluster(api, Some(given)).await?,
        None => cluster(api, Some(owner)).await?,
    };
    if id(&cluster) != owner {
        let text = format!("project \"{name}\" is not in cluster \"{}\"", text(&cluster, "name"));
        return Err(CliError::new(Failure::NotFound, text)
            .hint("\"drover project ls\" shows the projects of a cluster"));
    }
    Ok((cluster, Some(project)))
}

/// Field that [`name_clusters`] adds.
const CLUSTER_NAME: &str = "clusterName";

/// For tables: adds the name of its cluster to each object that has a `clusterId`.
pub async fn name_clusters(
    api: &Api,
    format: OutputFormat,
    objects: &mut [Value],
) -> Result<(), CliError> {
    if !format.is_table() || objects.iter().all(|object| text(object, "clusterId").is_empty()) {
        return Ok(());
    }
    let clusters = api.list(api::CLUSTER.plural, &[]).await?;
    for object in objects {
        let known = clusters.iter().find(|cluster| id(cluster) == text(object, "clusterId"));
        if let (Some(cluster), Some(map)) = (known, object.as_object_mut()) {
            map.insert(CLUSTER_NAME.to_owned(), api::name(cluster).into());
        }
    }
    Ok(())
}

/// The name of an object's cluster, or its id if the name is unknown.
pub fn cluster_shown(object: &Value) -> String {
    let name = text(object, CLUSTER_NAME);
    if name.is_empty() { text(object, "clusterId").to_owned() } else { name.to_owned() }
}
