//! Creating an object.

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use api_meta::{metadata, names};
use serde_json::Value;
use storage::{Expect, StorageError};

use super::duplicates::deduplicate;
use super::ownership::{FieldOwnership, Owners};
use super::{
    WriteOptions, WriteTarget, Written, check_decodable, check_fields, check_namespace, check_type,
    dry_run_object, now,
};
use crate::built_in_plugins::Switchable;
use crate::registry::admission::AdmissionRequest;
use crate::registry::admission::TakenValues;
use crate::registry::{Registry, storage_status};
use crate::resource::Resource;
use crate::stored::{Stored, new_uid};
use crate::strategy::{Operation, Write};

/// Attempts to generate a free name.
const GENERATE_ATTEMPTS_MAX: usize = 8;

/// The parts of a create that all attempts share.
struct CreateContext<'a> {
    taken: &'a TakenValues,
    owners: Owners,
    /// The body contained a resource version.
    is_versioned: bool,
}

impl Registry {
    /// Creates an object from a body. `namespace` is that of the path. A name is generated when the
    /// body has `generateName`.
    ///
    /// # Errors
    /// 409 when the name exists, 403 or 422 when a rule, admission or a quota rejects it, 404
    /// without its namespace.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.create_owned(resource, namespace, object, options, Owners::Tracked).await
    }

    pub(super) async fn create_owned(
        &self,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
        owners: Owners,
    ) -> Result<Written, Status> {
        check_type(resource, &mut object)?;
        let name = object.name().to_owned();
        let target = WriteTarget { resource, namespace, name: &name };
        check_decodable(resource, &object, options)?;
        let mut warnings = check_fields(resource, &object, options)?;
        check_namespace(&target, &mut object)?;
        let is_versioned = object.resource_version().parse().is_ok_and(|version: u64| version != 0);
        warnings.extend(deduplicate(&mut object));
        drop_server_fields(resource, &mut object);
        resource.strategy.prune(&mut object);
        default(resource, owners, &mut object);
        metadata::drop_empty(&mut object);
        let mut taken = TakenValues::default();
        self.take_out(resource, &mut object, None, &mut taken).await?;
        if owners == Owners::Tracked {
            let ownership = FieldOwnership::new(resource, self.catalog(), "", &options.manager);
            ownership.track(self, None, &mut object).await;
        }
        let request = AdmissionRequest::new(&target, Operation::Create, options);
        if self.mutates(&request) {
            self.admit_into_namespace(&target).await?;
            self.mutate(&request, Some(&mut object), None).await?;
            check_namespace(&target, &mut object)?;
            self.take_out(resource, &mut object, None, &mut taken).await?;
        }
        let attempts = if name.is_empty() { GENERATE_ATTEMPTS_MAX } else { 1 };
        let mut result = Err(target.not_found());
        let context = CreateContext { taken: &taken, owners, is_versioned };
        for _ in 0..attempts {
            result = self.create_once(&target, &request, object.clone(), &context).await;
            match &result {
                Err(status) if status.reason == "AlreadyExists" => {}
                _ => break,
            }
        }
        match result {
            Ok(mut written) => {
                warnings.extend(options.warnings.take());
                written.warnings = warnings;
                Ok(written)
            }
            Err(status) if attempts > 1 && status.reason == "AlreadyExists" => {
                Err(status.retry_after(1))
            }
            Err(status) => Err(status),
        }
    }

    async fn create_once(
        &self,
        target: &WriteTarget<'_>,
        request: &AdmissionRequest<'_>,
        mut object: Value,
        context: &CreateContext<'_>,
    ) -> Result<Written, Status> {
        let (resource, options) = (target.resource, request.options);
        let CreateContext { taken, owners, is_versioned } = *context;
        let name = ensure_name(target, &mut object)?;
        let target = WriteTarget { name: &name, ..*target };
        let write = target.write(Operation::Create, options);
        let _creating = self.creating();
        self.admit_into_namespace(&target).await?;
        drop_server_fields(resource, &mut object);
        if resource.has_status()
            && !resource.strategy.keeps_status_on_create()
            && object.as_object_mut().expect("checked to be an object").remove("status").is_some()
        {
            default(resource, owners, &mut object);
        }
        object.set_meta("uid", new_uid());
        object.set_meta("creationTimestamp", now());
        if resource.rules.generation {
            object.set_meta("generation", 1);
        }
        resource.strategy.prepare(&write, &mut object, None);
        for plugin in self.plugins(resource) {
            plugin.prepare(resource, &write, &mut object, None);
        }
        let causes = self.violations(&write, resource, &mut object);
        if !causes.is_empty() {
            return Err(target.invalid(causes));
        }
        options.warnings.add(resource.strategy.warnings(&write, &object, None));
        resource.strategy.admit(&write, Some(&mut object), None).await?;
        for plugin in self.plugins(resource) {
            plugin.admit(resource, &write, Some(&object), None).await?;
        }
        self.review(&AdmissionRequest { name: &name, ..*request }, Some(&object), None).await?;
        // Like kube-apiserver, where the storage rejects it: a dry run does not get there.
        if is_versioned && !options.dry_run {
            let text = "resourceVersion should not be set on objects to be created";
            return Err(Status::new(500, "", text));
        }
        self.charge_quotas(&write, resource, &object, None).await?;
        resource.strategy.lose_unstored(&mut object);
        let key = resource.key(target.namespace, &name).ok_or_else(Status::method_not_allowed)?;
        if options.dry_run {
            self.fresh().await?;
            if let Some(found) = self.cache(resource)?.get(&key) {
                return Err(exists(&target, &found));
            }
            let object = dry_run_object(resource, &mut object, 0)?;
            return Ok(Written { object, created: true, warnings: Vec::new() });
        }
        let _held = self.store_taken(resource, &object, None, taken).await?;
        match self.put(resource, &key, &mut object, Expect::Absent, owners).await? {
            Ok(item) => {
                let object = self.decode_stored(resource, &item)?;
                Ok(Written { object, created: true, warnings: Vec::new() })
            }
            Err(StorageError::Unexpected { current: Some(item) }) => {
                Err(exists(&target, &*self.decode_stored(resource, &item)?))
            }
            Err(StorageError::Unexpected { current: None }) => Err(target.conflict()),
            Err(error) => Err(storage_status(&error)),
        }
    }

    /// All violations of an object to be created.
    fn violations(&self, write: &Write<'_>, resource: &Resource, object: &mut Value) -> Vec<Cause> {
        let mut causes = metadata::validate_name(object, resource.name_rule);
        metadata::drop_empty(object);
        causes.extend(metadata::validate(object, resource.namespaced));
        if resource.validates_finalizers() {
            causes.extend(metadata::validate_finalizer_names(object));
        }
        causes.extend(resource.strategy.validate(write, object, None));
        for plugin in self.plugins(resource) {
            causes.extend(plugin.validate(resource, write, object, None));
        }
        causes
    }

    /// Rejects objects in a namespace that does not exist or is terminating.
    async fn admit_into_namespace(&self, target: &WriteTarget<'_>) -> Result<(), Status> {
        let resource = target.resource;
        if !resource.namespaced || !self.has(Switchable::NamespaceLifecycle) {
            return Ok(());
        }
        let Some(namespaces) = self.find("", "namespaces") else { return Ok(()) };
        let namespace = self.get(&namespaces, "", target.namespace).await?.value();
        if !namespace.is_terminating() {
            return Ok(());
        }
        let text = format!(
            "unable to create new content in namespace {} because it is being terminated",
            target.namespace
        );
        let cause = Cause::new(
            "NamespaceTerminating",
            "metadata.namespace",
            format!("namespace {} is being terminated", target.namespace),
        );
        Err(Status::forbidden(&resource.group, &resource.plural, target.name, &text)
            .causes(vec![cause]))
    }
}

pub(super) fn default(resource: &Resource, owners: Owners, object: &mut Value) {
    match owners {
        Owners::Tracked => resource.strategy.default(object),
        Owners::Applied => resource.strategy.default_applied(object),
    }
}

/// Drops metadata that only the server writes, and that bodies may contain.
fn drop_server_fields(resource: &Resource, object: &mut Value) {
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ] {
        let is_preserved = field == "generation" && !resource.rules.generation;
        if !is_preserved {
            object.remove_meta(field);
        }
    }
}

fn ensure_name(target: &WriteTarget<'_>, object: &mut Value) -> Result<String, Status> {
    if !object.name().is_empty() {
        return Ok(object.name().to_owned());
    }
    let base = object.meta_str("generateName");
    let name = match base {
        "" => target.resource.strategy.name_for().ok_or_else(|| {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            target.invalid(vec![cause])
        })?,
        base => names::generate_name(base, rand::random()),
    };
    object.set_meta("name", name.clone());
    Ok(name)
}

/// 409: an object of that name exists, or is still terminating.
fn exists(target: &WriteTarget<'_>, found: &Stored) -> Status {
    let resource = target.resource;
    let mut status = Status::already_exists(&resource.group, &resource.plural, target.name);
    if found.value().is_terminating() {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
