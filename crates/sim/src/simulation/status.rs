//! The status that kubelets write.

use std::net::Ipv4Addr;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::WriteTarget;
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use serde_json::{Value, json};

use super::{World, nodes, owned, tolerate};

/// The user that writes the status.
pub const KUBELET: &str = "system:node";

/// Writes the status of a running pod; `statuses` returns those of its containers.
pub async fn set_running(
    world: &World,
    target: &WriteTarget<'_>,
    uid: &str,
    node: &str,
    address: Ipv4Addr,
    statuses: &(dyn Fn(&Value) -> Vec<Value> + Send + Sync),
) -> Result<(), Status> {
    let change = |old: &Value| {
        if old.uid() != uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        new["status"] = running_status(old, node, address, &statuses(old), &owned::now());
        Ok(new)
    };
    let options = World::options(KUBELET);
    let kind = Operation::UpdateStatus;
    tolerate(world.registry.modify(target, kind, &options, &change).await)
}

/// The status of a pod with these container statuses. It is Ready when all containers are.
fn running_status(
    pod: &Value,
    node: &str,
    address: Ipv4Addr,
    containers: &[Value],
    now: &str,
) -> Value {
    let before = &pod["status"];
    let ready = containers.iter().all(|container| container["ready"] == true);
    let condition = |kind: &str, is_true: bool| {
        let status = if is_true { "True" } else { "False" };
        let list = before["conditions"].as_array();
        let old = list.into_iter().flatten().find(|old| old["type"] == kind);
        let same = old.filter(|old| old["status"] == status);
        let since = same.and_then(|old| old["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since})
    };
    let host = nodes::index_of(node).map_or_else(|| "127.0.0.1".to_owned(), nodes::address);
    let existing_or = |field: &str, new: &str| before[field].as_str().unwrap_or(new).to_owned();
    let address = match pod["spec"]["hostNetwork"] == true {
        true => host.clone(),
        false => existing_or("podIP", &address.to_string()),
    };
    let mut status = json!({
        "phase": "Running",
        "conditions": [
            condition("PodReadyToStartContainers", true),
            condition("Initialized", true),
            condition("Ready", ready),
            condition("ContainersReady", ready),
            condition("PodScheduled", true),
        ],
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": existing_or("startTime", now),
        "containerStatuses": containers,
        "qosClass": before["qosClass"],
    });
    let inits = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
    if !inits.is_empty() {
        let done = json!({"terminated": {"exitCode": 0, "reason": "Completed",
                                         "startedAt": now, "finishedAt": now}});
        let statuses: Vec<Value> =
            inits.iter().map(|init| container_status(init, true, 0, done.clone())).collect();
        status["initContainerStatuses"] = statuses.into();
    }
    status
}

/// The statuses of a pod's containers, all running since `now`.
pub fn running_containers(pod: &Value, now: &str) -> Vec<Value> {
    let list = pod["spec"]["containers"].as_array();
    list.into_iter()
        .flatten()
        .map(|container| {
            container_status(container, true, 0, json!({"running": {"startedAt": now}}))
        })
        .collect()
}

/// The status of one container in `state`.
pub fn container_status(container: &Value, ready: bool, restarts: u32, state: Value) -> Value {
    let image = container["image"].as_str().unwrap_or_default();
    json!({
        "name": container["name"],
        "image": image,
        "imageID": format!("sim://{image}"),
        "containerID": format!("sim://{}", container["name"].as_str().unwrap_or_default()),
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    })
}

/// Reports that a pod's containers succeeded.
pub async fn set_succeeded(world: &World, pod: &Stored) -> Result<(), Status> {
    let target =
        WriteTarget { resource: &world.kinds.pods, namespace: &pod.namespace, name: &pod.name };
    let change = |old: &Value| {
        if old.uid() != &*pod.uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        new["status"] = succeeded_status(&old["status"], &owned::now());
        Ok(new)
    };
    let options = World::options(KUBELET);
    let kind = Operation::UpdateStatus;
    tolerate(world.registry.modify(&target, kind, &options, &change).await)
}

fn succeeded_status(before: &Value, now: &str) -> Value {
    let mut status = before.clone();
    status["phase"] = "Succeeded".into();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if matches!(condition["type"].as_str(), Some("Ready" | "ContainersReady")) {
            condition["status"] = "False".into();
            condition["reason"] = "PodCompleted".into();
            condition["lastTransitionTime"] = now.into();
        }
    }
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        let started = container["state"]["running"]["startedAt"].take();
        container["ready"] = false.into();
        container["started"] = false.into();
        container["state"] = json!({"terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now,
        }});
    }
    status
}
