//! Changing an object in place: PUT, every kind of patch, status, finalize.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use api_meta::{metadata, number};
use serde_json::Value;
use storage::{Expect, StorageError};

use super::duplicates::deduplicate;
use super::ownership::{Owners, Ownership, put_back_times, set_entries};
use super::wish::{Change, Wish};
use super::{
    CONFLICT_RETRIES_MAX, Target, WriteOptions, Written, bring_to_version, check_decodable,
    check_fields, check_namespace, check_type, spec_differs, unstored,
};
use crate::registry::admission::Request;
use crate::registry::admission::Taken;
use crate::registry::convert::stored_as;
use crate::registry::{Registry, storage_failed};
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::Operation;

/// How an update is done.
struct How<'a> {
    operation: Operation,
    options: &'a WriteOptions,
    owners: Owners,
}

impl Registry {
    /// Writes the object anew, spec and status, if plugins take something out of it. Nothing else of admission is
    /// done, so that what was stored under earlier rules is not refused; owners of fields and generation stay.
    /// Whether it was written.
    ///
    /// # Errors
    /// It is not there, or what is taken out cannot be stored.
    pub async fn take_out_of_stored(&self, target: &Target<'_>) -> Result<bool, Status> {
        let resource = target.resource;
        self.fresh().await?;
        let key =
            resource.key(target.namespace, target.name).ok_or_else(Status::method_not_allowed)?;
        let mut current = self.cache(resource)?.get(&key).ok_or_else(|| target.not_found())?;
        for _ in 0..CONFLICT_RETRIES_MAX {
            let old = self.served_value(resource, &current).await?;
            let (mut new, mut taken) = (old.clone(), Taken::default());
            self.take_out(resource, &mut new, Some(&old), &mut taken).await?;
            if new == old {
                return Ok(false);
            }
            let _held = self.store_taken(resource, &new, Some(&old), &taken).await?;
            let expect = Expect::Revision(current.revision);
            match self.put(resource, &key, &mut new, expect, Owners::Applied).await? {
                Ok(_) => return Ok(true),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.found(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_failed(&error)),
            }
        }
        Err(target.modified())
    }

    /// PUT: replaces the object by `body`, or only its status.
    pub async fn replace(
        &self,
        target: &Target<'_>,
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

    /// PATCH with a configuration: what it states is set and owned by the manager. An object that is not there is
    /// created. `force` takes what others own.
    pub async fn apply(
        &self,
        target: &Target<'_>,
        operation: Operation,
        config: &Value,
        force: bool,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let resource = target.resource;
        let subresource = subresource(operation, options);
        let ownership = Ownership::new(resource, self.catalog(), subresource, &options.manager);
        let wish = Wish::Applied { ownership: &ownership, config, force };
        for _ in 0..CONFLICT_RETRIES_MAX {
            let modified = self.modify_to(target, operation, options, &wish).await;
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
        Err(target.modified())
    }

    /// Applies `change` to the current state, again if another write came between. A resource version in the result is
    /// a precondition.
    pub async fn modify(
        &self,
        target: &Target<'_>,
        operation: Operation,
        options: &WriteOptions,
        change: &Change<'_>,
    ) -> Result<Written, Status> {
        self.modify_to(target, operation, options, &Wish::Changed(change)).await
    }

    /// As [`Registry::modify`], where the result has its owners of fields already.
    pub(crate) async fn modify_applied(
        &self,
        target: &Target<'_>,
        options: &WriteOptions,
        change: &Change<'_>,
    ) -> Result<Written, Status> {
        self.modify_to(target, Operation::Update, options, &Wish::Owned(change)).await
    }

    async fn modify_to(
        &self,
        target: &Target<'_>,
        operation: Operation,
        options: &WriteOptions,
        wish: &Wish<'_>,
    ) -> Result<Written, Status> {
        let (resource, owners) = (target.resource, wish.owners());
        self.fresh().await?;
        let key =
            resource.key(target.namespace, target.name).ok_or_else(Status::method_not_allowed)?;
        let mut current = self.cache(resource)?.get(&key).ok_or_else(|| target.not_found())?;
        for _ in 0..CONFLICT_RETRIES_MAX {
            let old = self.served_value(resource, &current).await?;
            let mut taken = Taken::default();
            let mut new = wish.outcome(self, resource, &old, &mut taken).await?;
            let how = How { operation, options, owners };
            let warnings = self.settle_update(target, &how, &old, &mut new, &mut taken).await?;
            resource.strategy.lose_unstored(&mut new);
            put_back_times(&old, &mut new);
            let done = |object| Ok(Written { object, created: false, warnings: warnings.clone() });
            if old.is_terminating() && !held(resource, &new) {
                if options.dry_run {
                    return done(unstored(resource, &mut new, current.revision)?);
                }
                match self.storage().delete(&key, current.revision).await {
                    Ok(_) => {
                        self.note_deleted(resource, &old);
                        return done(unstored(resource, &mut new, current.revision)?);
                    }
                    Err(StorageError::Unexpected { current: found }) => {
                        current = self.found(target, found.as_ref())?;
                        continue;
                    }
                    Err(error) => return Err(storage_failed(&error)),
                }
            }
            if new == old && !stored_differently(resource, &current) {
                return done(current);
            }
            if options.dry_run {
                return done(unstored(resource, &mut new, current.revision)?);
            }
            let expect = Expect::Revision(current.revision);
            let _held = self.store_taken(resource, &new, Some(&old), &taken).await?;
            match self.put(resource, &key, &mut new, expect, owners).await? {
                Ok(item) => return done(self.stored(resource, &item)?),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.found(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_failed(&error)),
            }
        }
        Err(target.modified())
    }

    /// The state that a failed compare came upon.
    pub(super) fn found(
        &self,
        target: &Target<'_>,
        found: Option<&storage::KeyValue>,
    ) -> Result<Arc<Stored>, Status> {
        self.stored(target.resource, found.ok_or_else(|| target.not_found())?)
    }

    /// Everything between the wanted state and the write. Leaves the final object, with the old resource version, in
    /// `new`.
    async fn settle_update(
        &self,
        target: &Target<'_>,
        how: &How<'_>,
        old: &Value,
        new: &mut Value,
        taken: &mut Taken,
    ) -> Result<Vec<String>, Status> {
        let How { operation, options, owners } = *how;
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
            let ownership = Ownership::new(resource, catalog, subresource, &options.manager);
            ownership.track(self, Some(old), new).await;
        }
        let request = Request::new(target, operation, options);
        self.mutate(&request, Some(new), Some(old)).await?;
        self.take_out(resource, new, Some(old), taken).await?;
        check_identity(target, options, old, new)?;
        let entries = new.remove_meta("managedFields");
        keep_server_fields(resource, old, new);
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
        if resource.knows_its_finalizers() {
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

/// Whether what is wanted differs. What comes with a status is told by those who count generations.
fn is_new_generation(resource: &Resource, operation: Operation, old: &Value, new: &Value) -> bool {
    let counted = match operation {
        Operation::UpdateStatus => &[],
        _ => resource.strategy.counts_metadata(),
    };
    let differs = |field: &&str| old["metadata"].get(field) != new["metadata"].get(field);
    counted.iter().any(differs) || spec_differs(resource, old, new)
}

/// Whether a terminating object must stay.
pub(super) fn held(resource: &Resource, object: &Value) -> bool {
    !object.finalizers().is_empty()
        || resource.strategy.holds(object)
        || object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|s| s > 0)
}

/// An object in another version's form is rewritten even when nothing else changes.
fn stored_differently(resource: &Resource, stored: &Stored) -> bool {
    if !resource.custom {
        return false;
    }
    let mut served = stored.value();
    if stored_as(resource).is_some_and(|wanted| served.api_version() != wanted) {
        return true;
    }
    // What the schema of another version makes of it is not stored.
    if resource.strategy.conversion().is_some() || served.api_version() != resource.api_version() {
        return false;
    }
    let before = served.clone();
    bring_to_version(resource, &mut served);
    before != served
}

/// The subresource that an update goes through.
fn subresource(operation: Operation, options: &WriteOptions) -> &str {
    match operation {
        Operation::UpdateStatus => "status",
        Operation::Finalize => "finalize",
        Operation::Part(part) => part,
        _ => options.subresource,
    }
}

fn check_name(target: &Target<'_>, object: &Value) -> Result<(), Status> {
    let (given, wanted) = (object.name(), target.name);
    if given == wanted {
        return Ok(());
    }
    Err(Status::bad_request(if given.is_empty() {
        format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be \
             provided"
        )
    } else {
        format!("the name of the object ({given}) does not match the name on the URL ({wanted})")
    }))
}

/// Name, uid and resource version of the wanted state against the current one.
fn check_identity(
    target: &Target<'_>,
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
            return Err(target.modified());
        }
    }
    Ok(())
}

/// What a body that was to replace something must not ask for when there is nothing.
fn check_creatable(
    target: &Target<'_>,
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

/// A configuration is about an object that is not there.
fn no_such_uid(target: &Target<'_>, wanted: &str) -> Status {
    let resource = target.resource;
    let text = format!(
        "uid mismatch: the provided object specified uid {wanted}, and no existing object was found"
    );
    Status::conflict(&resource.group, &resource.plural, target.name, &text)
}

/// The body is about another object than the one found, in the words of what compares them there.
fn other_uid(target: &Target<'_>, wanted: &str, found: &str) -> Status {
    let resource = target.resource;
    let key = resource.key(target.namespace, target.name).unwrap_or_default();
    let text = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object \
         meta: {found}"
    );
    Status::conflict(&resource.group, &resource.plural, target.name, &text)
}

/// Fills what a body may leave out and the server keeps.
fn keep_server_fields(resource: &Resource, old: &Value, new: &mut Value) {
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

/// The current object with another status. Built-in kinds also take metadata along, but for what they keep.
fn with_status_of(resource: &Resource, old: &Value, new: &Value) -> Value {
    let mut merged = old.clone();
    copy_member("status", new, &mut merged);
    if !resource.custom {
        copy_member("metadata", new, &mut merged);
        for path in resource.strategy.kept_by_status() {
            if let ["metadata", field] = path {
                copy_member(field, &old["metadata"], &mut merged["metadata"]);
            }
        }
    }
    merged
}

/// The current object with another part.
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
