//! Applying a configuration.

use std::borrow::Cow;

use serde_json::Value;

use super::entries::{EntryError, ManagedFields, shown};
use super::write::{Write, member, strip};
use crate::conflict::{Conflict, Conflicts};
use crate::element::Path;
use crate::set::FieldSet;
use crate::typed::{Duplicates, Problems, Typed};
use crate::update::{UpdateError, Updater, Versions};

/// Where client-side apply keeps the last configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager of what was there before anything was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that takes over from client-side apply.
const KUBECTL: &str = "kubectl";
/// Bytes of all annotations of an object.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// What came of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object to be stored, before defaulting, with its `managedFields`.
    pub object: Value,
    /// Whether anything but the entries changed.
    pub changed: bool,
}

/// Why a configuration is not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// 400: entries are the server's to write.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsGiven,
    /// 500: the configuration does not fit its schema.
    #[error("failed to create typed patch object ({object}): {problems}")]
    Config { object: String, problems: Problems },
    /// 500: the stored object does not fit its schema.
    #[error("failed to create typed live object ({object}): {problems}")]
    Live { object: String, problems: Problems },
    /// 500: the stored entries cannot be read.
    #[error("failed to decode managed fields: {0}")]
    Entries(#[from] EntryError),
    /// 409, with a cause for each conflict.
    #[error("{}", conflict_message(.0))]
    Conflicts(Conflicts),
    /// 500.
    #[error(transparent)]
    Update(UpdateError),
}

impl From<UpdateError> for ApplyError {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Conflicts(conflicts) => Self::Conflicts(conflicts),
            error => Self::Update(error),
        }
    }
}

impl ApplyError {
    /// Message and field of the causes of a conflict.
    pub fn causes(&self) -> Vec<(String, String)> {
        let Self::Conflicts(Conflicts(conflicts)) = self else { return Vec::new() };
        let cause = |conflict: &Conflict| {
            (format!("conflict with {}", shown(&conflict.manager)), conflict.path.to_string())
        };
        conflicts.iter().map(cause).collect()
    }
}

fn conflict_message(Conflicts(conflicts): &Conflicts) -> String {
    if let [Conflict { manager, path }] = conflicts.as_slice() {
        return format!("Apply failed with 1 conflict: conflict with {}: {path}", shown(manager));
    }
    let groups = conflicts.chunk_by(|left, right| left.manager == right.manager);
    let groups: Vec<String> = groups
        .map(|group| {
            let paths: String = group.iter().map(|one| format!("\n- {}", one.path)).collect();
            format!("conflicts with {}:{paths}", shown(&group[0].manager))
        })
        .collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), groups.join("\n"))
}

impl<'v, V: Versions> Write<'v, V> {
    /// Applies `config` to the stored object `live`, absent when it is to be created.
    ///
    /// # Errors
    /// As [`ApplyError`] says.
    pub fn apply(
        &self,
        live: Option<&'v Value>,
        config: &'v Value,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        if !config["metadata"]["managedFields"].is_null() {
            return Err(ApplyError::ManagedFieldsGiven);
        }
        let managed = match live {
            Some(live) => ManagedFields::decode(&live["metadata"]["managedFields"])?,
            None => ManagedFields::default(),
        };
        let live = self
            .live(live, config)
            .map_err(|problems| ApplyError::Live { object: described(config), problems })?;
        let borrowed = Cow::Borrowed(config);
        let config = Typed::new(borrowed, self.schema, Duplicates::Refuse)
            .map_err(|problems| ApplyError::Config { object: described(config), problems })?;
        let mut applied = match self.apply_once(&live, &config, managed.clone(), force) {
            Err(ApplyError::Conflicts(conflicts)) if self.manager == KUBECTL => {
                match unexpected(&live, self.api_version, &conflicts) {
                    Some(left) if left.is_empty() => {
                        self.apply_once(&live, &config, managed, true)?
                    }
                    Some(left) => return Err(ApplyError::Conflicts(Conflicts(left))),
                    None => return Err(ApplyError::Conflicts(conflicts)),
                }
            }
            other => other?,
        };
        if self.manager == KUBECTL {
            keep_last_applied(&mut applied.object, &config.value);
        }
        Ok(applied)
    }

    fn apply_once(
        &self,
        live: &Typed<'v>,
        config: &Typed<'v>,
        managed: ManagedFields,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let managed = if managed.managers.is_empty() {
            let empty = self.live(None, &config.value).map_err(UpdateError::Compare)?;
            self.tracked(&empty, live, managed, BEFORE_FIRST_APPLY)?
        } else {
            managed
        };
        let ManagedFields { managers, mut times } = managed;
        let id = self.identity(self.manager, "Apply");
        let updater = Updater { versions: self.versions };
        let (object, mut managers) =
            updater.apply(live, config, self.api_version, managers, &id, force)?;
        strip(&mut managers, &id);
        let changed = object.is_some();
        if changed {
            times.insert(id, self.now);
        }
        let mut object = object.unwrap_or_else(|| live.clone()).value.into_owned();
        if let Some(entries) = (ManagedFields { managers, times }).encode() {
            member(&mut object, "metadata").insert("managedFields".to_owned(), entries);
        }
        Ok(Applied { object, changed })
    }
}

/// `namespace/name; group/version, Kind=kind`, as messages name an object. The core group is empty.
fn described(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let version = text(&object["apiVersion"]);
    let core = if version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {core}{version}, Kind={}",
        text(&metadata["namespace"]),
        text(&metadata["name"]),
        text(&object["kind"])
    )
}

/// The conflicts that client-side apply does not explain: a field may be taken over when it still
/// is as the annotation says it was applied. `None` when there is no annotation to go by.
fn unexpected(
    live: &Typed<'_>,
    api_version: &str,
    Conflicts(conflicts): &Conflicts,
) -> Option<Vec<Conflict>> {
    let text = live.value["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"] != api_version {
        return None;
    }
    let last = Typed::new(Cow::Owned(last), live.schema, Duplicates::Refuse).ok()?;
    let present =
        Typed::new(Cow::Borrowed(live.value.as_ref()), live.schema, Duplicates::Refuse).ok()?;
    let compared = last.compare(&present).ok()?;
    let allowed = last
        .field_set()
        .difference(&compared.modified)
        .difference(&compared.added)
        .difference(&compared.removed);
    let conflicting: FieldSet =
        conflicts.iter().map(|conflict| Path(conflict.path.0.clone())).collect();
    let left = conflicting.difference(&allowed);
    Some(conflicts.iter().filter(|one| left.contains(&one.path.0)).cloned().collect())
}

/// Brings the annotation of client-side apply along, where the object has it.
fn keep_last_applied(object: &mut Value, config: &Value) {
    let present = &object["metadata"]["annotations"][LAST_APPLIED];
    if present.as_str().is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if config["metadata"]["annotations"].is_object() {
        member(&mut config["metadata"], "annotations").remove(LAST_APPLIED);
    }
    let mut text = String::new();
    crate::element::encode_value(&mut text, &config);
    text.push('\n');
    let annotations = member(&mut object["metadata"], "annotations");
    annotations.insert(LAST_APPLIED.to_owned(), text.into());
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if size > ANNOTATIONS_SIZE_MAX {
        annotations.remove(LAST_APPLIED);
    }
}
