//! Records, once per cluster, the projects that its namespaces were in when their annotation alone
//! said so. From then on only assignments count.

use std::time::Duration;

use api_management::namespace_assignment::Assignment;
use api_management::{Cluster, NamespaceAssignment};
use backoff::Backoff;
use controller::{Attempt, Key, ReconcileError, Reflector, StatusPatch, StatusTarget, ensure};
use kube::Api;

use super::controller::{NamespaceProjects, Seen};
use super::step::Claim;

/// Waits before further attempts: at first others may only have written to the cluster meanwhile.
const RETRY: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(30)).with_jitter(0.25);
/// Field of the cluster's status that says that it is done.
const DONE: &str = "namespacesAssigned";

/// Returns once the assignments of the cluster are recorded, now or earlier.
pub(super) async fn run(here: &NamespaceProjects, cluster: &str, namespaces: &Reflector<Seen>) {
    let mut failures = 0;
    while let Err(error) = record(here, cluster, namespaces).await {
        let error = error.chain();
        tracing::warn!(%cluster, error, "the projects of the cluster's namespaces cannot be recorded yet");
        failures += 1;
        tokio::time::sleep(RETRY.delay(failures)).await;
    }
}

async fn record(
    here: &NamespaceProjects,
    cluster: &str,
    namespaces: &Reflector<Seen>,
) -> Result<(), ReconcileError> {
    let clusters: Api<Cluster> = Api::all(here.client.clone());
    let stored = clusters.get(cluster).await.attempt(|| format!("read cluster \"{cluster}\""))?;
    if stored.status.namespaces_assigned {
        return Ok(());
    }
    let assignments: Api<NamespaceAssignment> = Api::namespaced(here.client.clone(), cluster);
    for (key, namespace) in namespaces.all() {
        let claim = Claim::of(namespace.project.as_deref(), cluster);
        let Some(name) = claim.project().filter(|_| !namespace.terminating) else { continue };
        let Some(project) = here.projects.get(&Key::namespaced(cluster, name)) else { continue };
        let mut assignment = NamespaceAssignment::default();
        assignment.metadata.name = Some(key.name.clone());
        assignment.metadata.namespace = Some(cluster.to_owned());
        assignment.spec.assigned = Some(Assignment {
            project: name.to_owned(),
            project_uid: project.metadata.uid.clone().unwrap_or_default(),
            namespace_uid: namespace.uid.clone(),
        });
        ensure::created(&assignments, &assignment).await?;
    }
    let target = StatusTarget::of::<Cluster>("", cluster);
    StatusPatch::new().field(DONE, true).write(&here.client, &target).await.map(drop)
}
