//! Invariant: the contents of a terminating namespace are deleted, pods first, and then its
//! finalizer is removed.
//!
//! Owns the five `Namespace…` deletion conditions. Watches namespaces. A namespace with remaining
//! contents is retried whenever something was committed, or after a pause. Nothing is orphaned: the
//! contents are listed only after every create has ended that may have seen the namespace alive.
//! The contents on other servers are deleted, too ([`aggregated`]). While one of these servers is
//! unavailable, the namespace remains.

mod aggregated;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::{Status, qualified};
use apiserver::aggregation::Aggregation;
use apiserver::registry::{
    DeleteOptions, ListQuery, Propagation, Registry, Update, WriteOptions, WriteTarget,
};
use apiserver::resource::{Backend, Resource};
use apiserver::retry::RETRY;
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use backoff::Backoff;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::kinds::namespace::FINALIZER;

/// The number of namespaces that are emptied concurrently.
const PARALLEL_MAX: usize = 16;
/// The pauses before a retry after a commit, because commits come in bursts. They grow while
/// nothing is deleted.
const SETTLE: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(1280));
/// The interval of polling the contents on other servers.
const AGGREGATED_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Access to the contents of namespaces: in the registry, and on aggregated servers.
#[derive(Clone)]
struct Server {
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
}

/// Reconciles until namespaces are no longer served. Failures are logged and retried with backoff.
pub async fn run(registry: Arc<Registry>, aggregation: Arc<Aggregation>) {
    let Some(resource) = registry.find("", "namespaces") else { return };
    let mut updates = registry.subscribe(&resource);
    let server = Server { registry, aggregation };
    let mut working: JoinSet<String> = JoinSet::new();
    let permits = Arc::new(Semaphore::new(PARALLEL_MAX));
    let mut busy = BTreeSet::new();
    let mut waiting = BTreeSet::new();
    loop {
        tokio::select! {
            update = updates.next() => {
                let Some(update) = update else { return };
                waiting.extend(terminating_namespaces(&update));
            }
            Some(done) = working.join_next() => {
                if let Ok(name) = done {
                    busy.remove(&name);
                }
            }
        }
        let free: Vec<String> = waiting.difference(&busy).cloned().collect();
        for name in free {
            waiting.remove(&name);
            busy.insert(name.clone());
            let (server, permits) = (server.clone(), permits.clone());
            working.spawn(async move {
                delete(&server, &permits, &name).await;
                name
            });
        }
    }
}

/// The terminating namespaces of an update.
fn terminating_namespaces(update: &Update) -> Vec<String> {
    let objects: Vec<_> = match update {
        Update::Reset(objects) => objects.clone(),
        Update::Events(events) => {
            events.iter().filter(|event| !event.deleted).map(|e| e.current.clone()).collect()
        }
    };
    objects
        .iter()
        .filter(|object| object.metadata_json().contains("\"deletionTimestamp\""))
        .map(|object| object.name.to_string())
        .collect()
}

/// Deletes the contents of one namespace, then removes its finalizer.
async fn delete(server: &Server, permits: &Semaphore, name: &str) {
    let registry = &server.registry;
    registry.wait_for_creations().await;
    let mut progress = registry.progress();
    let (mut failures, mut idle, mut polls_aggregated) = (0, 0, false);
    let mut left_before = usize::MAX;
    loop {
        progress.borrow_and_update();
        let progress_made = {
            let _permit = permits.acquire().await;
            delete_step(server, name).await
        };
        match progress_made {
            Ok(DeletionProgress::Done) => return,
            Ok(DeletionProgress::Waiting { left, aggregated }) => {
                (failures, polls_aggregated) = (0, aggregated);
                idle = if left == left_before { idle + 1 } else { 0 };
                left_before = left;
            }
            Err(status) => {
                failures += 1;
                tracing::warn!(namespace = name, %status, "cannot delete a namespace yet");
            }
        }
        if failures > 0 {
            tokio::time::sleep(RETRY.delay(failures)).await;
        } else if polls_aggregated {
            tokio::time::sleep(AGGREGATED_POLL_INTERVAL).await;
        } else if progress.changed().await.is_ok() {
            tokio::time::sleep(SETTLE.delay(idle + 1)).await;
        } else {
            return;
        }
    }
}

enum DeletionProgress {
    Done,
    Waiting { left: usize, aggregated: bool },
}

/// The remaining contents of a namespace.
#[derive(Default)]
struct RemainingContents {
    /// The number of instances by `plural.group`.
    instances: BTreeMap<String, usize>,
    /// The number of instances by finalizer.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
    /// The versions whose server is unavailable, and why.
    unknown: Vec<String>,
    /// Some contents are on other servers, whose changes cause no commit here.
    aggregated: bool,
}

impl RemainingContents {
    fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.failures.is_empty() && self.unknown.is_empty()
    }
}

async fn delete_step(server: &Server, name: &str) -> Result<DeletionProgress, Status> {
    let registry = &server.registry;
    let Some(namespaces) = registry.find("", "namespaces") else {
        return Ok(DeletionProgress::Done);
    };
    let namespace = match registry.get(&namespaces, "", name).await {
        Ok(found) => found.value(),
        Err(status) if status.code == 404 => return Ok(DeletionProgress::Done),
        Err(status) => return Err(status),
    };
    if !namespace.is_terminating() {
        return Ok(DeletionProgress::Done);
    }
    let remaining = delete_contents(server, name).await?;
    let target = WriteTarget { resource: &namespaces, namespace: "", name };
    report(registry, &target, &namespace, &remaining).await?;
    if !remaining.is_empty() {
        let left = remaining.instances.values().sum();
        return Ok(DeletionProgress::Waiting { left, aggregated: remaining.aggregated });
    }
    let uid = namespace.uid().to_owned();
    let change = |old: &Value| {
        if old.uid() != uid || !old.is_terminating() {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        if let Some(list) = new["spec"].get_mut("finalizers").and_then(Value::as_array_mut) {
            list.retain(|finalizer| finalizer != FINALIZER);
        }
        Ok(new)
    };
    let options = WriteOptions::system();
    match registry.modify(&target, Operation::Finalize, &options, &change).await {
        // With another finalizer the namespace remains; its next change is handled again.
        Ok(_) => Ok(DeletionProgress::Done),
        Err(status) if status.code == 404 => Ok(DeletionProgress::Done),
        Err(status) => Err(status),
    }
}

/// Deletes the contents of a namespace, only pods as long as there are any, and counts what
/// remains.
async fn delete_contents(server: &Server, namespace: &str) -> Result<RemainingContents, Status> {
    let registry = &server.registry;
    let mut remaining = RemainingContents::default();
    let resources = stored_resources(registry);
    let is_pods =
        |resource: &&Arc<Resource>| resource.group.is_empty() && resource.plural == "pods";
    for resource in resources.iter().filter(is_pods) {
        delete_resource_contents(registry, resource, namespace, true, &mut remaining).await?;
    }
    let pods_left = !remaining.instances.is_empty();
    for resource in resources.iter().filter(|resource| !is_pods(resource)) {
        delete_resource_contents(registry, resource, namespace, !pods_left, &mut remaining).await?;
    }
    aggregated::delete_contents(server, namespace, !pods_left, &mut remaining).await;
    Ok(remaining)
}

/// Every stored namespaced resource, each storage prefix once.
fn stored_resources(registry: &Registry) -> Vec<Arc<Resource>> {
    let mut by_prefix: BTreeMap<String, Arc<Resource>> = BTreeMap::new();
    for resource in registry.catalog().all().filter(|resource| resource.namespaced) {
        if let Backend::Stored { prefix } = &resource.backend {
            by_prefix.entry(prefix.clone()).or_insert_with(|| resource.clone());
        }
    }
    by_prefix.into_values().collect()
}

async fn delete_resource_contents(
    registry: &Registry,
    resource: &Arc<Resource>,
    namespace: &str,
    delete: bool,
    remaining: &mut RemainingContents,
) -> Result<(), Status> {
    let found = list(registry, resource, namespace).await?;
    if found.is_empty() {
        return Ok(());
    }
    let options = WriteOptions::system();
    let background =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    for object in found.iter().filter(|_| delete) {
        if object.metadata_json().contains("\"deletionTimestamp\"") {
            continue;
        }
        let target = WriteTarget { resource, namespace, name: &object.name };
        match registry.delete(&target, &background, &options).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => {
                tracing::warn!(namespace, name = %object.name, %status, "cannot delete");
                remaining.failures.push(status.message);
            }
        }
    }
    let left = list(registry, resource, namespace).await?;
    if left.is_empty() {
        return Ok(());
    }
    let name = format!("{}.{}", resource.plural, resource.group);
    remaining.instances.insert(name, left.len());
    for object in &left {
        if object.metadata_json().contains("\"finalizers\"") {
            for finalizer in object.value().finalizers() {
                *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    tracing::debug!(namespace, resource = qualified(&resource.plural, &resource.group), "remains");
    Ok(())
}

/// The objects of a resource in a namespace. A definition may be deleted at any time, and its
/// objects before it: a resource that is not served has none.
async fn list(
    registry: &Registry,
    resource: &Resource,
    namespace: &str,
) -> Result<Vec<Arc<Stored>>, Status> {
    match registry.list(resource, &ListQuery::all(namespace)).await {
        Ok(list) => Ok(list.items),
        Err(status) if status.code == 404 => Ok(Vec::new()),
        Err(status) => Err(status),
    }
}

/// The type of each condition, its reason and message when false, and its reason when true.
const CONDITIONS: [(&str, &str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
        "DiscoveryFailed",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
        "GroupVersionParsingFailed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
        "ContentDeletionFailed",
    ),
    (
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
        "SomeResourcesRemain",
    ),
    (
        "NamespaceFinalizersRemaining",
        "ContentRemoved",
        "All content-preserving finalizers finished",
        "SomeFinalizersRemain",
    ),
];

/// The five conditions of `remaining`. Transition times are retained while the status is unchanged.
fn desired_conditions(remaining: &RemainingContents, before: &Value, now: &str) -> Vec<Value> {
    let format_counts = |entries: &BTreeMap<String, usize>, verb: &str| {
        let texts: Vec<String> = entries
            .iter()
            .map(|(name, count)| format!("{name} {verb}{count} resource instances"))
            .collect();
        texts.join(", ")
    };
    let texts = [
        (!remaining.unknown.is_empty()).then(|| {
            let (count, list) = (remaining.unknown.len(), remaining.unknown.join(", "));
            format!(
                "Discovery failed for some groups, {count} failing: unable to retrieve the \
                 complete list of server APIs: {list}"
            )
        }),
        None,
        (!remaining.failures.is_empty()).then(|| {
            let mut failures = remaining.failures.clone();
            failures.sort();
            failures.dedup();
            format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            )
        }),
        (!remaining.instances.is_empty()).then(|| {
            format!("Some resources are remaining: {}", format_counts(&remaining.instances, "has "))
        }),
        (!remaining.finalizers.is_empty()).then(|| {
            let list = format_counts(&remaining.finalizers, "in ");
            format!("Some content in the namespace has finalizers remaining: {list}")
        }),
    ];
    CONDITIONS
        .iter()
        .zip(texts)
        .map(|((kind, fine, fine_text, bad), text)| {
            let status = if text.is_some() { "True" } else { "False" };
            let old = before.as_array().into_iter().flatten().find(|old| old["type"] == *kind);
            let since = old
                .filter(|old| old["status"] == status)
                .and_then(|old| old["lastTransitionTime"].as_str())
                .unwrap_or(now);
            json!({
                "type": kind,
                "status": status,
                "lastTransitionTime": since,
                "reason": if text.is_some() { bad } else { fine },
                "message": text.unwrap_or_else(|| (*fine_text).to_owned()),
            })
        })
        .collect()
}

/// Writes the conditions. A namespace that can be deleted at once gets none: no client would read
/// them.
async fn report(
    registry: &Registry,
    target: &WriteTarget<'_>,
    namespace: &Value,
    remaining: &RemainingContents,
) -> Result<(), Status> {
    let before = &namespace["status"]["conditions"];
    if remaining.is_empty() && before.is_null() {
        return Ok(());
    }
    let now = api_meta::time::format_seconds(jiff::Timestamp::now().as_second());
    let conditions = desired_conditions(remaining, before, &now);
    if before.as_array() == Some(&conditions) {
        return Ok(());
    }
    let uid = namespace.uid();
    let change = |old: &Value| {
        if old.uid() != uid {
            return Err(target.not_found());
        }
        let mut new = old.clone();
        new["status"]["conditions"] = conditions.clone().into();
        Ok(new)
    };
    let options = WriteOptions::system();
    registry.modify(target, Operation::UpdateStatus, &options, &change).await.map(drop)
}

#[cfg(test)]
mod tests;
