//! The downstream half of removal: one step, repeated until nothing of ours is left.

use std::fmt::Debug;
use std::time::Duration;

use api_management::cluster::LEFTOVERS;
use api_management::keys;
use controller::error::is_code;
use controller::scope::impersonate;
use feature_kit::ControllerIdentity;
use http::HeaderValue;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::report::{Left, Removed};
use crate::cluster_registration_token::manifest::AGENT_NAME;

/// Longest step; an agent that vanished in the middle of it must not hold it longer.
const STEP_TIME_MAX: Duration = Duration::from_secs(10);

/// How far the step came.
pub enum Step {
    /// Nothing of ours is left; with what this step removed.
    Done(Vec<Removed>),
    /// Our namespace is going; with what this step removed.
    Going(Vec<Removed>),
    /// The cluster cannot be reached, or no longer lets us in.
    Unreachable(String),
}

/// What a cluster has of ours at least, when nothing could be removed.
pub fn everything(why: &str) -> Vec<Left> {
    LEFTOVERS.map(|(kind, name)| Left::new("downstream", kind, "", name, why)).to_vec()
}

/// Takes the projects off the namespaces, deletes what carries our label, then our namespace, which
/// owns the agent and its rights. The agent's own rights must go last: they go with the namespace.
/// `cluster`: its id.
pub async fn step(client: &Client, cluster: &str) -> Step {
    match tokio::time::timeout(STEP_TIME_MAX, try_step(client, cluster)).await {
        Ok(Ok(step)) => step,
        Ok(Err(error)) => Step::Unreachable(error.to_string()),
        Err(_) => Step::Unreachable(format!("no answer within {} s", STEP_TIME_MAX.as_secs())),
    }
}

async fn try_step(client: &Client, cluster: &str) -> Result<Step, kube::Error> {
    let mut removed = Vec::new();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_opt(keys::SYSTEM_NS).await?;
    let Some(namespace) = namespace else {
        // Whoever still lets us in after the namespace has gone did not make it owner in time.
        removed.extend(delete_labelled::<ClusterRoleBinding>(client, |_| true).await?);
        removed.extend(delete_labelled::<ClusterRole>(client, |_| true).await?);
        return Ok(Step::Done(removed));
    };
    // Before the role under which that is done.
    release_namespaces(client, cluster).await?;
    release_pod_security(client).await?;
    let others = |name: &str| name != AGENT_NAME;
    removed.extend(delete_labelled::<ClusterRoleBinding>(client, others).await?);
    removed.extend(delete_labelled::<ClusterRole>(client, others).await?);
    if namespace.metadata.deletion_timestamp.is_none() {
        match namespaces.delete(keys::SYSTEM_NS, &DeleteParams::background()).await {
            Ok(_) => removed.push(Removed::new("Namespace", keys::SYSTEM_NS)),
            Err(error) if is_code(&error, 404) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Step::Going(removed))
}

/// Takes off the namespaces what belongs to their projects, as that controller.
async fn release_namespaces(client: &Client, cluster: &str) -> Result<(), kube::Error> {
    let user = ControllerIdentity::new(keys::OWNED_NAMESPACE_PROJECTS, Vec::new()).user();
    let user = HeaderValue::from_str(&user).expect("a name without line ends");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let writer: Api<Namespace> = Api::all(impersonate(client, &user));
    let of_projects = ListParams::default().labels(keys::PROJECT_ID);
    let off = json!({"metadata": {
        "annotations": {
            keys::PROJECT_ID: null,
            keys::RESOURCE_QUOTA: null,
            keys::CONTAINER_LIMITS: null,
            keys::STATUS: null,
        },
        "labels": {keys::PROJECT_ID: null},
    }});
    for namespace in namespaces.list_metadata(&of_projects).await?.items {
        let project = namespace.annotations().get(keys::PROJECT_ID);
        let owner = project.and_then(|id| id.split_once(':')).map(|(owner, _)| owner);
        if owner != Some(cluster) {
            continue;
        }
        let name = namespace.name_any();
        let patched =
            writer.patch_metadata(&name, &PatchParams::default(), &Patch::Merge(&off)).await;
        match patched {
            // Refused: the role went in an earlier step.
            Err(error) if is_code(&error, 404) || is_code(&error, 403) => {}
            done => drop(done?),
        }
    }
    Ok(())
}

/// Takes the Pod Security labels off that Drover applied, as that controller.
async fn release_pod_security(client: &Client) -> Result<(), kube::Error> {
    let user = ControllerIdentity::new(keys::OWNED_POD_SECURITY, Vec::new()).user();
    let user = HeaderValue::from_str(&user).expect("a name without line ends");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let writer: Api<Namespace> = Api::all(impersonate(client, &user));
    let options = PatchParams::apply(keys::POD_SECURITY_MANAGER).force();
    for namespace in namespaces.list_metadata(&ListParams::default()).await?.items {
        let managers = namespace.metadata.managed_fields.iter().flatten();
        let mut managers = managers.filter_map(|entry| entry.manager.as_deref());
        if !managers.any(|manager| manager == keys::POD_SECURITY_MANAGER) {
            continue;
        }
        let name = namespace.name_any();
        let none = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "uid": namespace.metadata.uid}});
        match writer.patch(&name, &options, &Patch::Apply(&none)).await {
            // Refused: the role went in an earlier step.
            Err(error) if [403, 404, 409].iter().any(|code| is_code(&error, *code)) => {}
            done => drop(done?),
        }
    }
    Ok(())
}

async fn delete_labelled<K>(
    client: &Client,
    is_selected: impl Fn(&str) -> bool,
) -> Result<Vec<Removed>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let ours = ListParams::default().labels(keys::DOWNSTREAM_OWNED);
    let mut removed = Vec::new();
    for object in api.list_metadata(&ours).await?.items {
        let name = object.name_any();
        if !is_selected(&name) {
            continue;
        }
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => removed.push(Removed::new(&K::kind(&()), &name)),
            Err(error) if is_code(&error, 404) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}
