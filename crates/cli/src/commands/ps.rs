//! `drover ps`: the workloads of one cluster or of all, read concurrently through the server. A
//! cluster that does not respond is reported and does not delay the others.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api::{Api, encode, id, text};
use crate::args::PsArgs;
use crate::commands::{namespace, scope};
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn, age};

/// Number of clusters that are read concurrently.
const CLUSTERS_AT_ONCE: usize = 8;
/// Group, plural and kind of workloads.
const WORKLOADS: [(&str, &str, &str); 3] = [
    ("apis/apps/v1", "deployments", "Deployment"),
    ("apis/apps/v1", "statefulsets", "StatefulSet"),
    ("apis/apps/v1", "daemonsets", "DaemonSet"),
];
const PODS: [(&str, &str, &str); 1] = [("api/v1", "pods", "Pod")];

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "CLUSTER", cell: |row, _| text(row, "cluster").to_owned() },
    TableColumn { heading: "NAMESPACE", cell: |row, _| text(row, "namespace").to_owned() },
    TableColumn { heading: "KIND", cell: |row, _| text(row, "kind").to_owned() },
    TableColumn { heading: "NAME", cell: |row, _| text(row, "name").to_owned() },
    TableColumn { heading: "READY", cell: |row, _| text(row, "ready").to_owned() },
    TableColumn { heading: "STATE", cell: |row, _| text(row, "state").to_owned() },
    TableColumn { heading: "IMAGE", cell: |row, _| text(row, "image").to_owned() },
    TableColumn { heading: "AGE", cell: |row, now| age(text(row, "created"), now) },
];

/// Prints the workloads of one cluster or of all.
///
/// # Errors
/// A cluster could not be read; the workloads of the others are printed all the same.
pub async fn run(args: PsArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let (clusters, project) = select_clusters(&api, &args).await?;
    let total = clusters.len();
    let read_cluster = |cluster: Value| {
        let (api, project, args) = (api.another(), project.as_ref(), &args);
        async move {
            let within = timeout(args.timeout, read_cluster(&api, &cluster, project, args)).await;
            let result = within.unwrap_or_else(|_| Err(too_slow(args.timeout)));
            (cluster, result)
        }
    };
    // Results have the order of the clusters.
    let mut results =
        futures::stream::iter(clusters.into_iter().map(read_cluster)).buffered(CLUSTERS_AT_ONCE);
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    while let Some((cluster, result)) = results.next().await {
        match result {
            Ok(found) => rows.extend(found),
            Err(error) => {
                let name = text(&cluster, "name");
                notify!("warning: cluster {}: {}", name, error.message);
                failures.push(error);
            }
        }
    }
    if failures.len() < total || !args.output.output.is_table() {
        output::list(args.output.output, COLUMNS, &rows)?;
    }
    summary(failures, total)
}

/// The result of the command: an unreachable cluster takes precedence over one that refuses.
fn summary(mut failures: Vec<CliError>, total: usize) -> Result<(), CliError> {
    let text = format!("{} of {total} clusters could not be read", failures.len());
    let unreachable = failures.iter().position(|error| error.failure == Failure::Unreachable);
    if failures.is_empty() {
        return Ok(());
    }
    let worst = failures.swap_remove(unreachable.unwrap_or_default());
    let mut error = CliError::new(worst.failure, text);
    // Explains who can grant the missing right.
    error.denied = worst.denied;
    Err(match error.failure {
        Failure::Forbidden => error,
        _ => error.hint("\"drover cluster ls\" shows their states"),
    })
}

/// The clusters to read, and the project to filter by.
async fn select_clusters(
    api: &Api,
    args: &PsArgs,
) -> Result<(Vec<Value>, Option<Value>), CliError> {
    let (cluster, project) = (args.cluster.name(), args.project.project.as_deref());
    let chosen = &api.context().cluster;
    if !args.all_clusters && (cluster.is_some() || project.is_some() || !chosen.is_none()) {
        let (cluster, project) = scope::cluster_and_project(api, cluster, project).await?;
        return Ok((vec![cluster], project));
    }
    if args.all_clusters && project.is_some() {
        return Err(CliError::usage("a project is in one cluster")
            .hint("leave out --all-clusters or --project"));
    }
    let mut clusters = api.list("clusters", &[]).await?;
    clusters.sort_by(|a, b| text(a, "name").cmp(text(b, "name")));
    Ok((clusters, None))
}

fn too_slow(after: Duration) -> CliError {
    CliError::new(Failure::Unreachable, format!("no response within {} s", after.as_secs()))
}

async fn read_cluster(
    api: &Api,
    cluster: &Value,
    project: Option<&Value>,
    args: &PsArgs,
) -> Result<Vec<Value>, CliError> {
    let base = format!("/k8s/clusters/{}", encode(id(cluster)));
    let inside = match &args.namespace {
        Some(namespace) => format!("/namespaces/{}", encode(namespace)),
        None => String::new(),
    };
    let kinds = if args.pods { &PODS[..] } else { &WORKLOADS[..] };
    let mut rows = Vec::new();
    for (group, plural, kind) in kinds {
        let path = format!("{base}/{group}{inside}/{plural}");
        match api.list_kube(&path, &format!("listing {plural}")).await {
            Ok(found) if args.pods => rows.extend(found.iter().map(pod_row)),
            Ok(found) => rows.extend(found.iter().map(|object| workload_row(kind, object))),
            // A management API without a cluster does not have these kinds: nothing runs in it.
            Err(error) if error.failure == Failure::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(project) = project {
        let namespaces = api.list_kube(&namespace::path(cluster), "listing namespaces").await?;
        let inside = |row: &Value| {
            let mut in_project =
                namespaces.iter().filter(|n| namespace::project_of(n) == id(project));
            in_project.any(|n| n["metadata"]["name"] == row["namespace"])
        };
        rows.retain(inside);
    }
    rows.sort_by(|a, b| {
        let key = |row: &Value| [text(row, "namespace").to_owned(), text(row, "name").to_owned()];
        key(a).cmp(&key(b))
    });
    for row in &mut rows {
        row["cluster"] = text(cluster, "name").into();
        row["clusterId"] = id(cluster).into();
    }
    Ok(rows)
}

fn row(kind: &str, object: &Value, spec: &Value) -> Value {
    let containers = spec["containers"].as_array().into_iter().flatten();
    let images: Vec<&str> = containers.map(|container| text(container, "image")).collect();
    json!({
        "kind": kind,
        "namespace": text(&object["metadata"], "namespace"),
        "name": text(&object["metadata"], "name"),
        "image": images.join(","),
        "created": text(&object["metadata"], "creationTimestamp"),
    })
}

/// A Deployment, StatefulSet or DaemonSet.
fn workload_row(kind: &str, object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let (ready, desired) = match kind {
        "DaemonSet" => (&status["numberReady"], number(&status["desiredNumberScheduled"])),
        // The default is one.
        _ => (&status["readyReplicas"], spec["replicas"].as_u64().unwrap_or(1)),
    };
    let ready = number(ready);
    let state = match (ready, desired) {
        (_, 0) => "idle",
        (ready, desired) if ready >= desired => "running",
        _ => "updating",
    };
    let mut row = row(kind, object, &spec["template"]["spec"]);
    row["ready"] = format!("{ready}/{desired}").into();
    row["state"] = state.into();
    row
}

fn pod_row(object: &Value) -> Value {
    let all = object["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = all.iter().filter(|container| container["ready"] == true).count();
    let desired = object["spec"]["containers"].as_array().map_or(0, Vec::len);
    let mut waiting = all.iter().map(|one| text(&one["state"]["waiting"], "reason"));
    let reason = waiting.rfind(|reason| !reason.is_empty());
    let state = match (object["metadata"]["deletionTimestamp"].is_string(), reason) {
        (true, _) => "Terminating",
        (_, Some(reason)) => reason,
        _ => text(&object["status"], "phase"),
    };
    let mut row = row("Pod", object, &object["spec"]);
    row["ready"] = format!("{ready}/{desired}").into();
    row["state"] = state.into();
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_say_how_many_are_ready() {
        let object = |spec: Value, status: Value| {
            let metadata = json!({"namespace": "n", "name": "web"});
            json!({"metadata": metadata, "spec": spec, "status": status})
        };
        for (kind, spec, status, ready, state) in [
            ("Deployment", json!({"replicas": 2}), json!({"readyReplicas": 2}), "2/2", "running"),
            ("Deployment", json!({"replicas": 2}), json!({}), "0/2", "updating"),
            ("StatefulSet", json!({}), json!({"readyReplicas": 1}), "1/1", "running"),
            ("Deployment", json!({"replicas": 0}), json!({}), "0/0", "idle"),
            (
                "DaemonSet",
                json!({}),
                json!({"desiredNumberScheduled": 3, "numberReady": 1}),
                "1/3",
                "updating",
            ),
            ("Deployment", json!("odd"), json!(["odd"]), "0/1", "updating"),
        ] {
            let row = workload_row(kind, &object(spec, status));
            assert_eq!((text(&row, "ready"), text(&row, "state")), (ready, state), "{kind}");
        }
    }

    #[test]
    fn pods_say_what_they_wait_for() {
        let mut object = json!({
            "metadata": {"namespace": "n", "name": "p"},
            "spec": {"containers": [{"image": "a:1"}, {"image": "b:2"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"ready": true},
                {"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            ]},
        });
        let row = pod_row(&object);
        assert_eq!((text(&row, "ready"), text(&row, "state")), ("1/2", "CrashLoopBackOff"));
        assert_eq!(text(&row, "image"), "a:1,b:2");
        object["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        assert_eq!(text(&pod_row(&object), "state"), "Terminating");
        assert_eq!(text(&pod_row(&json!(7)), "state"), "");
    }
}
