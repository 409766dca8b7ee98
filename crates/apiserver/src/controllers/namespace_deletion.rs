//! Keeps true: a terminating namespace loses its contents, pods first, and then its finalizer.
//!
//! Owns the five `Namespace…` deletion conditions. Watches namespaces; a namespace with contents
//! left
//! is tried again whenever something was committed, or after a pause. Nothing is orphaned: the
//! contents are looked through only after every create that may have seen the namespace alive has
//! ended. What other servers hold is looked through too ([`elsewhere`]); while one of them cannot
//! say what it holds, the namespace stays.

mod elsewhere;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::{Status, qualified};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::aggregation::Aggregation;
use crate::backoff::pause_after;
use crate::registry::{
    DeleteOptions, ListQuery, Propagation, Registry, Target, Update, WriteOptions,
};
use crate::resource::{Backend, Resource};
use crate::stored::Stored;
use crate::strategy::Operation;

/// Namespaces emptied at once.
const PARALLEL_MAX: usize = 16;
/// Commits come in bursts; look again this long after the first, and later when nothing moves.
const SETTLE_PAUSE: Duration = Duration::from_millis(20);
/// Doublings of that pause.
const IDLE_MAX: u32 = 6;
/// In `spec.finalizers` of a namespace until its contents are deleted.
pub const FINALIZER: &str = "kubernetes";
/// Pause between looks at what other servers hold.
const LOOK_ELSEWHERE_EVERY: Duration = Duration::from_millis(500);

/// What is in namespaces: here, and on other servers.
#[derive(Clone)]
struct Server {
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
}

/// Runs until namespaces are served no more.
pub async fn run(registry: Arc<Registry>, aggregation: Arc<Aggregation>) {
    let Some(resource) = registry.find("", "namespaces") else { return };
    let mut updates = registry.subscribe(&resource);
    let server = Server { registry, aggregation };
    let mut working: JoinSet<String> = JoinSet::new();
    let places = Arc::new(Semaphore::new(PARALLEL_MAX));
    let mut busy = BTreeSet::new();
    let mut waiting = BTreeSet::new();
    loop {
        tokio::select! {
            update = updates.next() => {
                let Some(update) = update else { return };
                waiting.extend(ending(&update));
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
            let (server, places) = (server.clone(), places.clone());
            working.spawn(async move {
                delete(&server, &places, &name).await;
                name
            });
        }
    }
}

/// Namespaces of an update that are on their way out.
fn ending(update: &Update) -> Vec<String> {
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

/// Empties one namespace and lets it go.
async fn delete(server: &Server, places: &Semaphore, name: &str) {
    let registry = &server.registry;
    registry.creations_settled().await;
    let mut progress = registry.progress();
    let (mut failures, mut idle, mut unseen) = (0, 0, false);
    let mut left_before = usize::MAX;
    loop {
        progress.borrow_and_update();
        let step = {
            let _place = places.acquire().await;
            step(server, name).await
        };
        match step {
            Ok(Step::Gone) => return,
            Ok(Step::Waiting { left, elsewhere }) => {
                (failures, unseen) = (0, elsewhere);
                idle = if left == left_before { (idle + 1).min(IDLE_MAX) } else { 0 };
                left_before = left;
            }
            Err(status) => {
                failures += 1;
                tracing::warn!(namespace = name, %status, "cannot delete a namespace yet");
            }
        }
        if failures > 0 {
            tokio::time::sleep(pause_after(failures)).await;
        } else if unseen {
            tokio::time::sleep(LOOK_ELSEWHERE_EVERY).await;
        } else if progress.changed().await.is_ok() {
            tokio::time::sleep(SETTLE_PAUSE * 2_u32.pow(idle)).await;
        } else {
            return;
        }
    }
}

enum Step {
    Gone,
    Waiting { left: usize, elsewhere: bool },
}

/// What is still in a namespace.
#[derive(Default)]
struct Remains {
    /// Instances by `plural.group`.
    instances: BTreeMap<String, usize>,
    /// Instances by finalizer.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
    /// Versions whose server cannot be asked, and why.
    unknown: Vec<String>,
    /// Some of it is where no commit tells of its end.
    elsewhere: bool,
}

impl Remains {
    fn is_nothing(&self) -> bool {
        self.instances.is_empty() && self.failures.is_empty() && self.unknown.is_empty()
    }
}

async fn step(server: &Server, name: &str) -> Result<Step, Status> {
    let registry = &server.registry;
    let Some(namespaces) = registry.find("", "namespaces") else { return Ok(Step::Gone) };
    let namespace = match registry.get(&namespaces, "", name).await {
        Ok(found) => found.value(),
        Err(status) if status.code == 404 => return Ok(Step::Gone),
        Err(status) => return Err(status),
    };
    if !namespace.is_terminating() {
        return Ok(Step::Gone);
    }
    let remains = sweep(server, name).await?;
    let target = Target { resource: &namespaces, namespace: "", name };
    report(registry, &target, &namespace, &remains).await?;
    if !remains.is_nothing() {
        let left = remains.instances.values().sum();
        return Ok(Step::Waiting { left, elsewhere: remains.elsewhere });
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
        // With somebody else's finalizer it stays: its next change comes back here.
        Ok(_) => Ok(Step::Gone),
        Err(status) if status.code == 404 => Ok(Step::Gone),
        Err(status) => Err(status),
    }
}

/// Deletes all there is, pods alone as long as there are any, and counts what stays.
async fn sweep(server: &Server, namespace: &str) -> Result<Remains, Status> {
    let registry = &server.registry;
    let mut remains = Remains::default();
    let resources = contents(registry);
    let is_pods =
        |resource: &&Arc<Resource>| resource.group.is_empty() && resource.plural == "pods";
    for resource in resources.iter().filter(is_pods) {
        sweep_resource(registry, resource, namespace, true, &mut remains).await?;
    }
    let pods_left = !remains.instances.is_empty();
    for resource in resources.iter().filter(|resource| !is_pods(resource)) {
        sweep_resource(registry, resource, namespace, !pods_left, &mut remains).await?;
    }
    elsewhere::sweep(server, namespace, !pods_left, &mut remains).await;
    Ok(remains)
}

/// Every stored namespaced resource, each storage place once.
fn contents(registry: &Registry) -> Vec<Arc<Resource>> {
    let mut by_prefix: BTreeMap<String, Arc<Resource>> = BTreeMap::new();
    for resource in registry.catalog().all().filter(|resource| resource.namespaced) {
        if let Backend::Stored { prefix } = &resource.backend {
            by_prefix.entry(prefix.clone()).or_insert_with(|| resource.clone());
        }
    }
    by_prefix.into_values().collect()
}

async fn sweep_resource(
    registry: &Registry,
    resource: &Arc<Resource>,
    namespace: &str,
    delete: bool,
    remains: &mut Remains,
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
        let target = Target { resource, namespace, name: &object.name };
        match registry.delete(&target, &background, &options).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => {
                tracing::warn!(namespace, name = %object.name, %status, "cannot delete");
                remains.failures.push(status.message);
            }
        }
    }
    let left = list(registry, resource, namespace).await?;
    if left.is_empty() {
        return Ok(());
    }
    let name = format!("{}.{}", resource.plural, resource.group);
    remains.instances.insert(name, left.len());
    for object in &left {
        if object.metadata_json().contains("\"finalizers\"") {
            for finalizer in object.value().finalizers() {
                *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    tracing::debug!(namespace, resource = qualified(&resource.plural, &resource.group), "remains");
    Ok(())
}

/// The objects of a resource in a namespace. A definition may be deleted at any moment, and its
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

/// Type, reason when false, message when false, reason when true.
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

/// The five conditions that tell of `remains`. Transition times are kept where the status stays.
fn desired_conditions(remains: &Remains, before: &Value, now: &str) -> Vec<Value> {
    let counted = |entries: &BTreeMap<String, usize>, verb: &str| {
        let texts: Vec<String> = entries
            .iter()
            .map(|(name, count)| format!("{name} {verb}{count} resource instances"))
            .collect();
        texts.join(", ")
    };
    let texts = [
        (!remains.unknown.is_empty()).then(|| {
            let (count, list) = (remains.unknown.len(), remains.unknown.join(", "));
            format!(
                "Discovery failed for some groups, {count} failing: unable to retrieve the \
                 complete list of server APIs: {list}"
            )
        }),
        None,
        (!remains.failures.is_empty()).then(|| {
            let mut failures = remains.failures.clone();
            failures.sort();
            failures.dedup();
            format!(
                "Failed to delete all resource types, {} remaining: {}",
                failures.len(),
                failures.join(", ")
            )
        }),
        (!remains.instances.is_empty()).then(|| {
            format!("Some resources are remaining: {}", counted(&remains.instances, "has "))
        }),
        (!remains.finalizers.is_empty()).then(|| {
            let list = counted(&remains.finalizers, "in ");
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

/// Writes the conditions. A namespace that can go at once gets none: nobody would read them.
async fn report(
    registry: &Registry,
    target: &Target<'_>,
    namespace: &Value,
    remains: &Remains,
) -> Result<(), Status> {
    let before = &namespace["status"]["conditions"];
    if remains.is_nothing() && before.is_null() {
        return Ok(());
    }
    let now = api_meta::time::format_seconds(jiff::Timestamp::now().as_second());
    let conditions = desired_conditions(remains, before, &now);
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
