//! Actions on workloads, done as the caller: what they change is one update of the object.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;
use jiff::Timestamp;
use rest_view::{Action, ActionRequest, ActionResponse, ApiError, Key, ListScope, Store};
use serde_json::Value;

use super::flat::{self, STORED};
use super::kind::WorkloadKind;
use super::path::{object, read_keys, write_keys};
use super::store::store_key;
use super::types::Types;

/// Annotation of pod templates that a redeployment changes.
const TIMESTAMP: &str = "cattle.io/timestamp";
/// Annotation of Deployments and their ReplicaSets.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Attempts of an update that meets concurrent writes.
const ATTEMPTS_MAX: usize = 5;

/// The actions of a type that shows these kinds. `replica_sets`: where revisions of Deployments
/// are.
pub fn of_type(
    kinds: &[WorkloadKind],
    types: &Arc<Types>,
    replica_sets: &Arc<dyn Store>,
) -> Vec<Action> {
    let mut actions = Vec::new();
    if kinds.iter().any(|kind| is_redeployable(*kind)) {
        let can = |flat: &Value| WorkloadKind::of_object(flat).is_some_and(is_redeployable);
        actions.push(Action::new("redeploy", redeploy).available_when(move |flat, _| can(flat)));
    }
    if !kinds.contains(&WorkloadKind::Deployment) {
        return actions;
    }
    let is_deployment =
        |flat: &Value| WorkloadKind::of_object(flat) == Some(WorkloadKind::Deployment);
    let input = if kinds.len() > 1 { "rollbackRevision" } else { "deploymentRollbackInput" };
    let rollback = Rollback { types: types.clone(), replica_sets: replica_sets.clone() };
    actions.extend([
        Action::new("pause", pause),
        Action::new("resume", resume),
        Action::new("rollback", rollback).input(input),
    ]);
    let of_deployments = |action: Action| match action.name.as_str() {
        "redeploy" => action,
        _ => action.available_when(move |flat, _| is_deployment(flat)),
    };
    actions.into_iter().map(of_deployments).collect()
}

fn is_redeployable(kind: WorkloadKind) -> bool {
    !matches!(kind, WorkloadKind::Job | WorkloadKind::Pod)
}

fn redeploy(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(change(request, |flat| {
        let annotations = object(flat).entry("annotations").or_insert(Value::Null);
        object(annotations).insert(TIMESTAMP.to_owned(), Timestamp::now().to_string().into());
        Ok(())
    }))
}

fn pause(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(change(request, |flat| set_paused(flat, true)))
}

fn resume(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(change(request, |flat| set_paused(flat, false)))
}

fn set_paused(flat: &mut Value, paused: bool) -> Result<(), ApiError> {
    let is_paused = flat.get("paused") == Some(&Value::Bool(true));
    if is_paused == paused {
        let text = match paused {
            true => "the deployment is paused already",
            false => "the deployment is not paused: only a paused one can be resumed",
        };
        return Err(ApiError::new(422, "InvalidAction", text));
    }
    object(flat).insert("paused".to_owned(), paused.into());
    Ok(())
}

/// One change of the object of the action, repeated after a concurrent write.
async fn change(
    request: ActionRequest<'_>,
    apply: impl Fn(&mut Value) -> Result<(), ApiError> + Send,
) -> Result<ActionResponse, ApiError> {
    let ActionRequest { context, descriptor, .. } = request;
    let mut flat = request.object.cloned().ok_or_else(ApiError::no_such_id)?;
    let kind = WorkloadKind::of_object(&flat).ok_or_else(ApiError::no_such_id)?;
    let key = store_key(kind, &Key::of(&flat));
    let mut attempt = 1;
    loop {
        apply(&mut flat)?;
        match descriptor.store.replace(context, &key, flat).await {
            Ok(_) => return Ok(ActionResponse::Empty(StatusCode::OK)),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(error),
        }
        flat = descriptor.store.get(context, &key).await?;
    }
}

/// Back to the pods of an earlier revision: the template's specification is that of the ReplicaSet;
/// its labels and annotations stay.
struct Rollback {
    types: Arc<Types>,
    replica_sets: Arc<dyn Store>,
}

impl rest_view::ActionHandler for Rollback {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let deployment = request.object.ok_or_else(ApiError::no_such_id)?;
            let said = |key: &str| {
                let text = request.input.get(key).and_then(Value::as_str);
                text.filter(|text| !text.is_empty()).map(str::to_owned)
            };
            let requested = said("replicaSetId").or(said("revisionId")).ok_or_else(|| {
                let text = "say with \"replicaSetId\" to which ReplicaSet of the deployment, \
                     as replicaset:<namespace>:<name>";
                ApiError::invalid_field("MissingRequired", "replicaSetId", text)
            })?;
            let scope = ListScope { namespace: Some(Key::of(deployment).namespace) };
            let found = self.replica_sets.list(request.context, &scope).await?;
            let is_requested = |set: &&Value| {
                is_owned(set, deployment)
                    && (WorkloadKind::ReplicaSet.id_of(&Key::of(set)) == requested
                        || revision(set).is_some_and(|revision| revision == requested))
            };
            let set = found.iter().find(is_requested).ok_or_else(|| {
                let text = format!("\"{requested}\" is no ReplicaSet of this deployment");
                ApiError::invalid_field("InvalidReference", "replicaSetId", text)
            })?;
            let way = WorkloadKind::ReplicaSet.pod_spec();
            let spec = read_keys(set, way).cloned().unwrap_or_default();
            let types = self.types.clone();
            change(request, move |flat| {
                let mut stored = flat.get(STORED).cloned().unwrap_or_default();
                write_keys(&mut stored, WorkloadKind::Deployment.pod_spec(), spec.clone());
                *flat = flat::get(&types, WorkloadKind::Deployment, &stored);
                Ok(())
            })
            .await
        })
    }
}

/// Whether a ReplicaSet belongs to a Deployment.
pub fn is_owned(set: &Value, deployment: &Value) -> bool {
    let uid = read_keys(deployment, &["metadata", "uid"]);
    let owners = read_keys(set, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    uid.is_some() && owners.into_iter().flatten().any(|owner| owner.get("uid") == uid)
}

fn revision(set: &Value) -> Option<&str> {
    read_keys(set, &["metadata", "annotations", REVISION])?.as_str()
}
