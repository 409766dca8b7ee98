//! Writes: create, update in place, delete. The order of steps is that of
//! [`crate::strategy::Strategy`].

mod create;
mod delete;
mod duplicates;
mod ownership;
mod requested_update;
mod update;

use std::sync::Arc;

use api_meta::decode::{DEPTH_MAX, TOO_DEEP, object_depth};
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use bytes::Bytes;
use serde_json::Value;
use storage::{Expect, KeyValue, StorageError};

pub use delete::{DeleteOptions, Deleted, Propagation};
use ownership::Owners;
pub use ownership::apply_scale;
pub(crate) use ownership::merge_schema;

use crate::attributes::{GROUP_MASTERS, UserInfo};
use crate::audit::Sink;
use crate::body::decode::{Duplicate, strict};
use crate::registry::Registry;
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::{Operation, SERVER, Write};

/// How often a write is retried after a conflict with another one.
const CONFLICT_RETRIES_MAX: usize = 50;

/// What to do about unknown fields and duplicate keys: `fieldValidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop unknown fields.
    Ignore,
    /// Drop them, with a warning.
    #[default]
    Warn,
    /// Reject the write.
    Strict,
}

/// On whose behalf a write is done, and how.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// For admission and audit. The registry does not authorise.
    pub user: UserInfo,
    /// Do everything except storing.
    pub dry_run: bool,
    pub field_validation: FieldValidation,
    /// Duplicate keys of the body.
    pub duplicates: Vec<Duplicate>,
    /// The body, when it is the JSON of a built-in kind: its problems are reported in document
    /// order.
    pub document: Option<Bytes>,
    /// The update came as a patch: strict errors are then 422.
    pub is_patch: bool,
    /// The manager of the fields that are written.
    pub manager: String,
    /// The subresource of the write, when it has no operation of its own.
    pub subresource: &'static str,
    /// Why the caller has no right to create the object of an update that finds none.
    pub creation_refused: Option<Box<Status>>,
    /// Admission has evaluated the write already, as one of a subresource.
    pub admitted: bool,
    /// Warnings of admission for the response.
    pub warnings: Warnings,
    /// Annotations of admission for the audit log.
    pub audit: Sink,
}

/// Warnings for the client of one request, collected while it is handled. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<parking_lot::Mutex<Vec<String>>>);

impl Warnings {
    /// Adds warnings for the response; an empty list adds nothing.
    pub fn add(&self, texts: Vec<String>) {
        if !texts.is_empty() {
            self.0.lock().extend(texts);
        }
    }
    /// Returns the warnings so far, and removes them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The field manager of the writes of the server.
const OWN_MANAGER: &str = "kube-apiserver";

impl WriteOptions {
    /// Options of a write by this user, with the manager `kube-apiserver`.
    pub fn of(user: UserInfo) -> Self {
        Self {
            user,
            dry_run: false,
            field_validation: FieldValidation::Ignore,
            duplicates: Vec::new(),
            document: None,
            is_patch: false,
            manager: OWN_MANAGER.to_owned(),
            subresource: "",
            creation_refused: None,
            admitted: false,
            warnings: Warnings::default(),
            audit: Sink::default(),
        }
    }
    /// Options of a write by a controller of the server.
    pub fn system() -> Self {
        Self::of(UserInfo::new(SERVER, &[GROUP_MASTERS]))
    }
}

/// The object that a write addresses.
#[derive(Clone, Copy)]
pub struct WriteTarget<'a> {
    pub resource: &'a Resource,
    /// Empty for cluster-scoped resources.
    pub namespace: &'a str,
    pub name: &'a str,
}

impl WriteTarget<'_> {
    /// 404 for this object.
    pub fn not_found(&self) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, self.name)
    }
    fn write<'a>(&'a self, operation: Operation, options: &'a WriteOptions) -> Write<'a> {
        Write {
            user: &options.user,
            operation,
            namespace: self.namespace,
            name: self.name,
            dry_run: options.dry_run,
        }
    }
    fn invalid(&self, causes: Vec<Cause>) -> Status {
        Status::invalid(&self.resource.group, &self.resource.kind, self.name, causes)
    }
    fn conflict(&self) -> Status {
        Status::modified(&self.resource.group, &self.resource.plural, self.name)
    }
}

/// The result of a write.
#[derive(Debug)]
pub struct Written {
    pub object: Arc<Stored>,
    /// The write created the object.
    pub created: bool,
    pub warnings: Vec<String>,
}

/// Converts an object to the version of the resource, without a webhook: API version, and defaults
/// and pruning of a changed schema.
pub(crate) fn bring_to_version(resource: &Resource, object: &mut Value) {
    if object.api_version() != resource.api_version() {
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.clone().into();
        resource.strategy.on_read(object);
    } else if resource.strategy.rewrites_on_read() {
        resource.strategy.on_read(object);
    }
}

/// Completes or validates the type of a body. Built-in kinds may omit it.
fn check_type(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    if object.is_null() && !resource.custom {
        *object = Value::Object(serde_json::Map::new());
    }
    let Some(map) = object.as_object_mut() else {
        return Err(Status::bad_request(format!(
            "the body of the request is not an object of kind {}",
            resource.kind
        )));
    };
    let expected = (resource.api_version(), resource.kind.clone());
    let is_named =
        |field| map.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if resource.custom && !is_named("kind") {
        return Err(Status::bad_request("Object 'Kind' is missing in the body of the request"));
    }
    for (field, expected) in [("apiVersion", expected.0), ("kind", expected.1)] {
        match map.get(field).and_then(Value::as_str) {
            None | Some("") if !resource.custom => {
                map.insert(field.to_owned(), expected.into());
            }
            Some(given) if given == expected => {}
            given => {
                let given = given.unwrap_or_default();
                let field = if field == "apiVersion" { "API version" } else { field };
                return Err(Status::bad_request(format!(
                    "the {field} in the data ({given}) does not match the expected {field} ({expected})"
                )));
            }
        }
    }
    match api_meta::metadata::type_problem(object) {
        None => Ok(()),
        Some(problem) if resource.custom => {
            let problem = problem.replace("ObjectMeta.metadata.", "ObjectMeta.");
            Err(unreadable(resource, &problem))
        }
        Some(problem) => Err(unreadable(resource, &problem)),
    }
}

/// 400 for a body that does not match the type of the kind.
fn unreadable(resource: &Resource, problem: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {problem}"
    ))
}

/// Sets the namespace of a body to that of the path, or rejects another one.
fn check_namespace(target: &WriteTarget<'_>, object: &mut Value) -> Result<(), Status> {
    if !target.resource.namespaced {
        object.remove_meta("namespace");
        return Ok(());
    }
    let given = object.namespace();
    if given.is_empty() {
        object.set_meta("namespace", target.namespace);
    } else if given != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Why an object could not be decoded again once it is stored: it is nested too deeply.
pub(crate) fn depth_problem(object: &Value) -> Option<String> {
    (object_depth(object) > DEPTH_MAX).then(|| TOO_DEEP.to_owned())
}

/// Rejects a body that does not match the type of the kind.
fn check_decodable(
    resource: &Resource,
    object: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    let problem = depth_problem(object).or_else(|| resource.strategy.decode_problem(object));
    let Some(problem) = problem else { return Ok(()) };
    if options.is_patch {
        let object_text = Value::String(object.to_string());
        let cause = Cause::invalid("patch", &object_text, &problem);
        return Err(Status::invalid("", "", "", vec![cause]));
    }
    Err(unreadable(resource, &problem))
}

/// Unknown fields and duplicates: an error or warnings. Run before pruning.
fn check_fields(
    resource: &Resource,
    object: &Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    if options.field_validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let unknown = resource.strategy.unknown_fields(object);
    let is_clean = unknown.is_empty() && options.duplicates.is_empty();
    let problems = match (&options.document, options.field_validation) {
        _ if is_clean => Vec::new(),
        (Some(document), _) => strict::problems(document, |object| resource.strategy.prune(object)),
        (None, validation) => {
            let mut problems: Vec<String> = match validation {
                FieldValidation::Warn => options.duplicates.iter().map(Duplicate::text).collect(),
                _ => Duplicate::problems(&options.duplicates),
            };
            problems.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
            problems
        }
    };
    if problems.is_empty() || options.field_validation == FieldValidation::Warn {
        return Ok(problems);
    }
    let list = problems.join(", ");
    if options.is_patch {
        let cause = Cause::invalid("patch", object, &format!("strict decoding error: {list}"));
        return Err(Status::invalid("", "", "", vec![cause]));
    }
    Err(unreadable(resource, &format!("strict decoding error: {list}")))
}

/// The current time in the format of metadata.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether anything that `generation` counts differs: everything except metadata, and except status
/// when it has its own subresource.
fn spec_differs(resource: &Resource, old: &Value, new: &Value) -> bool {
    let relevant = |object: &Value| {
        let map = object.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .filter(|(key, _)| {
                let apart = matches!(key.as_str(), "metadata" | "apiVersion" | "kind");
                !(apart || key == "status" && resource.has_status())
            })
            .collect::<serde_json::Map<_, _>>()
    };
    relevant(old) != relevant(new)
}

/// The result of a dry run: like a stored object, but not stored.
fn dry_run_object(
    resource: &Resource,
    object: &mut Value,
    revision: u64,
) -> Result<Arc<Stored>, Status> {
    let value = crate::stored::to_storage(object);
    let item = storage::KeyValue {
        key: "".into(),
        value,
        create_revision: revision,
        mod_revision: revision,
    };
    let mut stored = Stored::decode(&item, &resource.selectable_fields)
        .map_err(|error| Status::internal(&error))?;
    if revision == 0 {
        stored.bytes = crate::stored::to_bytes(object);
    }
    Ok(Arc::new(stored))
}

impl Registry {
    /// Stores an object. One that is too large is stored without the owners of its fields, unless
    /// they are the result of an apply.
    ///
    /// # Errors
    /// Outer: it cannot be converted to its storage version. Inner: those of the storage.
    async fn put(
        &self,
        resource: &Resource,
        key: &str,
        object: &mut Value,
        expect: Expect,
        owners: Owners,
    ) -> Result<Result<KeyValue, StorageError>, Status> {
        let ttl = resource.rules.ttl;
        let value = self.storage_bytes(resource, object).await?;
        let written = self.storage().put(key, value, expect, ttl).await;
        let too_large = matches!(written, Err(StorageError::TooLarge { .. }));
        if !too_large || owners == Owners::Applied || object.remove_meta("managedFields").is_none()
        {
            return Ok(written);
        }
        let value = self.storage_bytes(resource, object).await?;
        Ok(self.storage().put(key, value, expect, ttl).await)
    }

    /// The object of a value that was just stored.
    fn decode_stored(
        &self,
        resource: &Resource,
        item: &storage::KeyValue,
    ) -> Result<Arc<Stored>, Status> {
        Stored::decode(item, &resource.selectable_fields)
            .map(Arc::new)
            .map_err(|error| Status::internal(&error))
    }
}
