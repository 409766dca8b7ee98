//! Invariant: a replica set has the desired number of live pods, and its status reports their
//! number. The same holds for replication controllers.

use std::sync::Arc;

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::Resource;
use apiserver::registry::{DeleteOptions, ListQuery, ReadVersion, WriteTarget};
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::owned::{self, number};
use super::pods::{is_finished, is_running};
use super::{ObjectKey, World, tolerate};

/// The controller of one of the two kinds that own a number of pods.
pub struct SetController {
    kind: &'static str,
    component: &'static str,
}

pub const REPLICA_SETS: SetController = SetController {
    kind: "ReplicaSet",
    component: "system:serviceaccount:kube-system:replicaset-controller",
};
/// The older kind: the same with a plain map as selector.
pub const REPLICATION_CONTROLLERS: SetController = SetController {
    kind: "ReplicationController",
    component: "system:serviceaccount:kube-system:replication-controller",
};

/// Pods created or deleted concurrently.
const PARALLEL: usize = 32;

/// A live pod of a controller.
pub struct MemberPod {
    pub object: Arc<Stored>,
    pub running: bool,
}

/// Creates and deletes pods of one set, and writes its status. A deleted set is no error.
///
/// # Errors
/// A request is refused.
pub async fn reconcile(
    world: &World,
    controller: &SetController,
    key: &ObjectKey,
) -> Result<(), Status> {
    let kind = controller.resource(world);
    let set = match world.registry.get(kind, &key.0, &key.1).await {
        Err(status) if status.code == 404 => return Ok(()),
        other => other?.value(),
    };
    if set.is_terminating() {
        return Ok(());
    }
    let selector = controller.selector(&set["spec"]["selector"])?;
    let members = members(world, &key.0, selector, controller.kind, &set).await?;
    let desired = usize::try_from(number(&set["spec"]["replicas"])).unwrap_or_default();
    if members.len() < desired {
        create(world, controller, &set, desired - members.len()).await?;
    }
    let surplus = surplus(&members, desired);
    delete(world, &surplus).await?;
    write_status(world, controller, &set, &members).await
}

impl SetController {
    fn resource<'a>(&self, world: &'a World) -> &'a Arc<Resource> {
        match self.kind {
            "ReplicaSet" => &world.kinds.replica_sets,
            _ => &world.kinds.replication_controllers,
        }
    }

    fn selector(&self, selector: &Value) -> Result<LabelSelector, Status> {
        let selector = match self.kind {
            "ReplicaSet" => LabelSelector::from_object(selector),
            _ => LabelSelector::from_object(&json!({"matchLabels": selector})),
        };
        selector.map_err(Status::internal)
    }
}

/// The API version of a kind of controllers of pods.
fn api_version(kind: &str) -> &'static str {
    if kind == REPLICATION_CONTROLLERS.kind { "v1" } else { "apps/v1" }
}

/// The live pods that the owner controls. Matching ones without a controller are adopted.
pub async fn members(
    world: &World,
    namespace: &str,
    selector: LabelSelector,
    kind: &str,
    owner: &Value,
) -> Result<Vec<MemberPod>, Status> {
    let pods = &world.kinds.pods;
    let query =
        ListQuery { labels: selector, version: ReadVersion::Any, ..ListQuery::all(namespace) };
    let mut members = Vec::new();
    for object in world.registry.list(pods, &query).await?.items {
        let ownership = owned::ownership(&object);
        if ownership.terminating || is_finished(pods, &object) {
            continue;
        }
        match &ownership.controller {
            Some((_, _, uid)) if uid == owner.uid() => {}
            Some(_) => continue,
            None => adopt(world, &object, kind, owner).await?,
        }
        let running = is_running(pods, &object);
        members.push(MemberPod { object, running });
    }
    Ok(members)
}

async fn adopt(world: &World, pod: &Stored, kind: &str, owner: &Value) -> Result<(), Status> {
    let target =
        WriteTarget { resource: &world.kinds.pods, namespace: &pod.namespace, name: &pod.name };
    let change = |old: &Value| {
        let mut new = old.clone();
        let mut owners = old["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.push(owned::reference(api_version(kind), kind, owner));
        new.set_meta("ownerReferences", owners);
        Ok(new)
    };
    let options = World::options(REPLICA_SETS.component);
    tolerate(world.registry.modify(&target, Operation::Update, &options, &change).await)
}

/// The pods to delete: those that do not run first, then the newest.
fn surplus(members: &[MemberPod], desired: usize) -> Vec<Arc<Stored>> {
    let mut order: Vec<&MemberPod> = members.iter().collect();
    order.sort_by_key(|member| (!member.running, std::cmp::Reverse(member.object.revision)));
    order.sort_by_key(|member| member.running);
    let count = members.len().saturating_sub(desired);
    order.into_iter().take(count).map(|member| member.object.clone()).collect()
}

/// Runs the work, up to [`PARALLEL`] concurrently. Results are in no order.
pub async fn run_concurrently<T>(work: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    futures::stream::iter(work).buffer_unordered(PARALLEL).collect().await
}

async fn create(
    world: &World,
    controller: &SetController,
    set: &Value,
    count: usize,
) -> Result<(), Status> {
    let options = World::options(controller.component);
    let reference = owned::reference(api_version(controller.kind), controller.kind, set);
    let pod = owned::pod(set, reference);
    let kind = &world.kinds.pods;
    let work = (0..count).map(|_| {
        let made = world.registry.create(kind, set.namespace(), pod.clone(), &options);
        async move { tolerate(made.await) }.boxed()
    });
    run_concurrently(work.collect()).await.into_iter().collect()
}

/// Deletes pods, each only if its uid is unchanged.
pub async fn delete(world: &World, pods: &[Arc<Stored>]) -> Result<(), Status> {
    let options = World::options(REPLICA_SETS.component);
    let kind = &world.kinds.pods;
    let options = &options;
    let work = pods.iter().map(|pod| {
        async move {
            let target = WriteTarget { resource: kind, namespace: &pod.namespace, name: &pod.name };
            let same = DeleteOptions { uid: Some(pod.uid.to_string()), ..DeleteOptions::default() };
            tolerate(world.registry.delete(&target, &same, options).await)
        }
        .boxed()
    });
    run_concurrently(work.collect()).await.into_iter().collect()
}

async fn write_status(
    world: &World,
    controller: &SetController,
    set: &Value,
    members: &[MemberPod],
) -> Result<(), Status> {
    let ready = members.iter().filter(|member| member.running).count();
    let status = json!({
        "replicas": members.len(),
        "fullyLabeledReplicas": members.len(),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": set.generation(),
    });
    let resource = controller.resource(world);
    let target = WriteTarget { resource, namespace: set.namespace(), name: set.name() };
    set_status(world, &target, set.uid(), (&status, &["replicas"]), controller.component).await
}

/// Writes a controller's part of the status of exactly the object with `uid`, and the counts in it
/// that are also written when they are zero; see [`owned::with_own_status`].
pub async fn set_status(
    world: &World,
    target: &WriteTarget<'_>,
    uid: &str,
    (own, required): (&Value, &[&str]),
    component: &str,
) -> Result<(), Status> {
    let change = |old: &Value| {
        if old.uid() != uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        new["status"] = owned::with_own_status(&old["status"], own, required);
        Ok(new)
    };
    let options = World::options(component);
    tolerate(world.registry.modify(target, Operation::UpdateStatus, &options, &change).await)
}
