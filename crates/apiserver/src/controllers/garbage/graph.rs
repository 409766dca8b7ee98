//! Who owns whom. Pure: fed with objects, it says what to look at.
//!
//! Invariant: `dependents` holds exactly the references in `owners`, turned around.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use api_meta::metadata::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use serde::Deserialize;

use crate::stored::Stored;

/// A storage key: which object, in which resource.
pub type Key = Arc<str>;

/// Something to be done about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// See whether its owners are there, or whether its dependants are gone.
    Check(Key),
    /// Take it off its dependants, then let it go.
    Orphan(Key),
}

impl Work {
    pub fn key(&self) -> &Key {
        match self {
            Self::Check(key) | Self::Orphan(key) => key,
        }
    }
}

/// One owner reference.
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
    #[serde(default)]
    pub block_owner_deletion: bool,
}

/// The part of an object's metadata that counts here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ownership {
    pub uid: Box<str>,
    pub owner_references: Vec<Owner>,
    pub deletion_timestamp: Option<Box<str>>,
    pub finalizers: Vec<Box<str>>,
}

impl Ownership {
    pub fn of(object: &Stored) -> Self {
        serde_json::from_str(object.metadata_json()).unwrap_or_default()
    }
    fn is_marked(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|f| **f == *finalizer)
    }
    /// Being deleted after its dependants.
    pub fn waits_for_dependents(&self) -> bool {
        self.is_marked(FINALIZER_FOREGROUND)
    }
    /// Being deleted without its dependants.
    pub fn leaves_dependents(&self) -> bool {
        self.is_marked(FINALIZER_ORPHAN)
    }
}

#[derive(Default)]
pub struct Graph {
    /// Objects with owners.
    owners: HashMap<Key, Vec<Owner>>,
    /// Keys of dependants by their owner's uid.
    dependents: HashMap<Box<str>, BTreeSet<Key>>,
    /// Objects that wait for their dependants, by uid.
    waiting: HashMap<Box<str>, Key>,
    /// Attempts that failed since the object last changed.
    failures: HashMap<Key, u32>,
    /// Objects whose owners, as they are now, were not looked at yet.
    unseen: HashSet<Key>,
}

/// What most objects lack, seen without parsing.
fn may_matter(object: &Stored) -> bool {
    let metadata = object.metadata_json();
    metadata.contains("\"ownerReferences\"") || metadata.contains("\"deletionTimestamp\"")
}

impl Graph {
    /// Takes in a state of an object.
    pub fn insert(&mut self, object: &Stored, queue: &mut BTreeSet<Work>) {
        self.failures.remove(&object.key);
        let known = self.owners.contains_key(&object.key);
        if !known && !may_matter(object) {
            return;
        }
        let ownership = Ownership::of(object);
        self.set_owners(&object.key, ownership.owner_references.clone(), queue);
        if ownership.leaves_dependents() {
            queue.insert(Work::Orphan(object.key.clone()));
        }
        if ownership.waits_for_dependents() {
            self.waiting.insert(ownership.uid.clone(), object.key.clone());
            queue.insert(Work::Check(object.key.clone()));
        } else {
            self.waiting.remove(&ownership.uid);
        }
    }

    /// Takes in the end of an object: its dependants may have lost their last owner, and its owners
    /// may have waited for it.
    pub fn remove(&mut self, object: &Stored, queue: &mut BTreeSet<Work>) {
        self.failures.remove(&object.key);
        self.waiting.remove(&object.uid);
        self.set_owners(&object.key, Vec::new(), queue);
        queue.remove(&Work::Check(object.key.clone()));
        queue.remove(&Work::Orphan(object.key.clone()));
        queue.extend(self.dependents_of(&object.uid).map(Work::Check));
    }

    /// Takes in the whole state of a resource, after changes may have been missed.
    pub fn reset(&mut self, prefix: &str, objects: &[Arc<Stored>], queue: &mut BTreeSet<Work>) {
        let present: BTreeSet<&str> = objects.iter().map(|object| &*object.key).collect();
        let gone: Vec<Key> = self
            .owners
            .keys()
            .filter(|key| key.starts_with(prefix) && !present.contains(&***key))
            .cloned()
            .collect();
        for key in gone {
            self.set_owners(&key, Vec::new(), queue);
        }
        self.waiting.retain(|_, key| !key.starts_with(prefix) || present.contains(&**key));
        for object in objects {
            self.insert(object, queue);
        }
        // Owners may be gone unseen, so every dependant is looked at again.
        queue.extend(self.owners.keys().cloned().map(Work::Check));
    }

    /// Drops what is known of a resource that is served no more.
    pub fn forget_prefix(&mut self, prefix: &str) {
        let keys: Vec<Key> =
            self.owners.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        for key in keys {
            self.set_owners(&key, Vec::new(), &mut BTreeSet::new());
        }
        self.waiting.retain(|_, key| !key.starts_with(prefix));
    }

    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = Key> {
        self.dependents.get(uid).into_iter().flatten().cloned()
    }

    /// Dependants whose reference holds up the owner's deletion.
    pub fn blockers_of(&self, uid: &str) -> Vec<Key> {
        self.dependents_of(uid)
            .filter(|key| {
                let owners = self.owners.get(key).into_iter().flatten();
                owners.into_iter().any(|owner| *owner.uid == *uid && owner.block_owner_deletion)
            })
            .collect()
    }

    /// Whether any dependant waits for its own dependants: a cycle may be among them.
    pub fn has_waiting_dependent(&self, uid: &str) -> bool {
        let waiting: BTreeSet<&Key> = self.waiting.values().collect();
        self.dependents.get(uid).into_iter().flatten().any(|key| waiting.contains(key))
    }

    /// Whether an object's owners are looked at for the first time since they changed.
    pub fn see(&mut self, key: &Key) -> bool {
        self.unseen.remove(key)
    }

    pub fn count_failure(&mut self, key: &Key) -> u32 {
        let count = self.failures.entry(key.clone()).or_default();
        *count += 1;
        *count
    }

    fn set_owners(&mut self, key: &Key, owners: Vec<Owner>, queue: &mut BTreeSet<Work>) {
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
            self.unseen.remove(key);
        } else {
            self.unseen.insert(key.clone());
            self.owners.insert(key.clone(), owners);
            queue.insert(Work::Check(key.clone()));
        }
    }
}
