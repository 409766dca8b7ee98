//! Who owns which field: what a write makes of `metadata.managedFields`.

use std::borrow::Cow;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use jiff::Timestamp;
use serde_json::Value;
use structured_merge::{ApplyError, ConvertError, FieldSet, Path, Schema, Typed, Versions, Write};

use super::bring_to_version;
use crate::catalog::Catalog;
use crate::openapi::builtin;
use crate::resource::{Backend, Resource};

/// Where the entries of the outcome come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// Worked out from what changes.
    Tracked,
    /// The outcome of an apply has them.
    Applied,
}

/// Stands for the field owners of one resource while one write is done.
pub(super) struct Ownership<'a> {
    resource: &'a Resource,
    subresource: &'a str,
    manager: &'a str,
    versions: Served<'a>,
}

/// The versions that a kind is served in.
struct Served<'a> {
    resource: &'a Resource,
    catalog: Arc<Catalog>,
    deduced: Schema,
    /// What the endpoint resets.
    reset: FieldSet,
}

impl<'a> Ownership<'a> {
    pub fn new(
        resource: &'a Resource,
        catalog: Arc<Catalog>,
        subresource: &'a str,
        manager: &'a str,
    ) -> Self {
        let reset = reset_fields(resource, subresource);
        let versions = Served { resource, catalog, deduced: Schema::deduced(), reset };
        Self { resource, subresource, manager, versions }
    }

    fn write<'v>(&'v self, api_version: &'v str) -> Write<'v, Served<'a>> {
        Write {
            versions: &self.versions,
            schema: self.versions.schema(self.resource),
            api_version,
            subresource: self.subresource,
            manager: self.manager,
            now: Timestamp::now(),
            compiled: !self.resource.custom,
        }
    }

    /// Gives `new`, the state that a create, replace or patch leads to, the entries that follow.
    /// It has those of the body.
    pub fn track(&self, old: Option<&Value>, new: &mut Value) {
        let api_version = self.resource.api_version();
        let entries = match self.write(&api_version).update(old, new) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::debug!(name = new.name(), %error, "kept the owners of fields as they were");
                old.and_then(|old| old["metadata"].get("managedFields")).cloned()
            }
        };
        set_entries(new, entries);
    }

    /// What applying `config` makes of `old`, or of nothing.
    pub fn apply(&self, old: Option<&Value>, config: &Value, force: bool) -> Result<Value, Status> {
        let api_version = self.resource.api_version();
        check_kind(config, &api_version, &self.resource.kind)?;
        let applied = self.write(&api_version).apply(old, config, force);
        applied.map(|applied| applied.object).map_err(|error| refusal(&error))
    }
}

impl Ownership<'_> {
    /// What applying `config` makes of a Scale with entries of its own.
    pub fn apply_scale(
        scale: &Value,
        config: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, Status> {
        check_kind(config, scale.api_version(), scale.kind())?;
        let schema = builtin("autoscaling", "v1", "Scale").map(|builtin| builtin.merge_schema());
        let schema = schema.ok_or_else(Status::unknown_resource)?;
        let write = Write {
            versions: &OneVersion,
            schema,
            api_version: scale.api_version(),
            subresource: "scale",
            manager,
            now: Timestamp::now(),
            compiled: true,
        };
        let applied = write.apply(Some(scale), config, force);
        applied.map(|applied| applied.object).map_err(|error| refusal(&error))
    }
}

/// Of a kind that is never in another version.
struct OneVersion;

impl Versions for OneVersion {
    fn convert<'v>(
        &'v self,
        object: &Typed<'v>,
        api_version: &str,
    ) -> Result<Typed<'v>, ConvertError> {
        match object.value.api_version() == api_version {
            true => Ok(object.clone()),
            false => Err(ConvertError::MissingVersion(api_version.to_owned())),
        }
    }

    fn ignored(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

fn check_kind(config: &Value, api_version: &str, wanted: &str) -> Result<(), Status> {
    let kind = config["kind"].as_str().unwrap_or_default();
    if config.api_version() == api_version && kind == wanted {
        return Ok(());
    }
    let (group, version) =
        config.api_version().split_once('/').unwrap_or(("", config.api_version()));
    Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
}

fn refusal(error: &ApplyError) -> Status {
    match error {
        ApplyError::ManagedFieldsGiven => Status::bad_request(error.to_string()),
        ApplyError::Conflicts(_) => {
            let causes = error.causes().into_iter();
            let causes = causes
                .map(|(message, field)| Cause::new("FieldManagerConflict", &field, message))
                .collect();
            Status::new(409, "Conflict", error.to_string()).causes(causes)
        }
        ApplyError::Config { .. }
        | ApplyError::Live { .. }
        | ApplyError::Entries(_)
        | ApplyError::Update(_) => Status::new(500, "", error.to_string()),
    }
}

/// Sets the entries, or takes them away.
pub(super) fn set_entries(object: &mut Value, entries: Option<Value>) {
    match entries {
        Some(entries) => object.set_meta("managedFields", entries),
        None => drop(object.remove_meta("managedFields")),
    }
}

/// Entries that differ in nothing but times get the old ones back, when all else is as it was:
/// such a write changes nothing.
pub(super) fn put_back_times(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) =
        (old["metadata"].get("managedFields"), new["metadata"].get("managedFields"))
    else {
        return;
    };
    if before == after || timeless(before) != timeless(after) {
        return;
    }
    let after = std::mem::replace(&mut new["metadata"]["managedFields"], before.clone());
    if new != old {
        new["metadata"]["managedFields"] = after;
    }
}

fn timeless(entries: &Value) -> Vec<Value> {
    let mut entries = entries.as_array().cloned().unwrap_or_default();
    for entry in &mut entries {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
    }
    entries
}

impl Served<'_> {
    fn schema<'s>(&'s self, resource: &'s Resource) -> &'s Schema {
        if resource.custom {
            return resource.strategy.merge_schema().unwrap_or(&self.deduced);
        }
        let builtin = builtin(&resource.group, &resource.version, &resource.kind);
        builtin.map_or(&self.deduced, |builtin| builtin.merge_schema())
    }

    /// The resource in another version. It may be in another group: what is stored counts.
    fn served_as(&self, api_version: &str) -> Option<&Resource> {
        let Backend::Stored { prefix } = &self.resource.backend else { return None };
        let same = |other: &&Arc<Resource>| {
            other.api_version() == api_version
                && matches!(&other.backend, Backend::Stored { prefix: other } if other == prefix)
        };
        self.catalog.all().find(same).map(|resource| &**resource)
    }
}

impl Versions for Served<'_> {
    fn convert<'v>(
        &'v self,
        object: &Typed<'v>,
        api_version: &str,
    ) -> Result<Typed<'v>, ConvertError> {
        if object.value.api_version() == api_version {
            return Ok(object.clone());
        }
        let missing = || ConvertError::MissingVersion(api_version.to_owned());
        let resource = self.served_as(api_version).ok_or_else(missing)?;
        let mut value = object.value.clone().into_owned();
        bring_to_version(resource, &mut value);
        Ok(Typed::unchecked(Cow::Owned(value), self.schema(resource)))
    }

    fn ignored(&self, _api_version: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }
}

/// What the endpoint resets whoever writes there, so that nobody comes to own it by that.
fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    let fields: &[&[&str]] = match subresource {
        "status" => resource.strategy.kept_by_status(),
        _ if resource.strategy.written_by(subresource).iter().any(|path| path[0] == "status") => {
            &[&["spec"]]
        }
        _ if resource.has_status() => &[&["status"]],
        _ => &[],
    };
    fields.iter().map(|names| Path::fields(names.to_vec())).collect()
}
