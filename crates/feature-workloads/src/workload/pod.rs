//! What the view knows of pods beside their specification: how their containers are, and which
//! workload they are of.

use serde_json::{Map, Value};

use super::kind::WorkloadKind;
use super::path::read_keys;

/// Label of pods of a Deployment: the end of their ReplicaSet's name.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// What [`show_states`] says of a container, which is not for anybody to write.
pub const STATES: [&str; 5] =
    ["state", "transitioning", "transitioningMessage", "restartCount", "exitCode"];

/// Adds the state of each container. `containers`: as the view has them.
pub fn show_states(status: &Value, containers: &mut Value) {
    let all = ["containerStatuses", "initContainerStatuses"];
    let statuses: Vec<&Value> = all
        .iter()
        .flat_map(|key| status.get(key).and_then(Value::as_array).into_iter().flatten())
        .collect();
    let containers = containers.as_array_mut().into_iter().flatten();
    for container in containers.filter_map(Value::as_object_mut) {
        let name = container.get("name");
        match statuses.iter().find(|status| status.get("name") == name) {
            Some(status) => show_state(status, container),
            None => drop(container.insert("state".to_owned(), "unknown".into())),
        }
    }
}

fn show_state(status: &Value, container: &mut Map<String, Value>) {
    let state = |key: &str| read_keys(status, &["state", key]);
    let ready = status.get("ready") == Some(&Value::Bool(true));
    let (word, transitioning, of) = if let Some(ended) = state("terminated") {
        let failed = ended.get("exitCode").is_some_and(|code| *code != 0);
        ("terminated", if failed { "error" } else { "no" }, Some(ended))
    } else if state("running").is_some() {
        if ready { ("running", "no", None) } else { ("notready", "yes", None) }
    } else if let Some(waiting) = state("waiting") {
        ("waiting", "yes", Some(waiting))
    } else {
        ("pending", "no", None)
    };
    let text = |key: &str| of.and_then(|of| of.get(key)).and_then(Value::as_str);
    let message = match (text("reason"), text("message")) {
        (reason, None) => reason.unwrap_or_default().to_owned(),
        (reason, Some(message)) => format!("{}: {message}", reason.unwrap_or_default()),
    };
    let code = of.and_then(|of| of.get("exitCode")).cloned();
    let restarts = status.get("restartCount").cloned().unwrap_or_else(|| 0.into());
    let values =
        [Some(word.into()), Some(transitioning.into()), Some(message.into()), Some(restarts), code];
    let said = STATES.into_iter().zip(values);
    container.extend(said.filter_map(|(key, value)| Some((key.to_owned(), value?))));
}

/// The id of the workload of a pod: its controller, or the Deployment of its ReplicaSet. `owner_of`
/// returns the controller of a Job, as far as the caller may see it.
pub fn workload_id(
    pod: &Value,
    owner_of: impl Fn(&str) -> Option<(WorkloadKind, String)>,
) -> Option<String> {
    let namespace = read_keys(pod, &["metadata", "namespace"])?.as_str()?;
    let (kind, name) = controller(pod)?;
    let hash = read_keys(pod, &["metadata", "labels", TEMPLATE_HASH]).and_then(Value::as_str);
    let (kind, name) = match (kind, hash) {
        (WorkloadKind::ReplicaSet, Some(hash)) => match name.strip_suffix(&format!("-{hash}")) {
            Some(deployment) => (WorkloadKind::Deployment, deployment.to_owned()),
            None => (kind, name),
        },
        (WorkloadKind::Job, _) => owner_of(&name).unwrap_or((kind, name)),
        _ => (kind, name),
    };
    let key = rest_view::Key { namespace: namespace.to_owned(), name };
    Some(kind.id_of(&key))
}

/// The kind and name of the controller of an object, if it is one of a workload.
pub fn controller(stored: &Value) -> Option<(WorkloadKind, String)> {
    let owners = read_keys(stored, &["metadata", "ownerReferences"])?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let name = owner.get("name")?.as_str()?.to_owned();
    let kind =
        WorkloadKind::of_object(owner).filter(|kind| WorkloadKind::WORKLOADS.contains(kind))?;
    Some((kind, name))
}

/// Whether an object belongs to another workload, so that lists leave it out.
pub fn is_hidden(stored: &Value) -> bool {
    let owners = read_keys(stored, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        matches!(
            WorkloadKind::of_object(owner),
            Some(WorkloadKind::Deployment | WorkloadKind::CronJob)
        )
    })
}
