//! Removes the instances of a definition, then lets the definition go.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;
use storage::RangeRequest;

use crate::custom::CLEANUP_FINALIZER;
use crate::registry::{DeleteOptions, ListQuery, Registry, Target, WriteOptions};
use crate::resource::Resource;
use crate::strategy::Operation;

/// Pause before a failed step is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// One definition on its way out.
pub(super) struct Job {
    pub registry: Weak<Registry>,
    pub definitions: Arc<Resource>,
    pub name: String,
    pub uid: String,
    pub group: String,
    pub plural: String,
}

/// Ends when the definition may go, or is gone; gives back its name.
pub(super) async fn run(job: Job) -> String {
    loop {
        let Some(registry) = job.registry.upgrade() else { break };
        match step(&job, &registry).await {
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

async fn step(job: &Job, registry: &Arc<Registry>) -> Result<(), Status> {
    // Without a served version there is no way left to honour finalizers of instances.
    // What a built-in kind holds is nobody's instance.
    let served = registry.find(&job.group, &job.plural).filter(|resource| resource.custom);
    if let Some(resource) = served {
        // In the version that they are stored in, no webhook has to convert them for that.
        let catalog = registry.catalog();
        let stored_as = resource.strategy.storage_version();
        let stored =
            stored_as.and_then(|version| catalog.get(&job.group, version, &job.plural)).cloned();
        let resource = stored.unwrap_or(resource);
        remove_instances(registry, &resource).await?;
    }
    let target = Target { resource: &job.definitions, namespace: "", name: &job.name };
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

/// Deletes all instances and waits until their own finalizers let them go.
async fn remove_instances(
    registry: &Arc<Registry>,
    resource: &Arc<Resource>,
) -> Result<(), Status> {
    let mut changes = registry.subscribe(resource);
    let options = WriteOptions::system();
    loop {
        // The first update is the present state, every later one a reason to look again.
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
            let target = Target { resource, namespace: &instance.namespace, name: &instance.name };
            match registry.delete(&target, &DeleteOptions::default(), &options).await {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
    }
}

/// Removes what is still stored under a prefix that nothing serves any more, so that a definition
/// of the same name begins empty.
pub(super) async fn purge(registry: &Registry, prefix: &str) {
    let storage = registry.storage();
    let left = match storage.range(RangeRequest::prefix(prefix)).await {
        Ok(range) => range.items,
        Err(error) => {
            tracing::error!(prefix, %error, "cannot look for left objects of a removed kind");
            return;
        }
    };
    for item in left {
        if let Err(error) = storage.delete(&item.key, item.mod_revision).await {
            tracing::error!(key = %item.key, %error, "cannot remove an object of a removed kind");
        }
    }
}
