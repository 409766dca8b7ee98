//! Field ownership: what a write makes of `metadata.managedFields`.

mod versions;

use std::sync::{Arc, LazyLock};

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use jiff::Timestamp;
use serde_json::Value;
use structured_merge::{
    ApplyError, ConvertError, FieldSet, Path, Schema, Typed, UpdateError, Versions, Write,
};
use versions::KindVersions;

use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::schemas::builtin;

/// Where the ownership entries of a write come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// Computed from what changes.
    Tracked,
    /// The result of an apply contains them.
    Applied,
}

/// The field owners of one resource during one write.
pub(super) struct FieldOwnership<'a> {
    resource: &'a Resource,
    subresource: &'a str,
    manager: &'a str,
    versions: KindVersions<'a>,
}

impl<'a> FieldOwnership<'a> {
    /// For a write by `manager`, through `subresource` if that is not empty.
    pub fn new(
        resource: &'a Resource,
        catalog: Arc<Catalog>,
        subresource: &'a str,
        manager: &'a str,
    ) -> Self {
        let reset = reset_fields(resource, subresource);
        let versions = KindVersions::new(resource, catalog, reset);
        Self { resource, subresource, manager, versions }
    }

    fn write<'v>(&'v self, api_version: &'v str) -> Write<'v, KindVersions<'a>> {
        Write {
            versions: &self.versions,
            schema: merge_schema(self.resource),
            api_version,
            subresource: self.subresource,
            manager: self.manager,
            now: Timestamp::now(),
            compiled: !self.resource.custom,
        }
    }

    /// Sets the ownership entries of `new`, the state after a create, replace or patch, which has
    /// those of the body. When the states cannot be compared, it is left without entries, like in
    /// kube-apiserver: a status of another type counts here, though it is not stored.
    pub async fn track(&self, registry: &Registry, old: Option<&Value>, new: &mut Value) {
        let api_version = self.resource.api_version();
        let work = || self.write(&api_version).update(old, new);
        let entries = match self.versions.run_with_conversions(registry, work).await {
            Ok(entries) => entries,
            // The owners are unknown from now on, unless fields are tracked anew.
            Err(
                UpdateError::Compare(_)
                | UpdateError::Convert { error: ConvertError::Unfit(_), .. },
            ) => None,
            Err(error) => {
                tracing::debug!(name = new.name(), %error, "field owners stay unchanged");
                old.and_then(|old| old["metadata"].get("managedFields")).cloned()
            }
        };
        set_entries(new, entries);
    }

    /// The result of applying `config` to `old`, or to nothing. `force` takes over fields of other
    /// managers.
    ///
    /// # Errors
    /// 409 for conflicts, 400 for another type, 500 when the result cannot be decoded.
    pub async fn apply(
        &self,
        registry: &Registry,
        old: Option<&Value>,
        config: &Value,
        force: bool,
    ) -> Result<Value, Status> {
        let api_version = self.resource.api_version();
        check_kind(config, &api_version, &self.resource.kind)?;
        let work = || self.write(&api_version).apply(old, config, force);
        let applied = self.versions.run_with_conversions(registry, work).await;
        let object = applied.map_err(|error| refusal(&error))?.object;
        match self.resource.strategy.decode_problem(&object) {
            Some(problem) => Err(undecodable(config, &problem)),
            None => Ok(object),
        }
    }
}

/// Reported before any problem of the name or the version of the object, and for the body alone.
fn undecodable(config: &Value, problem: &str) -> Status {
    let (group, version) = api_meta::object::group_version(config.api_version());
    let kind = format!("{group}/{version}, Kind={}", config.kind());
    let (namespace, name) = (config.namespace(), config.name());
    let text = format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to \
         convert unstructured object to {kind}: {problem}"
    );
    Status::new(500, "", text)
}

/// The result of applying `config` to a Scale with its own ownership entries, as `manager`. With
/// `force`, it takes over fields that other managers own.
///
/// # Errors
/// 409 for conflicts, 400 for another type.
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

/// A kind that has only one version.
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

    fn ignored_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

fn check_kind(config: &Value, api_version: &str, expected_kind: &str) -> Result<(), Status> {
    let kind = config["kind"].as_str().unwrap_or_default();
    if config.api_version() == api_version && kind == expected_kind {
        return Ok(());
    }
    let (group, version) = api_meta::object::group_version(config.api_version());
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

/// Sets or removes the ownership entries.
pub(super) fn set_entries(object: &mut Value, entries: Option<Value>) {
    match entries {
        Some(entries) => object.set_meta("managedFields", entries),
        None => drop(object.remove_meta("managedFields")),
    }
}

/// Restores the old ownership entries when they differ only in times and all else is unchanged:
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

/// How objects of the resource merge; deduced from each object when the schema of their kind is
/// unknown.
pub(crate) fn merge_schema(resource: &Resource) -> &Schema {
    static DEDUCED: LazyLock<Schema> = LazyLock::new(Schema::deduced);
    if resource.custom {
        return resource.strategy.merge_schema(&resource.api_version()).unwrap_or(&DEDUCED);
    }
    let builtin = builtin(&resource.group, &resource.version, &resource.kind);
    builtin.map_or(&*DEDUCED, |builtin| builtin.merge_schema())
}

/// The fields that the endpoint ignores, so that writers do not come to own them.
fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    let fields: &[&[&str]] = match subresource {
        "status" => resource.strategy.preserved_by_status(),
        _ if resource.strategy.written_by(subresource).iter().any(|path| path[0] == "status") => {
            &[&["spec"]]
        }
        _ if resource.has_status() => &[&["status"]],
        _ => &[],
    };
    fields.iter().map(|names| Path::fields(names.to_vec())).collect()
}
