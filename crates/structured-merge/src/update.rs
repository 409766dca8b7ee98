//! The two ways a write changes who owns what.

use std::collections::BTreeMap;

use crate::conflict::{Conflict, Conflicts};
use crate::managers::{Managers, VersionedSet};
use crate::set::FieldSet;
use crate::typed::{Comparison, Problems, Typed, reconcile};
use crate::value;

/// How what fails while a configuration is pruned is told.
const PRUNE: &str = "failed to prune fields: ";

/// What the versions of one kind have to do with each other.
pub trait Versions {
    /// The object in another version's form, with that version's schema.
    ///
    /// # Errors
    /// The version is served no more, or the conversion fails.
    fn convert<'a>(
        &'a self,
        object: &Typed<'a>,
        api_version: &str,
    ) -> Result<Typed<'a>, ConvertError>;

    /// Fields of a version that the write at hand resets, so that nobody can come to own them by
    /// it: `status` when the object itself is written.
    fn ignored(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// Why an object cannot be had in another version.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The version is gone; what was owned in it is owned no more.
    #[error("there is no version \"{0}\"")]
    MissingVersion(String),
    /// In the words of who converts.
    #[error("{0}")]
    Failed(String),
    /// What came of it does not fit the version's schema.
    #[error(transparent)]
    Unfit(Problems),
}

/// Why ownership could not be worked out.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// Others own fields that the wish changes. Apply again without them, or with `force`.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    #[error("failed to compare objects: {0}")]
    Compare(#[source] Problems),
    #[error("failed to merge config: {0}")]
    Merge(#[source] Problems),
    /// `step` says what the object was needed for; it is empty or ends in `: `.
    #[error("{step}{error}")]
    Convert { step: String, error: ConvertError },
}

/// Works out ownership for one kind.
pub struct Updater<'v, V> {
    pub versions: &'v V,
}

impl<'v, V: Versions> Updater<'v, V> {
    /// Ownership after a write that states the outcome: the manager owns what it added or changed,
    /// and everybody loses what was changed by it or is gone.
    ///
    /// `live` is the state before (of a new object: null), `new` the state that will be stored.
    ///
    /// # Errors
    /// The states cannot be compared, or not be brought to another manager's version.
    pub fn update(
        &self,
        live: &Typed<'v>,
        new: &Typed<'v>,
        api_version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, UpdateError> {
        let mut managers = self.reconciled(live, managers)?;
        let compared = self.take(live, new, api_version, &mut managers, manager, true)?;
        let before = managers.get(manager).map(|own| own.set.clone()).unwrap_or_default();
        let mut set =
            before.difference(&compared.removed).union(&compared.modified).union(&compared.added);
        if let Some(ignored) = self.versions.ignored(api_version) {
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

    /// The object and its owners after `config` was applied: what it states is set and owned by
    /// the manager; what the manager applied before, states no more and shares with nobody goes.
    /// The object is `None` when nothing about it changes.
    ///
    /// # Errors
    /// [`UpdateError::Conflicts`] when others own what would change, unless `force` takes it;
    /// else as [`Updater::update`].
    pub fn apply(
        &self,
        live: &Typed<'v>,
        config: &Typed<'v>,
        api_version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Option<Typed<'v>>, Managers), UpdateError> {
        let mut managers = self.reconciled(live, managers)?;
        let merged = live.merge(config).map_err(UpdateError::Merge)?;
        let mut set = config.field_set();
        if let Some(ignored) = self.versions.ignored(api_version) {
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

    /// Takes what differs between the states from everybody but `manager`.
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
            Ok::<_, UpdateError>(compared.excluding(self.versions.ignored(version)))
        };
        // Of the object's own version unfiltered by what others track in theirs.
        let own = compare(live, new, api_version)?;
        let mut by_version = BTreeMap::from([(api_version.to_owned(), Some(own))]);
        for owner in managers.iter().filter(|(id, _)| *id != manager).map(|(_, owner)| owner) {
            if by_version.contains_key(&owner.api_version) {
                continue;
            }
            let version = owner.api_version.as_str();
            let old = self.converted(live, version, || "failed to convert old object: ".into())?;
            let new = self.converted(new, version, || "failed to convert new object: ".into())?;
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
            let taken = owner.set.intersection(&compared.modified.union(&compared.added));
            conflicts.extend(
                taken.paths().into_iter().map(|path| Conflict { manager: id.clone(), path }),
            );
            let set = owner.set.difference(&taken).difference(&compared.removed);
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

    /// Takes out of the merged object what the manager applied last time and nobody states now.
    fn prune(
        &self,
        merged: Typed<'v>,
        managers: &Managers,
        api_version: &str,
        last: &VersionedSet,
    ) -> Result<Typed<'v>, UpdateError> {
        let step = || format!("{PRUNE}failed to convert merged object to last applied version: ");
        let Some(converted) = self.converted(&merged, &last.api_version, step)? else {
            return Ok(merged);
        };
        let pruned = converted.without(&named(&converted, &last.set));
        let pruned = self.with_owned(converted.clone(), pruned, managers, &last.api_version)?;
        let pruned = self.with_dangling(converted, pruned, last)?;
        let step = || PRUNE.to_owned();
        let pruned = self.converted(&pruned, api_version, step)?;
        let missing = || ConvertError::MissingVersion(api_version.to_owned());
        pruned.ok_or_else(|| UpdateError::Convert { step: step(), error: missing() })
    }

    /// Puts back what was pruned and somebody owns, the manager's new configuration included.
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
        // First the version that was pruned: converting may need fields that are missing now.
        let first = owned.remove_entry(pruned_version);
        let (mut merged, mut pruned) = (merged, pruned);
        for (version, owned) in first.into_iter().chain(owned) {
            let step = |what: &str| {
                let add_back = "failed add back owned items: ";
                format!("{PRUNE}{add_back}failed to convert {what} object at version {version}: ")
            };
            let all = self.converted(&merged, version, || step("merged"))?;
            let rest = self.converted(&pruned, version, || step("pruned"))?;
            let (Some(all), Some(rest)) = (all, rest) else { continue };
            let kept = named(&all, &rest.field_set()).union(&named(&all, &owned));
            let gone = named(&all, &all.field_set()).difference(&kept);
            pruned = all.without(&gone);
            merged = all;
        }
        Ok(pruned)
    }

    /// Puts back what was pruned along with an ancestor although the manager never owned it.
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
        let Some(pruned) = self.converted(&pruned, &last.api_version, step)? else {
            return Ok(merged);
        };
        let left = named(&merged, &pruned.field_set());
        let all = named(&merged, &merged.field_set());
        let gone = all.difference(&left).intersection(&named(&merged, &last.set));
        Ok(merged.without(&gone))
    }

    /// The object in a version; `None` when the version is gone. `step` is told of what fails.
    fn converted(
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

    /// Brings every owner's set to the present schema of its version. Owners in versions that are
    /// gone go too.
    fn reconciled(&self, live: &Typed<'v>, managers: Managers) -> Result<Managers, UpdateError> {
        let mut out = Managers::new();
        for (id, mut owner) in managers {
            let live = self.converted(live, &owner.api_version, String::new)?;
            let Some(live) = live else { continue };
            if let Some(set) = reconcile(live.schema, &owner.set) {
                owner.set = set;
            }
            out.insert(id, owner);
        }
        Ok(out)
    }
}

fn named(object: &Typed<'_>, set: &FieldSet) -> FieldSet {
    set.with_named_fields(object.schema, Some(object.schema.root()))
}
