//! Writing: create, update in place, delete. The order of steps is that of [`crate::strategy::Strategy`].

mod create;
mod delete;
mod duplicates;
mod ownership;
pub(crate) mod scale;
mod update;
mod wish;

use std::sync::Arc;

use api_meta::decode::{DEPTH_MAX, TOO_DEEP, object_depth};
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use bytes::Bytes;
use serde_json::Value;
use storage::{Expect, KeyValue, StorageError};

pub use delete::{DeleteOptions, Deleted, Propagation};
use ownership::Owners;
pub(crate) use ownership::merge_schema;

use crate::attributes::{GROUP_MASTERS, UserInfo};
use crate::audit::Sink;
use crate::body::decode::{Duplicate, strict};
use crate::registry::Registry;
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::{Operation, SERVER, Write};

/// How often a write is tried again when another one came between.
const CONFLICT_RETRIES_MAX: usize = 50;

/// What to do about fields the kind does not know and keys that stand twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// On whose behalf and how a write is done.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    pub user: UserInfo,
    pub dry_run: bool,
    pub field_validation: FieldValidation,
    /// Keys that stood twice in the body.
    pub duplicates: Vec<Duplicate>,
    /// The body, when it is the JSON of a built-in kind: its problems are reported in its order.
    pub document: Option<Bytes>,
    /// The update came as a patch: strict errors are then 422.
    pub is_patch: bool,
    /// Who comes to own the fields that are written; empty is nobody in particular.
    pub manager: String,
    /// The subresource that is written through, other than those that have their own operation.
    pub subresource: &'static str,
    /// Why the asker may not create the object of an update that finds none.
    pub creation_refused: Option<Box<Status>>,
    /// Admission has seen the write already, under the name of a subresource.
    pub admitted: bool,
    /// What admission has to say beside the answer.
    pub warnings: Warnings,
    /// Where admission tells what belongs into the audit log.
    pub audit: Sink,
}

/// Texts for the client of one request, gathered on the way.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<parking_lot::Mutex<Vec<String>>>);

impl Warnings {
    pub fn add(&self, texts: Vec<String>) {
        if !texts.is_empty() {
            self.0.lock().extend(texts);
        }
    }
    /// Those gathered so far, which are gone then.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The manager of what the server writes of itself.
const OWN_MANAGER: &str = "kube-apiserver";

impl WriteOptions {
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
    /// For the server's own controllers.
    pub fn system() -> Self {
        Self::of(UserInfo::new(SERVER, &[GROUP_MASTERS]))
    }
}

/// One object's place.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub resource: &'a Resource,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Target<'_> {
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
    fn modified(&self) -> Status {
        Status::modified(&self.resource.group, &self.resource.plural, self.name)
    }
}

/// A write's result.
#[derive(Debug)]
pub struct Written {
    pub object: Arc<Stored>,
    pub created: bool,
    pub warnings: Vec<String>,
}

/// Rewrites the apiVersion, and defaults and pruning of a changed schema.
pub(crate) fn bring_to_version(resource: &Resource, object: &mut Value) {
    if object.api_version() != resource.api_version() {
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.clone().into();
        resource.strategy.on_read(object);
    } else if resource.strategy.rewrites_on_read() {
        resource.strategy.on_read(object);
    }
}

/// Fills or checks the type of a body. Built-in kinds may leave it out.
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
    let wanted = (resource.api_version(), resource.kind.clone());
    let is_named =
        |field| map.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if resource.custom && !is_named("kind") {
        return Err(Status::bad_request("Object 'Kind' is missing in the body of the request"));
    }
    for (field, wanted) in [("apiVersion", wanted.0), ("kind", wanted.1)] {
        match map.get(field).and_then(Value::as_str) {
            None | Some("") if !resource.custom => {
                map.insert(field.to_owned(), wanted.into());
            }
            Some(given) if given == wanted => {}
            given => {
                let given = given.unwrap_or_default();
                let field = if field == "apiVersion" { "API version" } else { field };
                return Err(Status::bad_request(format!(
                    "the {field} in the data ({given}) does not match the expected {field} ({wanted})"
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

/// A body that does not fit the kind's type.
fn unreadable(resource: &Resource, problem: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {problem}"
    ))
}

/// The namespace of a body follows the path.
fn check_namespace(target: &Target<'_>, object: &mut Value) -> Result<(), Status> {
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

/// Why an object could not be read again, once it is stored.
pub(crate) fn depth_problem(object: &Value) -> Option<String> {
    (object_depth(object) > DEPTH_MAX).then(|| TOO_DEEP.to_owned())
}

/// Refuses what does not fit the kind's type.
fn check_decodable(
    resource: &Resource,
    object: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    let problem = depth_problem(object).or_else(|| resource.strategy.decode_problem(object));
    let Some(problem) = problem else { return Ok(()) };
    if options.is_patch {
        let shown = Value::String(object.to_string());
        let cause = Cause::invalid("patch", &shown, &problem);
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

/// Now, in the form of metadata.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Everything but metadata, and status where it has its own subresource: what `generation` counts.
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

/// A dry run's answer: like a stored object, but nowhere stored.
fn unstored(resource: &Resource, object: &mut Value, revision: u64) -> Result<Arc<Stored>, Status> {
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
    /// Writes an object. One that is too large is written without the owners of its fields, unless an
    /// apply has just said who they are.
    ///
    /// # Errors
    /// Outside, that it cannot be brought into its stored form; inside, those of the storage.
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

    /// The stored form of a fresh write.
    fn stored(&self, resource: &Resource, item: &storage::KeyValue) -> Result<Arc<Stored>, Status> {
        Stored::decode(item, &resource.selectable_fields)
            .map(Arc::new)
            .map_err(|error| Status::internal(&error))
    }
}
