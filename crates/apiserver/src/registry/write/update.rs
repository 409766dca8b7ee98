//! Updates: PUT, all kinds of patches, status, finalize.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use api_meta::{metadata, number};
use serde_json::Value;
use storage::{Expect, StorageError};

use super::duplicates::deduplicate;
use super::ownership::{FieldOwnership, Owners, put_back_times, set_entries};
use super::requested_update::{ChangeFn, RequestedUpdate};
use super::{
    CONFLICT_RETRIES_MAX, WriteOptions, WriteTarget, Written, bring_to_version, check_decodable,
    check_fields, check_namespace, check_type, dry_run_object, spec_differs,
};
use crate::registry::admission::AdmissionRequest;
use crate::registry::admission::TakenValues;
use crate::registry::convert::stored_as;
use crate::registry::{Registry, storage_status};
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::Operation;

/// The parts of an update that its steps share.
struct UpdateContext<'a> {
    operation: Operation,
    options: &'a WriteOptions,
    owners: Owners,
}

impl Registry {
    /// Stores the object again, spec and status, if plugins take something out of it; returns
    /// whether it was stored. No other step of admission is done, so that objects that were stored
    /// under earlier rules are not rejected; field owners and generation stay unchanged.
    ///
    /// # Errors
    /// 404 without the object, or the values that are taken out cannot be stored.
    pub async fn take_out_of_stored(&self, target: &WriteTarget<'_>) -> Result<bool, Status> {
        let resource = target.resource;
        self.fresh().await?;
        let key =
            resource.key(target.namespace, target.name).ok_or_else(Status::method_not_allowed)?;
        let mut current = self.cache(resource)?.get(&key).ok_or_else(|| target.not_found())?;
        for _ in 0..CONFLICT_RETRIES_MAX {
            let old = self.served_value(resource, &current).await?;
            let (mut new, mut taken) = (old.clone(), TakenValues::default());
            self.take_out(resource, &mut new, Some(&old), &mut taken).await?;
            if new == old {
                return Ok(false);
            }
            let _held = self.store_taken(resource, &new, Some(&old), &taken).await?;
            let expect = Expect::Revision(current.revision);
            match self.put(resource, &key, &mut new, expect, Owners::Applied).await? {
                Ok(_) => return Ok(true),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.current_state(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_status(&error)),
            }
        }
        Err(target.conflict())
    }

    /// PUT: replaces the object by `body`, or only the part that the operation writes. A missing
    /// object is created when the kind allows it.
    ///
    /// # Errors
    /// 404 without the object, 409 when its version or UID differs, 403 or 422 when a rule,
    /// admission or a quota rejects it.
    pub async fn replace(
        &self,
        target: &WriteTarget<'_>,
        operation: Operation,
        body: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = target.resource;
        let mut body = body;
        check_type(resource, &mut body)?;
        check_decodable(resource, &body, options)?;
        check_fields(resource, &body, options)?;
        check_name(target, &body)?;
        check_namespace(target, &mut body)?;
        let unversioned = matches!(body.resource_version(), "" | "0");
        let change = |old: &Value| {
            if !body.uid().is_empty() && body.uid() != old.uid() {
                return Err(other_uid(target, body.uid(), old.uid()));
            }
            if unversioned && !resource.rules.unconditional_update {
                let cause = Cause::new(
                    "FieldValueInvalid",
                    "metadata.resourceVersion",
                    "Invalid value: 0: must be specified for an update",
                );
                let plural = &resource.plural;
                return Err(Status::invalid(&resource.group, plural, target.name, vec![cause]));
            }
            Ok(body.clone())
        };
        let written = self.modify(target, operation, options, &change).await;
        match written {
            Err(status)
                if status.code == 404
                    && resource.rules.create_on_update
                    && operation == Operation::Update =>
            {
                check_creatable(target, &body, options)?;
                body.remove_meta("resourceVersion");
                self.create(resource, target.namespace, body.clone(), options).await
            }
            other => other,
        }
    }

    /// Server-side apply: what the configuration contains is set, and owned by the manager. A
    /// missing object is created. `force` takes over fields of other managers.
    ///
    /// # Errors
    /// 409 for conflicts with other managers, otherwise those of [`Registry::replace`].
    pub async fn apply(
        &self,
        target: &WriteTarget<'_>,
        operation: Operation,
        config: &Value,
        force: bool,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = target.resource;
        let subresource = subresource(operation, options);
        let ownership =
            FieldOwnership::new(resource, self.catalog(), subresource, &options.manager);
        let requested =
            RequestedUpdate::ApplyConfiguration { ownership: &ownership, config, force };
        for _ in 0..CONFLICT_RETRIES_MAX {
            let modified = self.modify_as_requested(target, operation, options, &requested).await;
            match modified {
                Err(status) if status.code == 404 && operation == Operation::Update => {}
                other => return other,
            }
            let mut object = ownership.apply(self, None, config, force).await?;
            check_name(target, &object)?;
            if let Some(refused) = &options.creation_refused {
                return Err(Status::clone(refused));
            }
            if !object.uid().is_empty() {
                return Err(no_such_uid(target, object.uid()));
            }
            object.remove_meta("resourceVersion");
            let namespace = target.namespace;
            let created =
                self.create_owned(resource, namespace, object, options, Owners::Applied).await;
            match created {
                Err(status) if status.reason == "AlreadyExists" => {}
                other => return other,
            }
        }
        Err(target.conflict())
    }

    /// Applies `change` to the current state, again when another write came between. A resource
    /// version in the result is a precondition.
    ///
    /// # Errors
    /// Those of `change` and of [`Registry::replace`].
    pub async fn modify(
        &self,
        target: &WriteTarget<'_>,
        operation: Operation,
        options: &WriteOptions,
        change: &ChangeFn<'_>,
    ) -> Result<Written, Status> {
        self.modify_as_requested(target, operation, options, &RequestedUpdate::Changed(change))
            .await
    }

    /// Like [`Registry::modify`], for a result that already has its field owners.
    ///
    /// # Errors
    /// Those of [`Registry::modify`].
    pub async fn modify_applied(
        &self,
        target: &WriteTarget<'_>,
        options: &WriteOptions,
        change: &ChangeFn<'_>,
    ) -> Result<Written, Status> {
        self.modify_as_requested(
            target,
            Operation::Update,
            options,
            &RequestedUpdate::Owned(change),
        )
        .await
    }

    async fn modify_as_requested(
        &self,
        target: &WriteTarget<'_>,
        operation: Operation,
        options: &WriteOptions,
        requested: &RequestedUpdate<'_>,
    ) -> Result<Written, Status> {
        let (resource, owners) = (target.resource, requested.owners());
        self.fresh().await?;
        let key =
            resource.key(target.namespace, target.name).ok_or_else(Status::method_not_allowed)?;
        let mut current = self.cache(resource)?.get(&key).ok_or_else(|| target.not_found())?;
        for _ in 0..CONFLICT_RETRIES_MAX {
            let old = self.served_value(resource, &current).await?;
            let mut taken = TakenValues::default();
            let mut new = requested.desired_state(self, resource, &old, &mut taken).await?;
            let context = UpdateContext { operation, options, owners };
            let warnings = self.settle_update(target, &context, &old, &mut new, &mut taken).await?;
            resource.strategy.lose_unstored(&mut new);
            put_back_times(&old, &mut new);
            let done = |object| Ok(Written { object, created: false, warnings: warnings.clone() });
            if old.is_terminating() && !is_held(resource, &new) {
                if options.dry_run {
                    return done(dry_run_object(resource, &mut new, current.revision)?);
                }
                match self.storage().delete(&key, current.revision).await {
                    Ok(_) => {
                        self.note_deleted(resource, &old);
                        return done(dry_run_object(resource, &mut new, current.revision)?);
                    }
                    Err(StorageError::Unexpected { current: found }) => {
                        current = self.current_state(target, found.as_ref())?;
                        continue;
                    }
                    Err(error) => return Err(storage_status(&error)),
                }
            }
            if new == old && !is_stored_differently(resource, &current) {
                return done(current);
            }
            if options.dry_run {
                return done(dry_run_object(resource, &mut new, current.revision)?);
            }
            let expect = Expect::Revision(current.revision);
            let _held = self.store_taken(resource, &new, Some(&old), &taken).await?;
            match self.put(resource, &key, &mut new, expect, owners).await? {
                Ok(item) => return done(self.decode_stored(resource, &item)?),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.current_state(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_status(&error)),
            }
        }
        Err(target.conflict())
    }

    /// The state that a failed compare-and-swap found.
    pub(super) fn current_state(
        &self,
        target: &WriteTarget<'_>,
        found: Option<&storage::KeyValue>,
    ) -> Result<Arc<Stored>, Status> {
        self.decode_stored(target.resource, found.ok_or_else(|| target.not_found())?)
    }

    /// All steps between the desired state and the write. Leaves the final object, with the old
    /// resource version, in `new`.
    async fn settle_update(
        &self,
        target: &WriteTarget<'_>,
        context: &UpdateContext<'_>,
        old: &Value,
        new: &mut Value,
        taken: &mut TakenValues,
    ) -> Result<Vec<String>, Status> {
        let UpdateContext { operation, options, owners } = *context;
        let resource = target.resource;
        check_type(resource, new)?;
        check_identity(target, options, old, new)?;
        check_decodable(resource, new, options)?;
        let mut warnings = check_fields(resource, new, options)?;
        warnings.extend(deduplicate(new));
        resource.strategy.prune(new);
        super::create::default(resource, owners, new);
        metadata::drop_empty(new);
        self.take_out(resource, new, Some(old), taken).await?;
        if owners == Owners::Tracked {
            let subresource = subresource(operation, options);
            let catalog = self.catalog();
            let ownership = FieldOwnership::new(resource, catalog, subresource, &options.manager);
            ownership.track(self, Some(old), new).await;
        }
        let request = AdmissionRequest::new(target, operation, options);
        self.mutate(&request, Some(new), Some(old)).await?;
        self.take_out(resource, new, Some(old), taken).await?;
        check_identity(target, options, old, new)?;
        let entries = new.remove_meta("managedFields");
        restore_server_fields(resource, old, new);
        match operation {
            Operation::UpdateStatus => *new = with_status_of(resource, old, new),
            Operation::Part(part) => *new = with_part_of(resource, part, old, new),
            _ if resource.has_status() => copy_member("status", old, new),
            _ => {}
        }
        set_entries(new, entries);
        let write = target.write(operation, options);
        resource.strategy.prepare(&write, new, Some(old));
        let reviewed = operation == Operation::Update;
        for plugin in self.plugins(resource).filter(|_| reviewed) {
            plugin.prepare(resource, &write, new, Some(old));
        }
        if resource.rules.generation {
            let bump = i64::from(is_new_generation(resource, operation, old, new));
            new.set_meta("generation", old.generation() + bump);
        }
        metadata::drop_empty(new);
        let mut causes = metadata::validate(new, resource.namespaced);
        if resource.validates_finalizers() {
            causes.extend(metadata::validate_finalizer_names(new));
        }
        causes.extend(metadata::validate_update(new, old));
        causes.extend(resource.strategy.validate(&write, new, Some(old)));
        for plugin in self.plugins(resource).filter(|_| reviewed) {
            causes.extend(plugin.validate(resource, &write, new, Some(old)));
        }
        if !causes.is_empty() {
            return Err(target.invalid(causes));
        }
        options.warnings.add(resource.strategy.warnings(&write, new, Some(old)));
        if new != old {
            resource.strategy.admit(&write, Some(new), Some(old)).await?;
            for plugin in self.plugins(resource).filter(|_| reviewed) {
                plugin.admit(resource, &write, Some(new), Some(old)).await?;
            }
        }
        self.review(&request, Some(new), Some(old)).await?;
        if new != old {
            self.charge_quotas(&write, resource, new, Some(old)).await?;
        }
        warnings.extend(options.warnings.take());
        Ok(warnings)
    }
}

/// Whether the generation increases. A status does not count, nor does metadata written with it.
fn is_new_generation(resource: &Resource, operation: Operation, old: &Value, new: &Value) -> bool {
    let counted = match operation {
        Operation::UpdateStatus => &[],
        _ => resource.strategy.counts_metadata(),
    };
    let differs = |field: &&str| old["metadata"].get(field) != new["metadata"].get(field);
    counted.iter().any(differs) || spec_differs(resource, old, new)
}

/// Whether a terminating object must stay.
pub(super) fn is_held(resource: &Resource, object: &Value) -> bool {
    !object.finalizers().is_empty()
        || resource.strategy.holds(object)
        || object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|s| s > 0)
}

/// Whether the object is stored in the representation of another version: it is then rewritten even
/// when nothing else changes.
fn is_stored_differently(resource: &Resource, stored: &Stored) -> bool {
    if !resource.custom {
        return false;
    }
    let mut served = stored.value();
    if stored_as(resource).is_some_and(|version| served.api_version() != version) {
        return true;
    }
    // Changes by the schema of another version are not stored.
    if resource.strategy.conversion().is_some() || served.api_version() != resource.api_version() {
        return false;
    }
    let before = served.clone();
    bring_to_version(resource, &mut served);
    before != served
}

/// The subresource of an update; empty for the object itself.
fn subresource(operation: Operation, options: &WriteOptions) -> &str {
    match operation {
        Operation::UpdateStatus => "status",
        Operation::Finalize => "finalize",
        Operation::Part(part) => part,
        _ => options.subresource,
    }
}

fn check_name(target: &WriteTarget<'_>, object: &Value) -> Result<(), Status> {
    let (given, expected) = (object.name(), target.name);
    if given == expected {
        return Ok(());
    }
    Err(Status::bad_request(if given.is_empty() {
        format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be \
             provided"
        )
    } else {
        format!("the name of the object ({given}) does not match the name on the URL ({expected})")
    }))
}

/// Validates name, UID and resource version of the desired state against the current one.
fn check_identity(
    target: &WriteTarget<'_>,
    options: &WriteOptions,
    old: &Value,
    new: &mut Value,
) -> Result<(), Status> {
    check_name(target, new)?;
    check_namespace(target, new)?;
    if !options.is_patch && !new.uid().is_empty() && new.uid() != old.uid() {
        return Err(other_uid(target, new.uid(), old.uid()));
    }
    match new.resource_version() {
        "" | "0" => {}
        version if version == old.resource_version() => {}
        version => {
            check_version(version)?;
            return Err(target.conflict());
        }
    }
    Ok(())
}

/// Validates that a body of a PUT may create its missing object.
fn check_creatable(
    target: &WriteTarget<'_>,
    body: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    if let Some(refused) = &options.creation_refused {
        return Err(Status::clone(refused));
    }
    match (body.uid(), body.resource_version()) {
        ("", "") => Ok(()),
        ("", version) => check_version(version),
        (uid, _) => Err(other_uid(target, uid, "")),
    }
}

fn check_version(version: &str) -> Result<(), Status> {
    number::unsigned(version).map(drop).map_err(|problem| Status::new(500, "", problem))
}

/// 409: a configuration names the UID of an object that does not exist.
fn no_such_uid(target: &WriteTarget<'_>, uid: &str) -> Status {
    let resource = target.resource;
    let text = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Status::conflict(&resource.group, &resource.plural, target.name, &text)
}

/// 409: the body names the UID of another object, with the text of the storage layer of
/// kube-apiserver.
fn other_uid(target: &WriteTarget<'_>, expected: &str, found: &str) -> Status {
    let resource = target.resource;
    let key = resource.key(target.namespace, target.name).unwrap_or_default();
    let text = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, UID in object \
         meta: {found}"
    );
    Status::conflict(&resource.group, &resource.plural, target.name, &text)
}

/// Restores the metadata that the server owns and that a body may omit.
fn restore_server_fields(resource: &Resource, old: &Value, new: &mut Value) {
    new.remove_meta("selfLink");
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new["metadata"][field].is_null()
            && let Some(value) = old["metadata"].get(field)
        {
            new.set_meta(field, value.clone());
        }
    }
    new.set_meta("resourceVersion", old.resource_version());
    match old["metadata"].get("generation") {
        Some(generation) => new.set_meta("generation", generation.clone()),
        None if resource.rules.generation => new.set_meta("generation", 0),
        None => {
            new.remove_meta("generation");
        }
    }
}

fn copy_member(member: &str, from: &Value, to: &mut Value) {
    let map = to.as_object_mut().expect("checked to be an object");
    match from.get(member) {
        Some(value) => map.insert(member.to_owned(), value.clone()),
        None => map.remove(member),
    };
}

/// The current object with the new status. Built-in kinds also take the new metadata, except for
/// fields that they preserve.
fn with_status_of(resource: &Resource, old: &Value, new: &Value) -> Value {
    let mut merged = old.clone();
    copy_member("status", new, &mut merged);
    if !resource.custom {
        copy_member("metadata", new, &mut merged);
        for path in resource.strategy.preserved_by_status() {
            if let ["metadata", field] = path {
                copy_member(field, &old["metadata"], &mut merged["metadata"]);
            }
        }
    }
    merged
}

/// The current object with the new part.
fn with_part_of(resource: &Resource, part: &str, old: &Value, new: &Value) -> Value {
    let mut merged = old.clone();
    for path in resource.strategy.written_by(part) {
        let Some((last, parents)) = path.split_last() else { continue };
        let from = parents.iter().fold(new, |value, name| &value[*name]);
        let to = parents.iter().fold(&mut merged, |value, name| &mut value[*name]);
        if to.is_object() {
            copy_member(last, from, to);
        }
    }
    merged
}
