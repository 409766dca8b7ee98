//! The index of owners and dependents. Pure: it is fed with objects and returns which of them to
//! check.
//!
//! Invariant: `dependents` is exactly the inverse of the references in `owners`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use api_meta::metadata::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use apiserver::stored::Stored;
use serde::Deserialize;

/// The storage key of an object.
pub type ObjectKey = Arc<str>;

/// A work item for one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Check whether its owners exist, or whether its dependents are deleted.
    Check(ObjectKey),
    /// Remove its owner references from its dependents, then its finalizer.
    Orphan(ObjectKey),
}

impl Work {
    /// The object of the item.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Check(key) | Self::Orphan(key) => key,
        }
    }
}

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    #[serde(default)]
    pub api_version: Box<str>,
    #[serde(default)]
    pub kind: Box<str>,
    #[serde(default)]
    pub name: Box<str>,
    #[serde(default)]
    pub uid: Box<str>,
    /// Whether the reference delays a foreground deletion of the owner.
    #[serde(default)]
    pub block_owner_deletion: bool,
}

/// The metadata of an object that garbage collection uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnershipMetadata {
    pub uid: Box<str>,
    pub owner_references: Vec<Owner>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Box<str>>,
    pub finalizers: Vec<Box<str>>,
}

impl OwnershipMetadata {
    /// Parses the metadata of an object. Metadata that does not parse counts as empty.
    pub fn of(object: &Stored) -> Self {
        serde_json::from_str(object.metadata_json()).unwrap_or_default()
    }
    fn is_marked(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|f| **f == *finalizer)
    }
    /// Whether it is being deleted after its dependents.
    pub fn waits_for_dependents(&self) -> bool {
        self.is_marked(FINALIZER_FOREGROUND)
    }
    /// Whether it is being deleted and its dependents are orphaned.
    pub fn orphans_dependents(&self) -> bool {
        self.is_marked(FINALIZER_ORPHAN)
    }
}

/// The index of all objects by their owners. Pure: it neither reads nor deletes objects.
#[derive(Default)]
pub struct Graph {
    /// The owner references of all objects that have some.
    owners: HashMap<ObjectKey, Vec<Owner>>,
    /// The keys of dependents by the UID of their owner.
    dependents: HashMap<Box<str>, BTreeSet<ObjectKey>>,
    /// The objects that wait for their dependents, by UID.
    waiting: HashMap<Box<str>, ObjectKey>,
    /// The number of failed attempts since the last change of the object.
    failures: HashMap<ObjectKey, u32>,
    /// The objects whose current owners were not checked yet.
    unchecked: HashSet<ObjectKey>,
}

/// Whether an object may be relevant, decided without parsing: most are not.
fn may_be_relevant(object: &Stored) -> bool {
    let metadata = object.metadata_json();
    metadata.contains("\"ownerReferences\"") || metadata.contains("\"deletionTimestamp\"")
}

impl Graph {
    /// Applies a new state of an object, and queues the work that follows.
    pub fn insert(&mut self, object: &Stored, queue: &mut BTreeSet<Work>) {
        self.failures.remove(&object.key);
        let known = self.owners.contains_key(&object.key);
        if !known && !may_be_relevant(object) {
            return;
        }
        let ownership = OwnershipMetadata::of(object);
        self.set_owners(&object.key, ownership.owner_references.clone(), queue);
        if ownership.orphans_dependents() {
            queue.insert(Work::Orphan(object.key.clone()));
        }
        if ownership.waits_for_dependents() {
            self.waiting.insert(ownership.uid.clone(), object.key.clone());
            queue.insert(Work::Check(object.key.clone()));
        } else {
            self.waiting.remove(&ownership.uid);
        }
    }

    /// Applies the deletion of an object: its dependents may have lost their last owner, and its
    /// owners may have waited for it.
    pub fn remove(&mut self, object: &Stored, queue: &mut BTreeSet<Work>) {
        self.failures.remove(&object.key);
        self.waiting.remove(&object.uid);
        self.set_owners(&object.key, Vec::new(), queue);
        queue.remove(&Work::Check(object.key.clone()));
        queue.remove(&Work::Orphan(object.key.clone()));
        queue.extend(self.dependents_of(&object.uid).map(Work::Check));
    }

    /// Applies the whole state of a resource, after changes may have been missed.
    pub fn reset(&mut self, prefix: &str, objects: &[Arc<Stored>], queue: &mut BTreeSet<Work>) {
        let present: BTreeSet<&str> = objects.iter().map(|object| &*object.key).collect();
        let removed: Vec<ObjectKey> = self
            .owners
            .keys()
            .filter(|key| key.starts_with(prefix) && !present.contains(&***key))
            .cloned()
            .collect();
        for key in removed {
            self.set_owners(&key, Vec::new(), queue);
        }
        self.waiting.retain(|_, key| !key.starts_with(prefix) || present.contains(&**key));
        for object in objects {
            self.insert(object, queue);
        }
        // Deletions of owners may have been missed, so every dependent is checked again.
        queue.extend(self.owners.keys().cloned().map(Work::Check));
    }

    /// Removes the objects of a resource that is no longer served.
    pub fn forget_prefix(&mut self, prefix: &str) {
        let keys: Vec<ObjectKey> =
            self.owners.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        for key in keys {
            self.set_owners(&key, Vec::new(), &mut BTreeSet::new());
        }
        self.waiting.retain(|_, key| !key.starts_with(prefix));
    }

    /// The keys of the dependents of an owner.
    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = ObjectKey> {
        self.dependents.get(uid).into_iter().flatten().cloned()
    }

    /// The dependents whose reference blocks the owner's deletion.
    pub fn blockers_of(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents_of(uid)
            .filter(|key| {
                let owners = self.owners.get(key).into_iter().flatten();
                owners.into_iter().any(|owner| *owner.uid == *uid && owner.block_owner_deletion)
            })
            .collect()
    }

    /// Whether any dependent waits for its own dependents, so that there may be a cycle.
    pub fn has_waiting_dependent(&self, uid: &str) -> bool {
        let waiting: BTreeSet<&ObjectKey> = self.waiting.values().collect();
        self.dependents.get(uid).into_iter().flatten().any(|key| waiting.contains(key))
    }

    /// Marks the owners of an object as checked. Returns whether this is the first check since they
    /// changed.
    pub fn mark_checked(&mut self, key: &ObjectKey) -> bool {
        self.unchecked.remove(key)
    }

    /// Counts a failed attempt. Returns the number of failures since the last change of the object.
    pub fn count_failure(&mut self, key: &ObjectKey) -> u32 {
        let count = self.failures.entry(key.clone()).or_default();
        *count += 1;
        *count
    }

    fn set_owners(&mut self, key: &ObjectKey, owners: Vec<Owner>, queue: &mut BTreeSet<Work>) {
        let before = self.owners.get(key).map(Vec::as_slice).unwrap_or_default();
        if before == owners {
            return;
        }
        for owner in before {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
            if let Some(waiting) = self.waiting.get(&owner.uid) {
                queue.insert(Work::Check(waiting.clone()));
            }
        }
        for owner in &owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if owners.is_empty() {
            self.owners.remove(key);
            self.unchecked.remove(key);
        } else {
            self.unchecked.insert(key.clone());
            self.owners.insert(key.clone(), owners);
            queue.insert(Work::Check(key.clone()));
        }
    }
}
