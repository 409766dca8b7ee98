//! Deletes the instances of a definition, then removes its finalizer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{DeleteOptions, ListQuery, Registry, WriteOptions, WriteTarget};
use apiserver::resource::Resource;
use apiserver::strategy::Operation;
use serde_json::Value;
use storage::RangeRequest;

use crate::custom::CLEANUP_FINALIZER;

/// The pause before a failed step is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The cleanup of one terminating definition.
pub(super) struct Job {
    pub registry: Weak<Registry>,
    pub definitions: Arc<Resource>,
    pub name: String,
    pub uid: String,
    pub group: String,
    pub plural: String,
}

/// Runs until the finalizer was removed or the definition was deleted; returns the name of the
/// definition. Failures are retried.
pub(super) async fn run(job: Job) -> String {
    loop {
        let Some(registry) = job.registry.upgrade() else { break };
        match try_cleanup(&job, &registry).await {
            Ok(()) => break,
            Err(status) => {
                tracing::warn!(definition = job.name, %status, "cannot clean up, trying again");
            }
        }
        drop(registry);
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    job.name
}

async fn try_cleanup(job: &Job, registry: &Arc<Registry>) -> Result<(), Status> {
    // Without a served version finalizers of instances cannot be honoured. Objects of a built-in
    // kind are no instances.
    let served = registry.find(&job.group, &job.plural).filter(|resource| resource.custom);
    if let Some(resource) = served {
        // In their stored version, so that no webhook has to convert them.
        let catalog = registry.catalog();
        let storage_version = resource.strategy.storage_version();
        let stored = storage_version
            .and_then(|version| catalog.get(&job.group, version, &job.plural))
            .cloned();
        let resource = stored.unwrap_or(resource);
        remove_instances(registry, &resource).await?;
    }
    let target = WriteTarget { resource: &job.definitions, namespace: "", name: &job.name };
    let change = |old: &Value| {
        if old.uid() != job.uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        let others: Vec<Value> = old
            .finalizers()
            .into_iter()
            .filter(|finalizer| *finalizer != CLEANUP_FINALIZER)
            .map(Value::from)
            .collect();
        new.set_meta("finalizers", others);
        Ok(new)
    };
    let options = WriteOptions::system();
    match registry.modify(&target, Operation::Update, &options, &change).await {
        Ok(_) => Ok(()),
        Err(status) if status.code == 404 => Ok(()),
        Err(status) => Err(status),
    }
}

/// Deletes all instances and waits until their own finalizers are removed.
async fn remove_instances(
    registry: &Arc<Registry>,
    resource: &Arc<Resource>,
) -> Result<(), Status> {
    let mut changes = registry.subscribe(resource);
    let options = WriteOptions::system();
    loop {
        // The first update is the current state, every later one a reason to check again.
        if changes.next().await.is_none() {
            return Ok(());
        }
        let instances = registry.list(resource, &ListQuery::all("")).await?.items;
        if instances.is_empty() {
            return Ok(());
        }
        for instance in instances {
            if instance.value().is_terminating() {
                continue;
            }
            let target =
                WriteTarget { resource, namespace: &instance.namespace, name: &instance.name };
            match registry.delete(&target, &DeleteOptions::default(), &options).await {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
    }
}

/// Removes the remaining objects under a prefix that is no longer served, so that a later
/// definition with the same name starts empty. Failures are logged.
pub(super) async fn purge(registry: &Registry, prefix: &str) {
    let storage = registry.storage();
    let left = match storage.range(RangeRequest::prefix(prefix)).await {
        Ok(range) => range.items,
        Err(error) => {
            tracing::error!(prefix, %error, "cannot list the remaining objects of a removed kind");
            return;
        }
    };
    for item in left {
        if let Err(error) = storage.delete(&item.key, item.mod_revision).await {
            tracing::error!(key = %item.key, %error, "cannot remove an object of a removed kind");
        }
    }
}
