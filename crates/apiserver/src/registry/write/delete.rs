//! Deletes: at once, or by marking the object until its finalizers and its grace period are over.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;
use storage::{Expect, StorageError};

use super::update::is_held;
use super::{CONFLICT_RETRIES_MAX, WriteOptions, WriteTarget, dry_run_object, now};
use crate::registry::admission::AdmissionRequest;
use crate::registry::{Registry, storage_status};
use crate::stored::Stored;
use crate::strategy::Operation;

const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
const FINALIZER_ORPHAN: &str = "orphan";

/// What happens to the objects that the deleted one owns: `propagationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes them afterwards.
    Background,
    /// The object stays until they are deleted.
    Foreground,
    /// They stay, without their owner reference.
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// `None`: what the kind or the finalizers of the object say.
    pub propagation: Option<Propagation>,
    /// Requested seconds; `None` is the default of the kind.
    pub grace_seconds: Option<i64>,
    /// Precondition; `None` is any.
    pub uid: Option<String>,
    /// Precondition; `None` is any.
    pub resource_version: Option<String>,
    /// Part of a deletecollection: the admission request has no name then.
    pub of_collection: bool,
}

/// The result of a delete.
#[derive(Debug)]
pub enum Deleted {
    /// Removed; this was its last state.
    Removed(Arc<Stored>),
    /// Marked, and waiting for finalizers or the grace period.
    Terminating(Arc<Stored>),
}

impl Registry {
    /// Deletes an object, or marks it.
    ///
    /// # Errors
    /// 404 without the object, 409 when a precondition fails, or why a rule or admission rejects
    /// it.
    pub async fn delete(
        &self,
        target: &WriteTarget<'_>,
        delete: &DeleteOptions,
        options: &WriteOptions,
    ) -> Result<Deleted, Status> {
        let resource = target.resource;
        self.fresh().await?;
        let key =
            resource.key(target.namespace, target.name).ok_or_else(Status::method_not_allowed)?;
        let mut current = self.cache(resource)?.get(&key).ok_or_else(|| target.not_found())?;
        for _ in 0..CONFLICT_RETRIES_MAX {
            check_preconditions(target, delete, &current)?;
            if delete.propagation.is_none()
                && let Some(warning) = resource.strategy.orphan_warning()
            {
                options.warnings.add(vec![warning.to_owned()]);
            }
            let old = self.served_value(resource, &current).await?;
            let write = target.write(Operation::Delete, options);
            resource.strategy.admit(&write, None, Some(&old)).await?;
            for plugin in self.plugins(resource) {
                plugin.admit(resource, &write, None, Some(&old)).await?;
            }
            let request = AdmissionRequest::new(target, Operation::Delete, options);
            let name = if delete.of_collection { "" } else { target.name };
            let request = AdmissionRequest { delete: Some(delete), name, ..request };
            self.mutate(&request, None, Some(&old)).await?;
            self.review(&request, None, Some(&old)).await?;
            let mut marked = old.clone();
            mark(target, delete, &mut marked);
            resource.strategy.prepare(&write, &mut marked, Some(&old));
            let is_removed = !is_held(resource, &marked);
            let graceful = resource.strategy.gives_grace();
            let result = if options.dry_run && is_removed && !graceful {
                Ok(current.clone())
            } else if options.dry_run {
                Ok(dry_run_object(resource, &mut marked, current.revision)?)
            } else if is_removed {
                match self.storage().delete(&key, current.revision).await {
                    Ok((revision, _)) if graceful => {
                        Ok(dry_run_object(resource, &mut marked, revision)?)
                    }
                    Ok((revision, _)) if resource.rules.delete_returns_object => {
                        Ok(Arc::new(current.at_revision(revision)))
                    }
                    Ok(_) => Ok(current.clone()),
                    Err(error) => Err(error),
                }
            } else if marked == old {
                Ok(current.clone())
            } else {
                let value = self.storage_bytes(resource, &mut marked).await?;
                let expect = Expect::Revision(current.revision);
                match self.storage().put(&key, value, expect, resource.rules.ttl).await {
                    Ok(item) => Ok(self.decode_stored(resource, &item)?),
                    Err(error) => Err(error),
                }
            };
            match result {
                Ok(object) if is_removed => {
                    if !options.dry_run {
                        self.note_deleted(resource, &old);
                    }
                    return Ok(Deleted::Removed(object));
                }
                Ok(object) => return Ok(Deleted::Terminating(object)),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.current_state(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_status(&error)),
            }
        }
        Err(target.conflict())
    }
}

fn check_preconditions(
    target: &WriteTarget<'_>,
    delete: &DeleteOptions,
    current: &Stored,
) -> Result<(), Status> {
    let resource = target.resource;
    let failed = |what: &str, expected: &str, found: &str, done: &str| {
        let text = format!(
            "the {what} in the precondition ({expected}) does not match the {what} in record \
             ({found}). The object might have been {done}"
        );
        Err(Status::conflict(&resource.group, &resource.kind, target.name, &text))
    };
    if let Some(uid) = &delete.uid
        && **uid != *current.uid
    {
        return failed("UID", uid, &current.uid, "deleted and then recreated");
    }
    if let Some(version) = &delete.resource_version
        && *version != current.revision.to_string()
    {
        return failed("ResourceVersion", version, &current.revision.to_string(), "modified");
    }
    Ok(())
}

/// Marks the object as terminating, with the finalizers of the requested propagation.
fn mark(target: &WriteTarget<'_>, delete: &DeleteOptions, object: &mut Value) {
    let resource = target.resource;
    let mut finalizers: Vec<String> = object.finalizers().into_iter().map(str::to_owned).collect();
    let chosen = finalizers.iter().any(|f| f == FINALIZER_FOREGROUND || f == FINALIZER_ORPHAN);
    let orphans = !chosen && resource.strategy.orphans_by_default();
    let propagation = delete.propagation.or(orphans.then_some(Propagation::Orphan));
    if let Some(propagation) = propagation {
        finalizers.retain(|f| f != FINALIZER_FOREGROUND && f != FINALIZER_ORPHAN);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FINALIZER_FOREGROUND.to_owned()),
            Propagation::Orphan => finalizers.push(FINALIZER_ORPHAN.to_owned()),
        }
    }
    if finalizers.is_empty() {
        object.remove_meta("finalizers");
    } else {
        object.set_meta("finalizers", finalizers);
    }
    let grace_seconds = resource.strategy.grace_seconds(object, delete.grace_seconds);
    let old_grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if object.is_terminating() {
        // A second delete may shorten the grace period, never lengthen it.
        if old_grace.is_some_and(|old| grace_seconds < old) {
            object.set_meta("deletionGracePeriodSeconds", grace_seconds);
        }
        return;
    }
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(grace_seconds);
    let at = if grace_seconds == 0 { now() } else { at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() };
    object.set_meta("deletionTimestamp", at);
    if !resource.strategy.counts_deletion() {
        return;
    }
    object.set_meta("deletionGracePeriodSeconds", grace_seconds);
    if object.generation() > 0 {
        object.set_meta("generation", object.generation() + 1);
    }
}
