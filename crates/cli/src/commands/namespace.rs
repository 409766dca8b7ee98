//! `drover namespace ls|create|move|rm`: through the cluster's own API, like kubectl.

use http::Method;
use serde_json::{Value, json};

use api_management::keys::PROJECT_ID;

use crate::api::{Api, encode, id, text};
use crate::args::NamespaceCommand;
use crate::commands::{listing, scope};
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn, age};
use crate::prompt;

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "NAME", cell: |namespace, _| name(namespace).to_owned() },
    TableColumn { heading: "PROJECT", cell: |namespace, _| text(namespace, "project").to_owned() },
    TableColumn {
        heading: "STATE",
        cell: |namespace, _| text(&namespace["status"], "phase").to_owned(),
    },
    TableColumn {
        heading: "AGE",
        cell: |namespace, now| age(text(&namespace["metadata"], "creationTimestamp"), now),
    },
];

fn name(object: &Value) -> &str {
    text(&object["metadata"], "name")
}

/// Path of the namespaces of a cluster.
pub fn path(cluster: &Value) -> String {
    format!("/k8s/clusters/{}/api/v1/namespaces", encode(id(cluster)))
}

/// Id of the project that a namespace is in; empty for none.
pub fn project_of(namespace: &Value) -> &str {
    text(&namespace["metadata"]["annotations"], PROJECT_ID)
}

/// Lists, creates, moves or removes namespaces.
///
/// # Errors
/// The cluster or the project does not exist, or a request fails.
pub async fn run(command: NamespaceCommand) -> Result<(), CliError> {
    match command {
        NamespaceCommand::Ls { cluster, project, list } => {
            let api = Api::open(list.output.server.name())?;
            let given = (cluster.name(), project.project.as_deref());
            let (cluster, project) = scope::cluster_and_project(&api, given.0, given.1).await?;
            let read = async || {
                let mut found = api.list_kube(&path(&cluster), "listing namespaces").await?;
                if let Some(project) = &project {
                    found.retain(|namespace| project_of(namespace) == id(project));
                }
                if list.format().is_table() {
                    name_projects(&api, &cluster, &mut found).await?;
                }
                Ok(found)
            };
            listing::show(&list, COLUMNS, read).await
        }
        NamespaceCommand::Create { name, cluster, project, output } => {
            let api = Api::open(output.server.name())?;
            let given = (cluster.name(), project.project.as_deref());
            let (cluster, project) = scope::cluster_and_project(&api, given.0, given.1).await?;
            let mut body = match &project {
                Some(project) => assignment(Some(project)),
                None => json!({"metadata": {}}),
            };
            body["apiVersion"] = "v1".into();
            body["kind"] = "Namespace".into();
            body["metadata"]["name"] = name.as_str().into();
            let what = format!("creating namespace \"{name}\"");
            let made = api.call(Method::POST, &path(&cluster), Some(&body), &what).await?;
            match output.output.is_table() {
                true => output::print(&name),
                false => output::one(output.output, &[], &made),
            }
        }
        NamespaceCommand::Move { names, cluster, project, no_project, server } => {
            let api = Api::open(server.name())?;
            let (cluster, project) = match no_project {
                true => (scope::cluster(&api, cluster.name()).await?, None),
                false => {
                    let given = project.project.as_deref();
                    scope::cluster_and_project(&api, cluster.name(), given).await?
                }
            };
            move_namespaces(&api, &cluster, project.as_ref(), &names).await
        }
        NamespaceCommand::Rm { names, yes, cluster, server } => {
            let api = Api::open(server.name())?;
            let cluster = scope::cluster(&api, cluster.name()).await?;
            remove(&api, &cluster, &names, yes).await
        }
    }
}

/// A patch that assigns a namespace to a project: an annotation with the whole id, and a label with
/// the part after the cluster. None removes the assignment.
fn assignment(project: Option<&Value>) -> Value {
    let whole = project.map(id);
    let short = whole.and_then(|id| id.split_once(':')).map(|(_, short)| short);
    json!({"metadata": {"annotations": {PROJECT_ID: whole}, "labels": {PROJECT_ID: short}}})
}

/// Adds the name of its project to each namespace, or the id if the name is unknown.
async fn name_projects(
    api: &Api,
    cluster: &Value,
    namespaces: &mut [Value],
) -> Result<(), CliError> {
    let projects = api.list("projects", &[("clusterId", id(cluster))]).await?;
    for namespace in namespaces {
        let project = project_of(namespace).to_owned();
        let known = projects.iter().find(|known| id(known) == project);
        let shown = known.map_or(project.clone(), |known| text(known, "name").to_owned());
        if let Some(map) = namespace.as_object_mut() {
            map.insert("project".to_owned(), shown.into());
        }
    }
    Ok(())
}

fn with_list_hint(error: CliError) -> CliError {
    match error.failure {
        Failure::NotFound => error.hint("\"drover namespace ls\" shows those of a cluster"),
        _ => error,
    }
}

async fn move_namespaces(
    api: &Api,
    cluster: &Value,
    project: Option<&Value>,
    names: &[String],
) -> Result<(), CliError> {
    let body = assignment(project);
    for name in names {
        let path = format!("{}/{}", path(cluster), encode(name));
        let what = format!("moving namespace \"{name}\"");
        let moved = api.call(Method::PATCH, &path, Some(&body), &what).await;
        moved.map_err(with_list_hint)?;
        match project {
            Some(project) => {
                notify!("moved namespace {name} to project {}", text(project, "name"));
            }
            None => notify!("removed namespace {name} from its project"),
        }
    }
    Ok(())
}

async fn remove(api: &Api, cluster: &Value, names: &[String], yes: bool) -> Result<(), CliError> {
    let question = format!(
        "Delete {} of cluster {} with its contents?",
        names.join(", "),
        text(cluster, "name")
    );
    if !yes && !prompt::confirm(&question, "--yes")? {
        return Err(CliError::new(Failure::Other, "nothing was deleted"));
    }
    for name in names {
        let path = format!("{}/{}", path(cluster), encode(name));
        let what = format!("deleting namespace \"{name}\"");
        api.call(Method::DELETE, &path, None, &what).await.map_err(with_list_hint)?;
        notify!("deleting namespace {name}; it is deleted after its contents");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_names_the_project_whole_and_short() {
        let project = json!({"id": "c-abcde:p-12345"});
        let expected = json!({"metadata": {
            "annotations": {"field.cattle.io/projectId": "c-abcde:p-12345"},
            "labels": {"field.cattle.io/projectId": "p-12345"},
        }});
        assert_eq!(assignment(Some(&project)), expected);
        let none = assignment(None);
        assert!(none["metadata"]["annotations"][PROJECT_ID].is_null());
        assert!(
            none["metadata"]["labels"].as_object().is_some_and(|map| map.contains_key(PROJECT_ID))
        );
    }
}
