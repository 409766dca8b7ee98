//! Deleting: at once, or by marking the object until its finalizers and its grace period are over.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;
use storage::{Expect, StorageError};

use super::update::held;
use super::{CONFLICT_RETRIES_MAX, Target, WriteOptions, now, unstored};
use crate::registry::admission::Request;
use crate::registry::{Registry, storage_failed};
use crate::stored::Stored;
use crate::strategy::Operation;

const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
const FINALIZER_ORPHAN: &str = "orphan";

/// What happens to the objects that this one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub grace_seconds: Option<i64>,
    /// Preconditions.
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// One of many that a selector takes: admission is not told a name then.
    pub of_collection: bool,
}

/// How far a delete got.
#[derive(Debug)]
pub enum Deleted {
    /// Gone; this was its last state.
    Gone(Arc<Stored>),
    /// Marked, and waiting.
    Terminating(Arc<Stored>),
}

impl Registry {
    pub async fn delete(
        &self,
        target: &Target<'_>,
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
            let request = Request::new(target, Operation::Delete, options);
            let name = if delete.of_collection { "" } else { target.name };
            let request = Request { delete: Some(delete), name, ..request };
            self.mutate(&request, None, Some(&old)).await?;
            self.review(&request, None, Some(&old)).await?;
            let mut marked = old.clone();
            mark(target, delete, &mut marked);
            resource.strategy.prepare(&write, &mut marked, Some(&old));
            let gone = !held(resource, &marked);
            let graceful = resource.strategy.gives_grace();
            let outcome = if options.dry_run && gone && !graceful {
                Ok(current.clone())
            } else if options.dry_run {
                Ok(unstored(resource, &mut marked, current.revision)?)
            } else if gone {
                match self.storage().delete(&key, current.revision).await {
                    Ok((revision, _)) if graceful => Ok(unstored(resource, &mut marked, revision)?),
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
                    Ok(item) => Ok(self.stored(resource, &item)?),
                    Err(error) => Err(error),
                }
            };
            match outcome {
                Ok(object) if gone => {
                    if !options.dry_run {
                        self.note_deleted(resource, &old);
                    }
                    return Ok(Deleted::Gone(object));
                }
                Ok(object) => return Ok(Deleted::Terminating(object)),
                Err(StorageError::Unexpected { current: found }) => {
                    current = self.found(target, found.as_ref())?;
                }
                Err(error) => return Err(storage_failed(&error)),
            }
        }
        Err(target.modified())
    }
}

fn check_preconditions(
    target: &Target<'_>,
    delete: &DeleteOptions,
    current: &Stored,
) -> Result<(), Status> {
    let resource = target.resource;
    let failed = |what: &str, wanted: &str, found: &str, done: &str| {
        let text = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
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

/// Marks the object as terminating, with the finalizers that the wanted propagation calls for.
fn mark(target: &Target<'_>, delete: &DeleteOptions, object: &mut Value) {
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
    let wanted = resource.strategy.grace_seconds(object, delete.grace_seconds);
    let old_grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if object.is_terminating() {
        // A second delete may shorten the grace period, never lengthen it.
        if old_grace.is_some_and(|old| wanted < old) {
            object.set_meta("deletionGracePeriodSeconds", wanted);
        }
        return;
    }
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(wanted);
    let at = if wanted == 0 { now() } else { at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() };
    object.set_meta("deletionTimestamp", at);
    if !resource.strategy.counts_deletion() {
        return;
    }
    object.set_meta("deletionGracePeriodSeconds", wanted);
    if object.generation() > 0 {
        object.set_meta("generation", object.generation() + 1);
    }
}
