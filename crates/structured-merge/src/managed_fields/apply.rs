//! Server-side apply: a write of an apply configuration.

use std::borrow::Cow;

use serde_json::Value;

use super::entries::{EntryError, ManagedFields, display_identity};
use super::write::{Write, member, strip};
use crate::conflict::{Conflict, Conflicts};
use crate::element::Path;
use crate::set::FieldSet;
use crate::typed::{Duplicates, Typed, ValidationErrors};
use crate::update::{UpdateError, Updater, Versions};

/// The annotation in which client-side apply stores the last configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager of fields that were set before ownership was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that takes fields over from client-side apply.
const KUBECTL: &str = "kubectl";
/// Total size of an object's annotations, in bytes.
const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object to be stored, before defaulting, with its `managedFields`.
    pub object: Value,
    /// Whether anything but the managed fields changed.
    pub changed: bool,
}

/// Why a configuration cannot be applied. Each variant names the HTTP status of the response.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// 400: only the server writes managed fields.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsGiven,
    /// 500: the configuration does not fit its schema.
    #[error("failed to create typed patch object ({object}): {problems}")]
    Config { object: String, problems: ValidationErrors },
    /// 500: the stored object does not fit its schema.
    #[error("failed to create typed live object ({object}): {problems}")]
    Live { object: String, problems: ValidationErrors },
    /// 500: the stored entries cannot be decoded.
    #[error("failed to decode managed fields: {0}")]
    Entries(#[from] EntryError),
    /// 409, with a cause for each conflict.
    #[error("{}", conflict_message(.0))]
    Conflicts(Conflicts),
    /// 500: ownership cannot be computed.
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
    /// Message and field path of each cause of a conflict; empty for other errors.
    pub fn causes(&self) -> Vec<(String, String)> {
        let Self::Conflicts(Conflicts(conflicts)) = self else { return Vec::new() };
        let cause = |conflict: &Conflict| {
            (
                format!("conflict with {}", display_identity(&conflict.manager)),
                conflict.path.to_string(),
            )
        };
        conflicts.iter().map(cause).collect()
    }
}

fn conflict_message(Conflicts(conflicts): &Conflicts) -> String {
    if let [Conflict { manager, path }] = conflicts.as_slice() {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {path}",
            display_identity(manager)
        );
    }
    let groups = conflicts.chunk_by(|left, right| left.manager == right.manager);
    let groups: Vec<String> = groups
        .map(|group| {
            let paths: String = group.iter().map(|one| format!("\n- {}", one.path)).collect();
            format!("conflicts with {}:{paths}", display_identity(&group[0].manager))
        })
        .collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), groups.join("\n"))
}

impl<'v, V: Versions> Write<'v, V> {
    /// Applies `config` to the stored object `live`; `live` is absent when the object is to be
    /// created. With `force`, conflicting fields are taken from their owners.
    ///
    /// # Errors
    /// [`ApplyError`]: the object is not changed, and the variant says which part of the request or
    /// of the stored object is at fault.
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
            .map_err(|problems| ApplyError::Live { object: describe_object(config), problems })?;
        let borrowed = Cow::Borrowed(config);
        let config = Typed::new(borrowed, self.schema, Duplicates::Refuse)
            .map_err(|problems| ApplyError::Config { object: describe_object(config), problems })?;
        let mut applied = match self.apply_once(&live, &config, managed.clone(), force) {
            Err(ApplyError::Conflicts(conflicts)) if self.manager == KUBECTL => {
                match unexplained_conflicts(&live, self.api_version, &conflicts) {
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
            update_last_applied(&mut applied.object, &config.value);
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
            self.track_update(&empty, live, managed, BEFORE_FIRST_APPLY)?
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
fn describe_object(object: &Value) -> String {
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

/// The conflicts that client-side apply does not explain. A field may be taken over when its value
/// is still the one in the annotation. `None` when there is no usable annotation.
fn unexplained_conflicts(
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

/// Updates the annotation of client-side apply, if the object has it.
fn update_last_applied(object: &mut Value, config: &Value) {
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
