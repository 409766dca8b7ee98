//! Invariant: every version that this server serves has an APIService.
//!
//! The APIServices of built-in groups are written at the start, and later left to the
//! administrator. Those of custom resources are created, corrected and deleted with their
//! definitions. An APIService without the label was created by a user and is not touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::{Value, json};

use super::{GROUP, PLURAL, priorities};
use crate::catalog::Catalog;
use crate::registry::{DeleteOptions, Registry, Update, WriteOptions, WriteTarget};
use crate::resource::Resource;
use crate::retry::RETRY;
use crate::strategy::Operation;

const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const ALWAYS: &str = "true";

/// Reconciles until APIServices are no longer served. Failures are logged and retried with backoff.
pub async fn run(registry: Arc<Registry>) {
    let Some(resource) = registry.find(GROUP, PLURAL) else { return };
    let mut updates = registry.subscribe(&resource);
    let mut generation = registry.generation();
    let mut stored: BTreeMap<String, Value> = BTreeMap::new();
    let Some(first) = updates.next().await else { return };
    apply_update(&mut stored, first);
    // Until the first round has succeeded, APIServices of built-in groups are corrected, too.
    let mut starting = true;
    let mut failures = 0;
    loop {
        generation.borrow_and_update();
        match reconcile(&registry, &resource, &stored, starting).await {
            Ok(()) => (starting, failures) = (false, 0),
            Err(status) => {
                tracing::warn!(%status, "cannot register what is served, trying again");
                failures += 1;
            }
        }
        tokio::select! {
            update = updates.next() => match update {
                Some(update) => apply_update(&mut stored, update),
                None => return,
            },
            changed = generation.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY.delay(failures)), if failures > 0 => {}
        }
    }
}

fn apply_update(stored: &mut BTreeMap<String, Value>, update: Update) {
    match update {
        Update::Reset(objects) => {
            *stored = objects.iter().map(|one| (one.name.to_string(), one.value())).collect();
        }
        Update::Events(events) => {
            for event in events {
                let name = event.current.name.to_string();
                if event.deleted {
                    stored.remove(&name);
                } else {
                    stored.insert(name, event.current.value());
                }
            }
        }
    }
}

/// The desired APIServices, by name.
fn desired(catalog: &Catalog) -> BTreeMap<String, Value> {
    let mut desired = BTreeMap::new();
    // The group of APIServices has none itself.
    for group in catalog.groups().filter(|group| *group != GROUP) {
        for version in catalog.versions(group) {
            let custom = catalog.resources(group, version).all(|resource| resource.custom);
            let priority = priorities::of(group, version);
            let mut spec = json!({
                "version": version,
                "groupPriorityMinimum": priority.group, "versionPriority": priority.version,
            });
            if !group.is_empty() {
                spec["group"] = group.into();
            }
            let name = format!("{version}.{group}");
            let label = if custom { ALWAYS } else { ON_START };
            let object = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": name, "labels": {LABEL: label}}, "spec": spec,
            });
            desired.insert(name, object);
        }
    }
    desired
}

async fn reconcile(
    registry: &Registry,
    resource: &Resource,
    stored: &BTreeMap<String, Value>,
    starting: bool,
) -> Result<(), Status> {
    let desired = desired(&registry.catalog());
    let is_managed = |object: &Value| match object["metadata"]["labels"][LABEL].as_str() {
        Some(ALWAYS) => true,
        Some(ON_START) => starting,
        _ => false,
    };
    let writes = desired.iter().map(|(name, object)| async move {
        let target = WriteTarget { resource, namespace: "", name };
        match stored.get(name) {
            None if is_managed(object) => create(registry, resource, object).await,
            Some(found) if is_managed(found) && found["spec"] != object["spec"] => {
                correct(registry, &target, object).await
            }
            _ => Ok(()),
        }
    });
    let obsolete =
        stored.iter().filter(|(name, found)| !desired.contains_key(*name) && is_managed(found));
    let deletes = obsolete.map(|(name, found)| async move {
        let target = WriteTarget { resource, namespace: "", name };
        delete(registry, &target, found).await
    });
    // Concurrently, so that the storage commits them in one batch.
    let (writes, deletions) =
        tokio::join!(futures::future::join_all(writes), futures::future::join_all(deletes));
    writes.into_iter().chain(deletions).collect()
}

async fn create(registry: &Registry, resource: &Resource, object: &Value) -> Result<(), Status> {
    match registry.create(resource, "", object.clone(), &WriteOptions::system()).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

async fn correct(
    registry: &Registry,
    target: &WriteTarget<'_>,
    object: &Value,
) -> Result<(), Status> {
    let change = |old: &Value| {
        let mut new = old.clone();
        new["spec"] = object["spec"].clone();
        Ok(new)
    };
    let options = WriteOptions::system();
    match registry.modify(target, Operation::Update, &options, &change).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}

/// Deletes an APIService, unless another object has its name by now.
async fn delete(
    registry: &Registry,
    target: &WriteTarget<'_>,
    found: &Value,
) -> Result<(), Status> {
    let options = DeleteOptions { uid: Some(found.uid().to_owned()), ..DeleteOptions::default() };
    match registry.delete(target, &options, &WriteOptions::system()).await {
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(()),
    }
}
