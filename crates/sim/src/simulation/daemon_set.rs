//! Invariant: a daemon set has one live pod of its template on every node that it selects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{ListQuery, ReadVersion, WriteTarget};
use apiserver::stored::Stored;
use serde_json::{Value, json};

use super::machine::selects_node;
use super::owned;
use super::pods::field;
use super::replica_set::{self, MemberPod};
use super::{ObjectKey, World, key_of, tolerate};

const COMPONENT: &str = "system:serviceaccount:kube-system:daemon-set-controller";
/// Counts that are also written when they are zero.
const REQUIRED: [&str; 4] =
    ["desiredNumberScheduled", "currentNumberScheduled", "numberMisscheduled", "numberReady"];
/// Label with the hash of the template that a pod was created from.
const REVISION: &str = "controller-revision-hash";

/// The keys of all daemon sets.
pub fn all(world: &World) -> Vec<ObjectKey> {
    use futures::FutureExt;
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
    let list = world.registry.list(&world.kinds.daemon_sets, &query).now_or_never();
    match list {
        Some(Ok(list)) => list.items.iter().map(|object| key_of(object)).collect(),
        _ => Vec::new(),
    }
}

/// Creates and deletes pods of one daemon set, and writes its status. A deleted set is no error.
///
/// # Errors
/// A request is refused.
pub async fn reconcile(world: &World, key: &ObjectKey) -> Result<(), Status> {
    let kind = &world.kinds.daemon_sets;
    let set = match world.registry.get(kind, &key.0, &key.1).await {
        Err(status) if status.code == 404 => return Ok(()),
        other => other?.value(),
    };
    if set.is_terminating() {
        return Ok(());
    }
    let selector =
        LabelSelector::from_object(&set["spec"]["selector"]).map_err(Status::internal)?;
    let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
    let nodes: BTreeSet<String> = world
        .registry
        .list(&world.kinds.nodes, &query)
        .await?
        .items
        .iter()
        .filter(|node| selects_node(&set["spec"]["template"]["spec"], &node.name, &node.labels))
        .map(|node| node.name.to_string())
        .collect();
    let members = replica_set::members(world, &key.0, selector, "DaemonSet", &set).await?;
    let hash = owned::template_hash(&set["spec"]["template"]);
    let plan = plan(world, &nodes, &members, &hash);
    replica_set::delete(world, &plan.surplus).await?;
    for node in &plan.missing {
        let pod = desired_pod(&set, node, &hash);
        let options = World::options(COMPONENT);
        tolerate(world.registry.create(&world.kinds.pods, &key.0, pod, &options).await)?;
    }
    let status = json!({
        "desiredNumberScheduled": nodes.len(),
        "currentNumberScheduled": plan.current,
        "numberMisscheduled": plan.misplaced,
        "numberReady": plan.ready,
        "numberAvailable": plan.ready,
        "numberUnavailable": nodes.len().saturating_sub(plan.ready),
        "updatedNumberScheduled": plan.updated,
        "observedGeneration": set.generation(),
    });
    let target = WriteTarget { resource: kind, namespace: &key.0, name: &key.1 };
    replica_set::set_status(world, &target, set.uid(), (&status, &REQUIRED), COMPONENT).await
}

#[derive(Default)]
struct Plan {
    missing: Vec<String>,
    surplus: Vec<Arc<Stored>>,
    current: usize,
    ready: usize,
    updated: usize,
    misplaced: usize,
}

/// Plans one pod of the newest template on each node; everything else is surplus.
fn plan(world: &World, nodes: &BTreeSet<String>, members: &[MemberPod], hash: &str) -> Plan {
    let mut plan = Plan::default();
    let mut by_node: BTreeMap<&str, Vec<&MemberPod>> = BTreeMap::new();
    for member in members {
        by_node
            .entry(field(&world.kinds.pods, &member.object, "spec.nodeName"))
            .or_default()
            .push(member);
    }
    for (node, members) in &by_node {
        if !nodes.contains(*node) {
            plan.misplaced += members.len();
            plan.surplus.extend(members.iter().map(|member| member.object.clone()));
        }
    }
    let is_new = |member: &MemberPod| {
        member.object.labels.iter().any(|(key, value)| **key == *REVISION && **value == *hash)
    };
    for node in nodes {
        let members = by_node.get(node.as_str()).map(Vec::as_slice).unwrap_or_default();
        let current_pod = members.iter().find(|member| is_new(member));
        for other in members {
            if !current_pod.is_some_and(|current_pod| std::ptr::eq(*current_pod, *other)) {
                plan.surplus.push(other.object.clone());
            }
        }
        match current_pod {
            Some(current_pod) => {
                plan.current += 1;
                plan.updated += 1;
                plan.ready += usize::from(current_pod.running);
            }
            // The old one is deleted first: both may need the same port of the node.
            None if members.is_empty() => plan.missing.push(node.clone()),
            None => plan.current += 1,
        }
    }
    plan
}

fn desired_pod(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = owned::pod(set, owned::reference("apps/v1", "DaemonSet", set));
    pod["metadata"]["labels"][REVISION] = hash.into();
    pod["spec"]["nodeName"] = node.into();
    pod
}
