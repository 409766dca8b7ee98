//! Invariant: a deployment's newest template has a replica set with all replicas, and older replica
//! sets shrink as the new one becomes available.
//!
//! Owns the conditions Available and Progressing of deployments.

use std::sync::Arc;

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{DeleteOptions, ListQuery, ReadVersion, WriteTarget};
use apiserver::strategy::Operation;
use serde_json::{Value, json};

use super::owned::{self, TEMPLATE_HASH, number};
use super::replica_set::set_status;
use super::{ObjectKey, World, tolerate};

const COMPONENT: &str = "system:serviceaccount:kube-system:deployment-controller";
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Attempts at a name for a new replica set.
const NAMES_MAX: u32 = 4;

/// One replica set of the deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    pub name: String,
    pub is_new: bool,
    pub revision: i64,
    /// Desired replicas, `spec.replicas`.
    pub desired: i64,
    /// Replicas that exist and that are available.
    pub existing: i64,
    pub available: i64,
}

/// How a change of template is rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// Old pods are deleted first, then new ones are created.
    Recreate,
    /// At most `surge` pods above the desired number, at most `unavailable` below it.
    Rolling { surge: i64, unavailable: i64 },
}

impl Rollout {
    /// The rollout by the strategy of a deployment. Percentages are of the `desired` replicas.
    pub fn of(strategy: &Value, desired: i64) -> Self {
        if strategy["type"] == "Recreate" {
            return Self::Recreate;
        }
        let rolling = &strategy["rollingUpdate"];
        let resolved = |value: &Value, up: bool| match value {
            Value::String(text) => {
                let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(25);
                let exact = percent * desired;
                if up { (exact + 99) / 100 } else { exact / 100 }
            }
            other => other.as_i64().unwrap_or_default(),
        };
        let surge = resolved(&rolling["maxSurge"], true);
        let unavailable = resolved(&rolling["maxUnavailable"], false);
        // At least one of them must be above zero, or nothing could change.
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        Self::Rolling { surge, unavailable }
    }
}

/// The desired replicas of each replica set, in the order given.
pub fn desired_replicas(rollout: Rollout, desired: i64, sets: &[Generation]) -> Vec<i64> {
    let old: Vec<&Generation> = sets.iter().filter(|set| !set.is_new).collect();
    let old_existing: i64 = old.iter().map(|set| set.existing.max(set.desired)).sum();
    match rollout {
        Rollout::Recreate => {
            let may_start = old.iter().all(|set| set.existing == 0);
            let new = |set: &Generation| if may_start { desired } else { set.desired.min(desired) };
            sets.iter().map(|set| if set.is_new { new(set) } else { 0 }).collect()
        }
        Rollout::Rolling { surge, unavailable } => {
            let available: i64 = sets.iter().map(|set| set.available).sum();
            let mut spare = (available - (desired - unavailable)).max(0);
            // Removing pods that are not available reduces no availability.
            let mut shrink = |set: &Generation| {
                let idle = (set.desired - set.available).max(0);
                let taken = spare.min(set.desired - idle);
                spare -= taken;
                set.desired - idle - taken
            };
            sets.iter()
                .map(|set| {
                    if set.is_new {
                        let room = (desired + surge - old_existing - set.desired).max(0);
                        (set.desired + room).min(desired)
                    } else {
                        shrink(set)
                    }
                })
                .collect()
        }
    }
}

/// Scales the replica sets of one deployment, and writes its status. A deleted deployment is no
/// error.
///
/// # Errors
/// A request is refused.
pub async fn reconcile(world: &World, key: &ObjectKey) -> Result<(), Status> {
    let kind = &world.kinds.deployments;
    let deployment = match world.registry.get(kind, &key.0, &key.1).await {
        Err(status) if status.code == 404 => return Ok(()),
        other => other?.value(),
    };
    if deployment.is_terminating() {
        return Ok(());
    }
    let hash = owned::template_hash(&deployment["spec"]["template"]);
    let mut sets = owned_sets(world, &deployment, &hash).await?;
    let paused = deployment["spec"]["paused"] == true;
    if !paused && !sets.iter().any(|(set, _)| set.is_new) {
        create_set(world, &deployment, &hash, next_revision(&sets)).await?;
        // The event of the creation triggers the next reconciliation.
        return Ok(());
    }
    record_revision(world, key, &deployment, &sets).await?;
    let desired = number(&deployment["spec"]["replicas"]);
    let generations: Vec<Generation> = sets.iter().map(|(set, _)| set.clone()).collect();
    let rollout = Rollout::of(&deployment["spec"]["strategy"], desired);
    let replicas = desired_replicas(rollout, desired, &generations);
    for ((set, uid), replicas) in sets.iter_mut().zip(replicas) {
        if set.desired != replicas {
            scale(world, &key.0, set, uid, replicas).await?;
            set.desired = replicas;
        }
    }
    prune(world, &key.0, &deployment, &sets).await?;
    let status = desired_status(&deployment, &generations, &owned::now());
    let target = WriteTarget { resource: kind, namespace: &key.0, name: &key.1 };
    set_status(world, &target, deployment.uid(), (&status, &[]), COMPONENT).await
}

/// The replica sets that the deployment controls, with their uids. Matching ones without a
/// controller are adopted.
async fn owned_sets(
    world: &World,
    deployment: &Value,
    hash: &str,
) -> Result<Vec<(Generation, Arc<str>)>, Status> {
    let selector =
        LabelSelector::from_object(&deployment["spec"]["selector"]).map_err(Status::internal)?;
    let namespace = deployment.namespace();
    let query =
        ListQuery { labels: selector, version: ReadVersion::Any, ..ListQuery::all(namespace) };
    let mut sets = Vec::new();
    for object in world.registry.list(&world.kinds.replica_sets, &query).await?.items {
        let ownership = owned::ownership(&object);
        if ownership.terminating {
            continue;
        }
        let set = object.value();
        match &ownership.controller {
            Some((_, _, uid)) if uid == deployment.uid() => {}
            Some(_) => continue,
            None => adopt(world, &set, deployment).await?,
        }
        let is_new = set.label(TEMPLATE_HASH) == Some(hash);
        let generation = Generation {
            name: object.name.to_string(),
            is_new,
            revision: set.annotation(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0),
            desired: number(&set["spec"]["replicas"]),
            existing: number(&set["status"]["replicas"]),
            available: number(&set["status"]["availableReplicas"]),
        };
        sets.push((generation, Arc::from(&*object.uid)));
    }
    Ok(sets)
}

fn next_revision(sets: &[(Generation, Arc<str>)]) -> i64 {
    sets.iter().map(|(set, _)| set.revision).max().unwrap_or(0) + 1
}

async fn adopt(world: &World, set: &Value, deployment: &Value) -> Result<(), Status> {
    let target = WriteTarget {
        resource: &world.kinds.replica_sets,
        namespace: set.namespace(),
        name: set.name(),
    };
    let change = |old: &Value| {
        let mut new = old.clone();
        let reference = owned::reference("apps/v1", "Deployment", deployment);
        new.set_meta("ownerReferences", vec![reference]);
        Ok(new)
    };
    let options = World::options(COMPONENT);
    tolerate(world.registry.modify(&target, Operation::Update, &options, &change).await)
}

async fn create_set(
    world: &World,
    deployment: &Value,
    hash: &str,
    revision: i64,
) -> Result<(), Status> {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][TEMPLATE_HASH] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][TEMPLATE_HASH] = hash.into();
    let options = World::options(COMPONENT);
    for attempt in 0..NAMES_MAX {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let mut set = json!({
            "metadata": {
                "name": format!("{}-{hash}{suffix}", deployment.name()),
                "labels": template["metadata"]["labels"],
                "annotations": {},
                "ownerReferences": [owned::reference("apps/v1", "Deployment", deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        });
        set["metadata"]["annotations"][REVISION] = revision.to_string().into();
        let kind = &world.kinds.replica_sets;
        match world.registry.create(kind, deployment.namespace(), set, &options).await {
            Err(status) if status.reason == "AlreadyExists" => {}
            other => return tolerate(other),
        }
    }
    Ok(())
}

/// The revision of the newest replica set: above those of all others, also when the deployment was
/// rolled back to an earlier template.
fn newest_revision(sets: &[(Generation, Arc<str>)]) -> i64 {
    let old = sets.iter().filter(|(set, _)| !set.is_new).map(|(set, _)| set.revision).max();
    let new = sets.iter().find(|(set, _)| set.is_new).map_or(0, |(set, _)| set.revision);
    new.max(old.map_or(1, |old| old + 1))
}

/// Writes the revision of the newest replica set to its annotation and to the deployment's.
async fn record_revision(
    world: &World,
    key: &ObjectKey,
    deployment: &Value,
    sets: &[(Generation, Arc<str>)],
) -> Result<(), Status> {
    let Some((newest, _)) = sets.iter().find(|(set, _)| set.is_new) else { return Ok(()) };
    let revision = newest_revision(sets);
    if newest.revision != revision {
        let sets = &world.kinds.replica_sets;
        let target = WriteTarget { resource: sets, namespace: &key.0, name: &newest.name };
        annotate_revision(world, &target, Operation::Update, revision).await?;
    }
    if deployment.annotation(REVISION) == Some(revision.to_string().as_str()) {
        return Ok(());
    }
    let target =
        WriteTarget { resource: &world.kinds.deployments, namespace: &key.0, name: &key.1 };
    // Through the status subresource, which does not increment the generation.
    annotate_revision(world, &target, Operation::UpdateStatus, revision).await
}

async fn annotate_revision(
    world: &World,
    target: &WriteTarget<'_>,
    operation: Operation,
    revision: i64,
) -> Result<(), Status> {
    let change = |old: &Value| {
        let mut new = old.clone();
        if !new["metadata"]["annotations"].is_object() {
            new.set_meta("annotations", json!({}));
        }
        new["metadata"]["annotations"][REVISION] = revision.to_string().into();
        Ok(new)
    };
    let options = World::options(COMPONENT);
    tolerate(world.registry.modify(target, operation, &options, &change).await)
}

async fn scale(
    world: &World,
    namespace: &str,
    set: &Generation,
    uid: &str,
    replicas: i64,
) -> Result<(), Status> {
    let target = WriteTarget { resource: &world.kinds.replica_sets, namespace, name: &set.name };
    let change = |old: &Value| {
        if old.uid() != uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        new["spec"]["replicas"] = replicas.into();
        Ok(new)
    };
    let options = World::options(COMPONENT);
    tolerate(world.registry.modify(&target, Operation::Update, &options, &change).await)
}

/// Deletes the oldest empty replica sets beyond `revisionHistoryLimit`.
async fn prune(
    world: &World,
    namespace: &str,
    deployment: &Value,
    sets: &[(Generation, Arc<str>)],
) -> Result<(), Status> {
    let retained =
        usize::try_from(number(&deployment["spec"]["revisionHistoryLimit"])).unwrap_or(10);
    let mut empty: Vec<_> = sets
        .iter()
        .filter(|(set, _)| !set.is_new && set.desired == 0 && set.existing == 0)
        .collect();
    empty.sort_by_key(|(set, _)| std::cmp::Reverse(set.revision));
    for (set, uid) in empty.into_iter().skip(retained) {
        let target =
            WriteTarget { resource: &world.kinds.replica_sets, namespace, name: &set.name };
        let same = DeleteOptions { uid: Some(uid.to_string()), ..DeleteOptions::default() };
        tolerate(world.registry.delete(&target, &same, &World::options(COMPONENT)).await)?;
    }
    Ok(())
}

/// The part of the deployment status that follows from these replica sets.
pub fn desired_status(deployment: &Value, sets: &[Generation], now: &str) -> Value {
    let desired = number(&deployment["spec"]["replicas"]);
    let sum = |count: fn(&Generation) -> i64| sets.iter().map(count).sum::<i64>();
    let (existing, available) = (sum(|set| set.existing), sum(|set| set.available));
    let newest = sets.iter().find(|set| set.is_new);
    let updated = newest.map_or(0, |set| set.existing);
    let Rollout::Rolling { unavailable, .. } =
        Rollout::of(&deployment["spec"]["strategy"], desired)
    else {
        return status_of(
            deployment,
            (existing, updated, available, desired, desired),
            newest,
            now,
        );
    };
    let counts = (existing, updated, available, desired, desired - unavailable);
    status_of(deployment, counts, newest, now)
}

fn status_of(
    deployment: &Value,
    (existing, updated, available, desired, least): (i64, i64, i64, i64, i64),
    newest: Option<&Generation>,
    now: &str,
) -> Value {
    let name = newest.map_or("", |set| set.name.as_str());
    let complete = updated == desired && existing == desired && available >= desired;
    let is_available = available >= least;
    let availability = if is_available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.".to_owned())
    } else {
        let text = "Deployment does not have minimum availability.";
        ("False", "MinimumReplicasUnavailable", text.to_owned())
    };
    let progress = if complete {
        let text = format!("ReplicaSet \"{name}\" has successfully progressed.");
        ("True", "NewReplicaSetAvailable", text)
    } else {
        ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing."))
    };
    let before = &deployment["status"]["conditions"];
    let condition = |kind: &str, (status, reason, message): (&str, &str, String)| {
        let old = before.as_array().into_iter().flatten().find(|old| old["type"] == kind);
        let same = old.filter(|old| old["status"] == status);
        let since = same.and_then(|old| old["lastTransitionTime"].as_str()).unwrap_or(now);
        let unchanged = same.filter(|old| old["reason"] == reason && old["message"] == *message);
        let updated = unchanged.and_then(|old| old["lastUpdateTime"].as_str()).unwrap_or(now);
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since, "lastUpdateTime": updated,
        })
    };
    json!({
        "observedGeneration": deployment.generation(),
        "replicas": existing,
        "updatedReplicas": updated,
        "readyReplicas": available,
        "availableReplicas": available,
        "unavailableReplicas": (desired.max(existing) - available).max(0),
        "conditions": [condition("Available", availability), condition("Progressing", progress)],
    })
}
