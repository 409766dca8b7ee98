//! The two ways in which a write changes ownership.

use std::collections::BTreeMap;

use crate::conflict::{Conflict, Conflicts};
use crate::managers::{Managers, VersionedSet};
use crate::set::FieldSet;
use crate::typed::{Comparison, Typed, ValidationErrors, reconcile};
use crate::value;

/// Prefix of errors from pruning a configuration.
const PRUNE: &str = "failed to prune fields: ";

/// Conversion between the versions of one kind.
pub trait Versions {
    /// Converts the object to another version and returns it with that version's schema.
    ///
    /// # Errors
    /// [`ConvertError::MissingVersion`] when the version is not served any more: the caller drops
    /// what is owned in it. Other errors fail the write.
    fn convert<'a>(
        &'a self,
        object: &Typed<'a>,
        api_version: &str,
    ) -> Result<Typed<'a>, ConvertError>;

    /// Fields of a version that the current write resets, so that no manager can come to own them
    /// through it: `status` when the object itself is written.
    fn ignored_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// Why an object cannot be converted to another version.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The version is not served any more. Fields that are owned in it lose their owner.
    #[error("there is no version \"{0}\"")]
    MissingVersion(String),
    /// The message of the converter.
    #[error("{0}")]
    Failed(String),
    /// The converted object does not fit the version's schema.
    #[error(transparent)]
    Unfit(ValidationErrors),
}

/// Why ownership cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// Other managers own fields that the configuration changes. Apply again without these fields,
    /// or with `force`.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    #[error("failed to compare objects: {0}")]
    Compare(#[source] ValidationErrors),
    #[error("failed to merge config: {0}")]
    Merge(#[source] ValidationErrors),
    /// `step` says what the object was needed for; it is empty or ends in `: `.
    #[error("{step}{error}")]
    Convert { step: String, error: ConvertError },
}

/// Computes ownership for one kind.
pub struct Updater<'v, V> {
    pub versions: &'v V,
}

impl<'v, V: Versions> Updater<'v, V> {
    /// The managers after a write that states the result. The writing manager owns what it added or
    /// changed; all others lose what the write changed or removed.
    ///
    /// `live` is the state before the write (null for a new object), `new` the state that will be
    /// stored.
    ///
    /// # Errors
    /// The states cannot be compared, or cannot be converted to another manager's version.
    /// kube-apiserver then stores no entries.
    pub fn update(
        &self,
        live: &Typed<'v>,
        new: &Typed<'v>,
        api_version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, UpdateError> {
        let mut managers = self.reconcile_managers(live, managers)?;
        let compared = self.take(live, new, api_version, &mut managers, manager, true)?;
        let before = managers.get(manager).map(|own| own.set.clone()).unwrap_or_default();
        let mut set =
            before.difference(&compared.removed).union(&compared.modified).union(&compared.added);
        if let Some(ignored) = self.versions.ignored_fields(api_version) {
            set = set.recursive_difference(ignored);
        }
        if set.is_empty() {
            managers.remove(manager);
        } else {
            let api_version = api_version.to_owned();
            managers.insert(manager.to_owned(), VersionedSet { set, api_version, applied: false });
        }
        Ok(managers)
    }

    /// The object and its managers after `config` is applied. The manager owns and sets what
    /// `config` states. Fields that it applied before, no longer states and shares with no other
    /// manager are removed. The object is `None` when it does not change.
    ///
    /// # Errors
    /// [`UpdateError::Conflicts`] when other managers own fields that would change; `force` takes
    /// these fields instead. Other errors are those of [`Updater::update`].
    pub fn apply(
        &self,
        live: &Typed<'v>,
        config: &Typed<'v>,
        api_version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Option<Typed<'v>>, Managers), UpdateError> {
        let mut managers = self.reconcile_managers(live, managers)?;
        let merged = live.merge(config).map_err(UpdateError::Merge)?;
        let mut set = config.field_set();
        if let Some(ignored) = self.versions.ignored_fields(api_version) {
            set = set.recursive_difference(ignored);
        }
        let applied = VersionedSet { set, api_version: api_version.to_owned(), applied: true };
        let last = managers.insert(manager.to_owned(), applied);
        let new = match last {
            Some(last) if !last.set.is_empty() => {
                self.prune(merged, &managers, api_version, &last)?
            }
            _ => merged,
        };
        self.take(live, &new, api_version, &mut managers, manager, force)?;
        let changed = !value::equal(&live.value, &new.value);
        Ok((changed.then_some(new), managers))
    }

    /// Removes the fields that differ between the states from all managers but `manager`.
    fn take(
        &self,
        live: &Typed<'v>,
        new: &Typed<'v>,
        api_version: &str,
        managers: &mut Managers,
        manager: &str,
        force: bool,
    ) -> Result<Comparison, UpdateError> {
        let compare = |live: &Typed<'v>, new: &Typed<'v>, version: &str| {
            let compared = live.compare(new).map_err(UpdateError::Compare)?;
            Ok::<_, UpdateError>(compared.excluding(self.versions.ignored_fields(version)))
        };
        // The fields that other managers ignore in their versions do not limit the object's own
        // version.
        let own = compare(live, new, api_version)?;
        let mut by_version = BTreeMap::from([(api_version.to_owned(), Some(own))]);
        for owner in managers.iter().filter(|(id, _)| *id != manager).map(|(_, owner)| owner) {
            if by_version.contains_key(&owner.api_version) {
                continue;
            }
            let version = owner.api_version.as_str();
            let old =
                self.try_convert(live, version, || "failed to convert old object: ".into())?;
            let new = self.try_convert(new, version, || "failed to convert new object: ".into())?;
            let compared = match old.zip(new) {
                Some((live, new)) => Some(compare(&live, &new, version)?),
                None => None,
            };
            by_version.insert(owner.api_version.clone(), compared);
        }
        let mut conflicts = Vec::new();
        let mut left = Managers::new();
        for (id, owner) in std::mem::take(managers) {
            if id == manager {
                left.insert(id, owner);
                continue;
            }
            let Some(Some(compared)) = by_version.get(&owner.api_version) else { continue };
            let conflicting = owner.set.intersection(&compared.modified.union(&compared.added));
            conflicts.extend(
                conflicting.paths().into_iter().map(|path| Conflict { manager: id.clone(), path }),
            );
            let set = owner.set.difference(&conflicting).difference(&compared.removed);
            left.insert(id, VersionedSet { set, ..owner });
        }
        if !force && !conflicts.is_empty() {
            return Err(Conflicts(conflicts).into());
        }
        left.retain(|_, owner| !owner.set.is_empty());
        *managers = left;
        let own = by_version.remove(api_version).flatten();
        Ok(own.expect("the own version was compared first"))
    }

    /// Removes from the merged object what the manager applied last time and no manager states now.
    fn prune(
        &self,
        merged: Typed<'v>,
        managers: &Managers,
        api_version: &str,
        last: &VersionedSet,
    ) -> Result<Typed<'v>, UpdateError> {
        let step = || format!("{PRUNE}failed to convert merged object to last applied version: ");
        let Some(converted) = self.try_convert(&merged, &last.api_version, step)? else {
            return Ok(merged);
        };
        let pruned = converted.without(&with_named_fields(&converted, &last.set));
        let pruned = self.with_owned(converted.clone(), pruned, managers, &last.api_version)?;
        let pruned = self.with_dangling(converted, pruned, last)?;
        let step = || PRUNE.to_owned();
        let pruned = self.try_convert(&pruned, api_version, step)?;
        let missing = || ConvertError::MissingVersion(api_version.to_owned());
        pruned.ok_or_else(|| UpdateError::Convert { step: step(), error: missing() })
    }

    /// Restores pruned fields that a manager owns, including those of the manager's new
    /// configuration.
    fn with_owned(
        &self,
        merged: Typed<'v>,
        pruned: Typed<'v>,
        managers: &Managers,
        pruned_version: &str,
    ) -> Result<Typed<'v>, UpdateError> {
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owner in managers.values() {
            let set = owned.entry(&owner.api_version).or_default();
            *set = set.union(&owner.set);
        }
        // Starts with the version that was pruned: conversion may need fields that are missing now.
        let first = owned.remove_entry(pruned_version);
        let (mut merged, mut pruned) = (merged, pruned);
        for (version, owned) in first.into_iter().chain(owned) {
            let step = |what: &str| {
                let add_back = "failed add back owned items: ";
                format!("{PRUNE}{add_back}failed to convert {what} object at version {version}: ")
            };
            let all = self.try_convert(&merged, version, || step("merged"))?;
            let rest = self.try_convert(&pruned, version, || step("pruned"))?;
            let (Some(all), Some(rest)) = (all, rest) else { continue };
            let retained =
                with_named_fields(&all, &rest.field_set()).union(&with_named_fields(&all, &owned));
            let removed = with_named_fields(&all, &all.field_set()).difference(&retained);
            pruned = all.without(&removed);
            merged = all;
        }
        Ok(pruned)
    }

    /// Restores fields that were pruned with an ancestor although the manager never owned them.
    fn with_dangling(
        &self,
        merged: Typed<'v>,
        pruned: Typed<'v>,
        last: &VersionedSet,
    ) -> Result<Typed<'v>, UpdateError> {
        let step = || {
            let add_back = "failed add back dangling items: ";
            format!("{PRUNE}{add_back}failed to convert pruned object to last applied version: ")
        };
        let Some(pruned) = self.try_convert(&pruned, &last.api_version, step)? else {
            return Ok(merged);
        };
        let left = with_named_fields(&merged, &pruned.field_set());
        let all = with_named_fields(&merged, &merged.field_set());
        let removed = all.difference(&left).intersection(&with_named_fields(&merged, &last.set));
        Ok(merged.without(&removed))
    }

    /// The object in a version; `None` when the version is not served. `step` describes a failure.
    fn try_convert(
        &self,
        object: &Typed<'v>,
        api_version: &str,
        step: impl FnOnce() -> String,
    ) -> Result<Option<Typed<'v>>, UpdateError> {
        match self.versions.convert(object, api_version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::MissingVersion(_)) => Ok(None),
            Err(error) => Err(UpdateError::Convert { step: step(), error }),
        }
    }

    /// Brings every manager's set to the current schema of its version. Removes managers in
    /// versions that are not served any more.
    fn reconcile_managers(
        &self,
        live: &Typed<'v>,
        managers: Managers,
    ) -> Result<Managers, UpdateError> {
        let mut out = Managers::new();
        for (id, mut owner) in managers {
            let live = self.try_convert(live, &owner.api_version, String::new)?;
            let Some(live) = live else { continue };
            if let Some(set) = reconcile(live.schema, &owner.set) {
                owner.set = set;
            }
            out.insert(id, owner);
        }
        Ok(out)
    }
}

fn with_named_fields(object: &Typed<'_>, set: &FieldSet) -> FieldSet {
    set.with_named_fields(object.schema, Some(object.schema.root()))
}
