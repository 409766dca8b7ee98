//! What happens to one object, decided on live reads and done with preconditions.

use std::sync::Arc;

use api_meta::metadata::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::elsewhere;
use super::graph::{Graph, Key, Owner, Ownership, Work};
use crate::attributes::{GROUP_MASTERS, UserInfo};
use crate::registry::{DeleteOptions, Propagation, Registry, Target, WriteOptions};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;
use crate::strategy::Operation;

const IDENTITY: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

pub enum Outcome {
    Done,
    /// An owner is of a kind that is not served: nothing is known of it.
    Unresolved,
    /// These are to be looked at next.
    Check(Vec<Key>),
}

/// How an owner was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Solid,
    /// Being deleted after its dependants.
    Waiting,
    Absent,
    Unknown,
}

/// On whose behalf the collector writes.
pub fn options() -> WriteOptions {
    WriteOptions::of(UserInfo::new(IDENTITY, &[GROUP_MASTERS]))
}

/// `is_first`: its owners are looked at for the first time.
pub async fn perform(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    work: &Work,
    is_first: bool,
) -> Result<Outcome, Status> {
    let Some(object) = current(registry, resource, work.key()).await? else {
        return Ok(Outcome::Done);
    };
    match work {
        Work::Check(_) => check(registry, resource, graph, &object, is_first).await,
        Work::Orphan(_) => orphan(registry, resource, graph, &object).await,
    }
}

/// The live object at a key.
async fn current(
    registry: &Registry,
    resource: &Resource,
    key: &str,
) -> Result<Option<Arc<Stored>>, Status> {
    let (namespace, name) = place(resource, key);
    match registry.get(resource, namespace, name).await {
        Ok(found) => Ok(Some(found)),
        Err(status) if status.code == 404 => Ok(None),
        Err(status) => Err(status),
    }
}

/// Namespace and name in a key of the resource.
fn place<'a>(resource: &Resource, key: &'a str) -> (&'a str, &'a str) {
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
) -> Result<Outcome, Status> {
    let ownership = Ownership::of(object);
    if ownership.waits_for_dependents() {
        return await_dependents(registry, resource, graph, object).await;
    }
    if ownership.deletion_timestamp.is_some() || ownership.owner_references.is_empty() {
        return Ok(Outcome::Done);
    }
    let mut states = Vec::with_capacity(ownership.owner_references.len());
    for owner in &ownership.owner_references {
        let found = find_owner(registry, resource, object, owner).await?;
        if is_first && matches!(found, Found::Absent | Found::Unknown) {
            elsewhere::report(registry, resource, object, owner).await;
        }
        states.push(found);
    }
    if states.contains(&Found::Unknown) {
        return Ok(Outcome::Unresolved);
    }
    let target = Target { resource, namespace: &object.namespace, name: &object.name };
    if states.contains(&Found::Solid) {
        let leaving: Vec<&str> = ownership
            .owner_references
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state != Found::Solid)
            .map(|(owner, _)| &*owner.uid)
            .collect();
        if !leaving.is_empty() {
            drop_owners(registry, &target, &object.uid, &leaving).await?;
        }
        return Ok(Outcome::Done);
    }
    let has_dependents = graph.dependents_of(&object.uid).next().is_some();
    let foreground = states.contains(&Found::Waiting) && has_dependents;
    if foreground && graph.has_waiting_dependent(&object.uid) {
        // A circle of objects that wait for one another: this one steps out of it.
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
        // Another object of that name is another matter.
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(Outcome::Done),
    }
}

/// How an owner stands. Only a live read says that it is absent.
async fn find_owner(
    registry: &Registry,
    resource: &Resource,
    object: &Stored,
    owner: &Owner,
) -> Result<Found, Status> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let catalog = registry.catalog();
    let Some(owning) = catalog.all().find(|r| r.group == group && *r.kind == *owner.kind) else {
        return Ok(Found::Unknown);
    };
    if owning.namespaced && !resource.namespaced {
        // A cluster-scoped object cannot say in which namespace its owner is.
        return Ok(Found::Unknown);
    }
    let namespace = if owning.namespaced { &*object.namespace } else { "" };
    let Some(key) = owning.key(namespace, &owner.name) else { return Ok(Found::Unknown) };
    match current(registry, owning, &key).await? {
        Some(found) if found.uid == owner.uid => {
            let waiting = Ownership::of(&found).waits_for_dependents();
            Ok(if waiting { Found::Waiting } else { Found::Solid })
        }
        _ => Ok(Found::Absent),
    }
}

/// An owner that waits: it may go when nothing blocks it, else its dependants are looked at.
async fn await_dependents(
    registry: &Registry,
    resource: &Arc<Resource>,
    graph: &Graph,
    object: &Arc<Stored>,
) -> Result<Outcome, Status> {
    let blockers = graph.blockers_of(&object.uid);
    if blockers.is_empty() {
        let target = Target { resource, namespace: &object.namespace, name: &object.name };
        drop_finalizer(registry, &target, &object.uid, FINALIZER_FOREGROUND).await?;
        return Ok(Outcome::Done);
    }
    let mut next = Vec::new();
    for key in graph.dependents_of(&object.uid) {
        let Some(dependent) = owner_of_key(registry, &key) else { continue };
        let Some(found) = current(registry, &dependent, &key).await? else { continue };
        let ownership = Ownership::of(&found);
        if ownership.deletion_timestamp.is_none() {
            next.push(key);
        }
    }
    Ok(Outcome::Check(next))
}

/// The resource that stores a key.
fn owner_of_key(registry: &Registry, key: &str) -> Option<Arc<Resource>> {
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
) -> Result<Outcome, Status> {
    if !Ownership::of(object).leaves_dependents() {
        return Ok(Outcome::Done);
    }
    for key in graph.dependents_of(&object.uid) {
        let Some(dependent) = owner_of_key(registry, &key) else { continue };
        let Some(found) = current(registry, &dependent, &key).await? else { continue };
        let target =
            Target { resource: &dependent, namespace: &found.namespace, name: &found.name };
        drop_owners(registry, &target, &found.uid, &[&object.uid]).await?;
    }
    let target = Target { resource, namespace: &object.namespace, name: &object.name };
    drop_finalizer(registry, &target, &object.uid, FINALIZER_ORPHAN).await?;
    Ok(Outcome::Done)
}

/// Changes metadata of exactly the object with `uid`; a successor of the same name is left alone.
async fn change_metadata(
    registry: &Registry,
    target: &Target<'_>,
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
    target: &Target<'_>,
    uid: &str,
    leaving: &[&str],
) -> Result<(), Status> {
    change_metadata(registry, target, uid, &|object| {
        let Some(owners) = object.meta_mut().get_mut("ownerReferences") else { return };
        if let Some(owners) = owners.as_array_mut() {
            owners.retain(|owner| !leaving.iter().any(|uid| owner["uid"] == **uid));
        }
        if owners.as_array().is_some_and(Vec::is_empty) {
            object.remove_meta("ownerReferences");
        }
    })
    .await
}

async fn drop_finalizer(
    registry: &Registry,
    target: &Target<'_>,
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

async fn unblock_owners(registry: &Registry, target: &Target<'_>, uid: &str) -> Result<(), Status> {
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
