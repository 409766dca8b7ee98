//! One write: its manager, its object, and the entries that result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::entries::{ManagedFields, identity};
use crate::element::Path;
use crate::managers::{Managers, VersionedSet};
use crate::schema::Schema;
use crate::set::FieldSet;
use crate::typed::{Duplicates, Typed, ValidationErrors};
use crate::update::{UpdateError, Updater, Versions};

/// Number of entries of managers that did not apply. Entries beyond it are merged, the oldest
/// first, into one entry per version.
pub const UPDATE_MANAGERS_MAX: usize = 10;
/// The manager of the merged entries.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// Temporary identity of the writer, until it is known whether it owns anything.
const CURRENT_OPERATION: &str = "current-operation";
/// The manager of a write that names none.
const UNKNOWN: &str = "unknown";

/// The context of a write. All states of the object are in `api_version`.
pub struct Write<'v, V> {
    pub versions: &'v V,
    /// The schema of `api_version`.
    pub schema: &'v Schema,
    /// The version that the request addresses.
    pub api_version: &'v str,
    /// `status`, `scale`, …; empty for the object itself.
    pub subresource: &'v str,
    /// The name of the manager. Empty when the request names none.
    pub manager: &'v str,
    pub now: Timestamp,
    /// Whether the kind is built in. States of built-in kinds are compared after
    /// [`Schema::fill_zeros`].
    pub compiled: bool,
}

impl<'v, V: Versions> Write<'v, V> {
    /// The entries after a create, replace or patch.
    ///
    /// `live` is the stored object, absent on create. `new` is the object after defaulting and
    /// mutating admission, with the `managedFields` of the request body. Returns `None` when no
    /// entries are to be stored: tracking begins at creation, and an object that lost its entries
    /// has none until it is applied.
    ///
    /// # Errors
    /// The states cannot be compared or converted. kube-apiserver then stores no entries.
    pub fn update(
        &self,
        live: Option<&'v Value>,
        new: &'v Value,
    ) -> Result<Option<Value>, UpdateError> {
        let managed = self.decode_live_or_new(live, new);
        if managed.managers.is_empty() && live.is_some() {
            return Ok(None);
        }
        let live = self.live(live, new).map_err(UpdateError::Compare)?;
        let new = self.state(Cow::Borrowed(new)).map_err(UpdateError::Compare)?;
        Ok(self.track_update(&live, &new, managed, self.manager)?.encode())
    }

    /// The stored state for the comparison. An absent object is one that has only its type.
    pub(super) fn live(
        &self,
        object: Option<&'v Value>,
        like: &Value,
    ) -> Result<Typed<'v>, ValidationErrors> {
        let value = match object {
            Some(object) => Cow::Borrowed(object),
            None => Cow::Owned(json!({"apiVersion": self.api_version, "kind": like["kind"]})),
        };
        self.state(value)
    }

    fn state(&self, mut value: Cow<'v, Value>) -> Result<Typed<'v>, ValidationErrors> {
        if value["metadata"].get("managedFields").is_some() {
            member(value.to_mut(), "metadata").remove("managedFields");
        }
        if self.compiled {
            self.schema.fill_zeros(value.to_mut());
        }
        Typed::new(value, self.schema, Duplicates::Allow)
    }

    /// The entries to start from: those of the request body when they are valid, else the stored
    /// ones.
    fn decode_live_or_new(&self, live: Option<&Value>, new: &Value) -> ManagedFields {
        let stored = || {
            let entries = live.map(|live| &live["metadata"]["managedFields"]);
            entries.and_then(|entries| ManagedFields::decode(entries).ok()).unwrap_or_default()
        };
        let given = &new["metadata"]["managedFields"];
        if !self.subresource.is_empty() {
            return stored();
        }
        if ManagedFields::is_reset(given, self.compiled) {
            return ManagedFields::default();
        }
        match ManagedFields::decode(given) {
            Ok(given) if !given.managers.is_empty() => given,
            _ => stored(),
        }
    }

    pub(super) fn track_update(
        &self,
        live: &Typed<'v>,
        new: &Typed<'v>,
        managed: ManagedFields,
        manager: &str,
    ) -> Result<ManagedFields, UpdateError> {
        let ManagedFields { managers, mut times } = managed;
        let updater = Updater { versions: self.versions };
        let version = self.api_version;
        let mut managers = updater.update(live, new, version, managers, CURRENT_OPERATION)?;
        strip(&mut managers, CURRENT_OPERATION);
        if let Some(current) = managers.remove(CURRENT_OPERATION) {
            let id = self.identity(manager, "Update");
            let set = match managers.get(&id) {
                Some(before) => current.set.union(&before.set),
                None => current.set,
            };
            managers.insert(id.clone(), VersionedSet { set, ..current });
            times.insert(id, self.now);
        }
        Ok(cap_update_managers(ManagedFields { managers, times }))
    }

    pub(super) fn identity(&self, manager: &str, operation: &str) -> String {
        let manager = if manager.is_empty() { UNKNOWN } else { manager };
        identity(manager, operation, self.api_version, self.subresource)
    }
}

/// Fields that no manager owns, because the server writes them.
fn untracked_fields() -> FieldSet {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = ["apiVersion", "kind", "metadata"].map(|name| Path::fields([name]));
    let metadata = METADATA.map(|name| Path::fields(["metadata", name]));
    top.into_iter().chain(metadata).collect()
}

pub(super) fn strip(managers: &mut Managers, id: &str) {
    let Some(owner) = managers.get_mut(id) else { return };
    owner.set = owner.set.difference(&untracked_fields());
    if owner.set.is_empty() {
        managers.remove(id);
    }
}

/// Merges the oldest entries of managers that did not apply, until at most [`UPDATE_MANAGERS_MAX`]
/// are left or no two have the same version.
fn cap_update_managers(mut managed: ManagedFields) -> ManagedFields {
    let mut updaters: Vec<String> = managed
        .managers
        .iter()
        .filter(|(_, owner)| !owner.applied)
        .map(|(id, _)| id.clone())
        .collect();
    let mut count = updaters.len();
    if count <= UPDATE_MANAGERS_MAX {
        return managed;
    }
    let second = |id: &String| managed.times.get(id).map_or(0, |time| time.as_second());
    updaters.sort_by_cached_key(|id| (second(id), id.clone()));
    let mut first_of_version: BTreeMap<String, String> = BTreeMap::new();
    for id in updaters {
        if count <= UPDATE_MANAGERS_MAX {
            break;
        }
        let owner = managed.managers[&id].clone();
        let version = owner.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = identity(ANCIENT_CHANGES, "Update", &version, "");
        if !managed.managers.contains_key(&bucket)
            && let Some(first) = managed.managers.remove(first)
        {
            managed.managers.insert(bucket.clone(), first);
        }
        managed.managers.remove(&id);
        let merged = managed
            .managers
            .entry(bucket.clone())
            .or_insert_with(|| VersionedSet { set: FieldSet::new(), ..owner.clone() });
        merged.set = merged.set.union(&owner.set);
        count -= 1;
        match managed.times.get(&id).copied() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
    managed
}

/// A member that is a map. Creates the map when it is absent.
pub(super) fn member<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !object[name].is_object() {
        object[name] = Value::Object(Map::new());
    }
    object[name].as_object_mut().expect("made an object above")
}
