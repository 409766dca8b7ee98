//! Decides about one object from live reads, and acts with preconditions.

use std::sync::Arc;

use api_meta::metadata::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::attributes::{GROUP_MASTERS, UserInfo};
use apiserver::registry::{DeleteOptions, Propagation, Registry, WriteOptions, WriteTarget};
use apiserver::resource::{Backend, Resource};
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use serde_json::Value;

use super::graph::{Graph, ObjectKey, Owner, OwnershipMetadata, Work};
use super::other_namespace;

const IDENTITY: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// The result of one work item.
pub enum CollectResult {
    /// Nothing remains to be done.
    Done,
    /// An owner has a kind that is not served, so its state is unknown.
    Unresolved,
    /// These objects are checked next.
    Check(Vec<ObjectKey>),
}

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    Present,
    /// Being deleted after its dependents.
    Waiting,
    Absent,
    Unknown,
}

/// The write options of the collector, with its identity.
pub fn options() -> WriteOptions {
    WriteOptions::of(UserInfo::new(IDENTITY, &[GROUP_MASTERS]))
}

/// Processes a work item. `is_first` says that the current owners of the object are checked for the
/// first time.
///
/// # Errors
/// The status of a failed read or write; the item is retried.
pub async fn perform(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    work: &Work,
    is_first: bool,
) -> Result<CollectResult, Status> {
    let Some(object) = read_live(registry, resource, work.key()).await? else {
        return Ok(CollectResult::Done);
    };
    match work {
        Work::Check(_) => check(registry, resource, graph, &object, is_first).await,
        Work::Orphan(_) => orphan(registry, resource, graph, &object).await,
    }
}

/// Reads the live object at a key.
async fn read_live(
    registry: &Registry,
    resource: &Resource,
    key: &str,
) -> Result<Option<Arc<Stored>>, Status> {
    let (namespace, name) = split_key(resource, key);
    match registry.get(resource, namespace, name).await {
        Ok(found) => Ok(Some(found)),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(status),
    }
}

/// Splits a key of the resource into namespace and name.
fn split_key<'a>(resource: &Resource, key: &'a str) -> (&'a str, &'a str) {
    let Backend::Stored { prefix } = &resource.backend else { return ("", "") };
    let rest = key.strip_prefix(prefix.as_str()).unwrap_or_default();
    if resource.namespaced { rest.split_once('/').unwrap_or_default() } else { ("", rest) }
}

async fn check(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    object: &Arc<Stored>,
    is_first: bool,
) -> Result<CollectResult, Status> {
    let ownership = OwnershipMetadata::of(object);
    if ownership.waits_for_dependents() {
        return await_dependents(registry, resource, graph, object).await;
    }
    if ownership.deletion_timestamp.is_some() || ownership.owner_references.is_empty() {
        return Ok(CollectResult::Done);
    }
    let mut states = Vec::with_capacity(ownership.owner_references.len());
    for owner in &ownership.owner_references {
        let found = find_owner(registry, resource, object, owner).await?;
        if is_first && matches!(found, OwnerState::Absent | OwnerState::Unknown) {
            other_namespace::report(registry, resource, object, owner).await;
        }
        states.push(found);
    }
    if states.contains(&OwnerState::Unknown) {
        return Ok(CollectResult::Unresolved);
    }
    let target = WriteTarget { resource, namespace: &object.namespace, name: &object.name };
    if states.contains(&OwnerState::Present) {
        let removed: Vec<&str> = ownership
            .owner_references
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state != OwnerState::Present)
            .map(|(owner, _)| &*owner.uid)
            .collect();
        if !removed.is_empty() {
            drop_owners(registry, &target, &object.uid, &removed).await?;
        }
        return Ok(CollectResult::Done);
    }
    let has_dependents = graph.dependents_of(&object.uid).next().is_some();
    let foreground = states.contains(&OwnerState::Waiting) && has_dependents;
    if foreground && graph.has_waiting_dependent(&object.uid) {
        // A cycle of objects that wait for each other: this one leaves it.
        unblock_owners(registry, &target, &object.uid).await?;
    }
    let propagation = if foreground {
        Propagation::Foreground
    } else if ownership.finalizers.iter().any(|f| **f == *FINALIZER_ORPHAN) {
        Propagation::Orphan
    } else if ownership.finalizers.iter().any(|f| **f == *FINALIZER_FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let delete = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(object.uid.to_string()),
        ..DeleteOptions::default()
    };
    match registry.delete(&target, &delete, &options()).await {
        // Another object with this name is not affected.
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(CollectResult::Done),
    }
}

/// Finds the state of an owner. Only a live read shows that it is absent.
async fn find_owner(
    registry: &Registry,
    resource: &Resource,
    object: &Stored,
    owner: &Owner,
) -> Result<OwnerState, Status> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let catalog = registry.catalog();
    let Some(owning) = catalog.all().find(|r| r.group == group && *r.kind == *owner.kind) else {
        return Ok(OwnerState::Unknown);
    };
    if owning.namespaced && !resource.namespaced {
        // A cluster-scoped object does not say in which namespace its owner is.
        return Ok(OwnerState::Unknown);
    }
    let namespace = if owning.namespaced { &*object.namespace } else { "" };
    let Some(key) = owning.key(namespace, &owner.name) else { return Ok(OwnerState::Unknown) };
    match read_live(registry, owning, &key).await? {
        Some(found) if found.uid == owner.uid => {
            let waiting = OwnershipMetadata::of(&found).waits_for_dependents();
            Ok(if waiting { OwnerState::Waiting } else { OwnerState::Present })
        }
        _ => Ok(OwnerState::Absent),
    }
}

/// Handles an owner that waits: it is deleted if nothing blocks it, else its dependents are
/// checked.
async fn await_dependents(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    object: &Arc<Stored>,
) -> Result<CollectResult, Status> {
    let blockers = graph.blockers_of(&object.uid);
    if blockers.is_empty() {
        let target = WriteTarget { resource, namespace: &object.namespace, name: &object.name };
        drop_finalizer(registry, &target, &object.uid, FINALIZER_FOREGROUND).await?;
        return Ok(CollectResult::Done);
    }
    let mut next = Vec::new();
    for key in graph.dependents_of(&object.uid) {
        let Some(dependent) = resource_of_key(registry, &key) else { continue };
        let Some(found) = read_live(registry, &dependent, &key).await? else { continue };
        let ownership = OwnershipMetadata::of(&found);
        if ownership.deletion_timestamp.is_none() {
            next.push(key);
        }
    }
    Ok(CollectResult::Check(next))
}

/// The resource of a storage key.
fn resource_of_key(registry: &Registry, key: &str) -> Option<Arc<Resource>> {
    let catalog = registry.catalog();
    let found = catalog.all().find(
        |r| matches!(&r.backend, Backend::Stored { prefix } if key.starts_with(prefix.as_str())),
    );
    found.cloned()
}

async fn orphan(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    object: &Arc<Stored>,
) -> Result<CollectResult, Status> {
    if !OwnershipMetadata::of(object).orphans_dependents() {
        return Ok(CollectResult::Done);
    }
    for key in graph.dependents_of(&object.uid) {
        let Some(dependent) = resource_of_key(registry, &key) else { continue };
        let Some(found) = read_live(registry, &dependent, &key).await? else { continue };
        let target =
            WriteTarget { resource: &dependent, namespace: &found.namespace, name: &found.name };
        drop_owners(registry, &target, &found.uid, &[&object.uid]).await?;
    }
    let target = WriteTarget { resource, namespace: &object.namespace, name: &object.name };
    drop_finalizer(registry, &target, &object.uid, FINALIZER_ORPHAN).await?;
    Ok(CollectResult::Done)
}

/// Changes the metadata of exactly the object with `uid`; a successor with the same name is not
/// changed.
async fn change_metadata(
    registry: &Registry,
    target: &WriteTarget<'_>,
    uid: &str,
    edit: &(dyn Fn(&mut Value) + Send + Sync),
) -> Result<(), Status> {
    let change = |old: &Value| {
        if old.uid() != uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        edit(&mut new);
        new.remove_meta("resourceVersion");
        Ok(new)
    };
    match registry.modify(target, Operation::Update, &options(), &change).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}

async fn drop_owners(
    registry: &Registry,
    target: &WriteTarget<'_>,
    uid: &str,
    removed: &[&str],
) -> Result<(), Status> {
    change_metadata(registry, target, uid, &|object| {
        let Some(owners) = object.meta_mut().get_mut("ownerReferences") else { return };
        if let Some(owners) = owners.as_array_mut() {
            owners.retain(|owner| !removed.iter().any(|uid| owner["uid"] == **uid));
        }
        if owners.as_array().is_some_and(Vec::is_empty) {
            object.remove_meta("ownerReferences");
        }
    })
    .await
}

async fn drop_finalizer(
    registry: &Registry,
    target: &WriteTarget<'_>,
    uid: &str,
    finalizer: &str,
) -> Result<(), Status> {
    change_metadata(registry, target, uid, &|object| {
        let Some(finalizers) = object.meta_mut().get_mut("finalizers") else { return };
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.retain(|other| other != finalizer);
        }
        if finalizers.as_array().is_some_and(Vec::is_empty) {
            object.remove_meta("finalizers");
        }
    })
    .await
}

async fn unblock_owners(
    registry: &Registry,
    target: &WriteTarget<'_>,
    uid: &str,
) -> Result<(), Status> {
    change_metadata(registry, target, uid, &|object| {
        let owners = object.meta_mut().get_mut("ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten() {
            if owner["blockOwnerDeletion"] == true {
                owner["blockOwnerDeletion"] = false.into();
            }
        }
    })
    .await
}
