//! Simulated machines: Node objects that are Ready, and their leases.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{DeleteOptions, ListQuery, WriteTarget};
use apiserver::strategy::Operation;
use serde_json::{Value, json};

use super::{World, owned, tolerate};

/// Label of the nodes that the simulator created and may delete.
const SIMULATED_NODE: &str = "sim.drover.io/node";
const LEASES: &str = "kube-node-lease";
/// A node counts as lost when its lease is older than this: three missed renewals.
const LEASE_SECONDS: i64 = 120;
const KUBELET: &str = "system:node";
/// Taint that admission puts on new nodes.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Name of the node with this index, from 0.
pub fn name(index: u32) -> String {
    format!("node-{}", index + 1)
}

/// Internal address of a node.
pub fn address(index: u32) -> String {
    format!("10.0.{}.{}", index / 250, index % 250 + 2)
}

/// The index in a node's name.
pub fn index_of(name: &str) -> Option<u32> {
    name.strip_prefix("node-")?.parse::<u32>().ok()?.checked_sub(1)
}

/// A Node object with eight processors.
fn node(index: u32) -> Value {
    let name = name(index);
    let now = owned::now();
    let resources =
        json!({"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "500"});
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let mut node = json!({
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node-role.kubernetes.io/worker": "true",
            },
        },
        "spec": {"podCIDR": format!("10.244.{}.0/24", index % 256),
                 "providerID": format!("sim://{name}")},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": address(index)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                    "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "containerRuntimeVersion": "sim://1",
                "kernelVersion": "6.12.0-sim",
                "kubeletVersion": kubernetes_api::assembly::GIT_VERSION,
                "machineID": format!("{index:032x}"),
                "operatingSystem": "linux",
                "osImage": "Simulated Linux",
                "systemUUID": format!("{index:032x}"),
            },
        },
    });
    node["metadata"]["labels"][SIMULATED_NODE] = "true".into();
    if index == 0 {
        node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = "true".into();
    }
    node
}

/// Creates missing nodes, and deletes surplus ones that the simulator created.
pub async fn ensure(world: &World, count: u32) -> Result<(), Status> {
    let options = World::options(KUBELET);
    for index in 0..count {
        let created = world.registry.create(&world.kinds.nodes, "", node(index), &options).await;
        tolerate(created)?;
    }
    let all = world.registry.list(&world.kinds.nodes, &ListQuery::all("")).await?;
    for found in all.items {
        let is_simulated = found.labels.iter().any(|(key, _)| **key == *SIMULATED_NODE);
        let is_desired = index_of(&found.name).is_some_and(|index| index < count);
        if is_simulated && !is_desired {
            let target =
                WriteTarget { resource: &world.kinds.nodes, namespace: "", name: &found.name };
            let plain = DeleteOptions::default();
            tolerate(world.registry.delete(&target, &plain, &options).await)?;
        }
    }
    heartbeat(world, count).await
}

/// Removes the not-ready taint from new nodes, like the node lifecycle controller does when they
/// are ready.
pub async fn release(world: &World, count: u32) -> Result<(), Status> {
    let options = World::options("kube-controller-manager");
    let change = |old: &Value| {
        let mut new = old.clone();
        if let Some(taints) = new["spec"].get_mut("taints").and_then(Value::as_array_mut) {
            taints.retain(|taint| taint["key"] != NOT_READY);
        }
        Ok(new)
    };
    for index in 0..count {
        let name = name(index);
        let target = WriteTarget { resource: &world.kinds.nodes, namespace: "", name: &name };
        tolerate(world.registry.modify(&target, Operation::Update, &options, &change).await)?;
    }
    Ok(())
}

/// Renews the lease of every node that still exists. Each write replaces the one before, so the
/// storage does not grow.
pub async fn heartbeat(world: &World, count: u32) -> Result<(), Status> {
    let Some(leases) = world.registry.find("coordination.k8s.io", "leases") else {
        return Ok(());
    };
    let options = World::options(KUBELET);
    let now = api_meta::time::format_micros(jiff::Timestamp::now().as_microsecond());
    for index in 0..count {
        let name = name(index);
        let Ok(node) = world.registry.get(&world.kinds.nodes, "", &name).await else { continue };
        let target = WriteTarget { resource: &leases, namespace: LEASES, name: &name };
        let renew = |old: &Value| {
            let mut new = old.clone();
            new["spec"]["renewTime"] = now.clone().into();
            new.remove_meta("resourceVersion");
            Ok(new)
        };
        match world.registry.modify(&target, Operation::Update, &options, &renew).await {
            Err(status) if status.code == 404 => {
                let lease = json!({
                    "metadata": {"name": name, "ownerReferences": [{
                        "apiVersion": "v1", "kind": "Node", "name": name, "uid": &*node.uid,
                    }]},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS,
                             "renewTime": now},
                });
                tolerate(world.registry.create(&leases, LEASES, lease, &options).await)?;
            }
            other => tolerate(other)?,
        }
    }
    Ok(())
}
