//! Invariant: every established definition is served in its current version, and the status of
//! every definition says so.
//!
//! Owns the conditions of definitions and their accepted names. It follows the definitions through
//! the registry of its own process: resources are installed before the status says `Established`,
//! so a client that waits for the condition can use them at once. A definition that is being
//! deleted is passed to [`cleanup`].

mod cleanup;
pub mod conform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{Registry, Subscription, Update, WriteOptions, WriteTarget};
use apiserver::resource::Resource;
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use apiserver::tasks::WatchedTasks;
use serde_json::{Value, json};
use storage::StorageError;
use tokio::task::{JoinHandle, JoinSet};

use super::names::{desired_status, is_established};
use super::resources::{resources_of, storage_prefix};
use super::scale::ScaleEndpoint;
use super::{CLEANUP_FINALIZER, GROUP, PLURAL, definition_resource};

/// The pause before a failed step is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Serves custom resources until it is dropped.
pub struct DefinitionController {
    task: JoinHandle<()>,
}

impl Drop for DefinitionController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DefinitionController {
    /// The task of the controller, for its supervision.
    pub fn tasks(&self) -> WatchedTasks {
        self.task.abort_handle().into()
    }

    /// Installs the defining kind and the kinds of all stored definitions, then follows changes in
    /// a task.
    ///
    /// # Errors
    /// The stored objects cannot be loaded. The caller does not serve requests.
    pub async fn start(registry: &Arc<Registry>) -> Result<Self, StorageError> {
        registry.install(vec![definition_resource()]).await?;
        let resource = registry.find(GROUP, PLURAL).expect("installed in the line above");
        let mut subscription = registry.subscribe(&resource);
        let mut reconciler = DefinitionReconciler::new(registry, resource);
        if let Some(update) = subscription.next().await {
            reconciler.apply(update).await;
        }
        Ok(Self { task: tokio::spawn(run(reconciler, subscription)) })
    }
}

async fn run(mut reconciler: DefinitionReconciler, mut subscription: Subscription) {
    loop {
        let retry = !reconciler.unreconciled.is_empty();
        tokio::select! {
            update = subscription.next() => match update {
                Some(update) => reconciler.apply(update).await,
                None => return,
            },
            Some(ended) = reconciler.cleaning.join_next() => {
                if let Ok(name) = ended {
                    reconciler.being_cleaned.remove(&name);
                }
            }
            Some(_) = reconciler.checks.join_next() => {}
            () = tokio::time::sleep(RETRY_PAUSE), if retry => {
                let names = std::mem::take(&mut reconciler.unreconciled);
                reconciler.reconcile(names).await;
            }
        }
    }
}

/// The part of a definition that other definitions and the next change need. The whole object is
/// not stored: a thousand of them would use too much memory.
struct KnownDefinition {
    stored: Arc<Stored>,
    /// The group and the accepted names, at the paths of a definition.
    names: Value,
    served: Option<InstalledResources>,
}

/// The installed resources of a definition.
#[derive(Clone)]
struct InstalledResources {
    group: String,
    plural: String,
    versions: BTreeSet<String>,
    /// Identifies the resources: it changes when they do.
    fingerprint: String,
    /// Shared with the resources, so that watches on them continue.
    terminating: Arc<AtomicBool>,
}

impl InstalledResources {
    /// The group and the plural.
    fn group_and_plural(&self) -> (String, String) {
        (self.group.clone(), self.plural.clone())
    }
}

struct DefinitionReconciler {
    registry: Weak<Registry>,
    resource: Arc<Resource>,
    /// The names of built-in kinds, which no definition gets, in the format of
    /// [`KnownDefinition::names`].
    reserved: Vec<Value>,
    known: BTreeMap<String, KnownDefinition>,
    /// The definitions whose last step failed.
    unreconciled: BTreeSet<String>,
    being_cleaned: BTreeSet<String>,
    cleaning: JoinSet<String>,
    checks: JoinSet<()>,
}

impl DefinitionReconciler {
    fn new(registry: &Arc<Registry>, resource: Arc<Resource>) -> Self {
        let catalog = registry.catalog();
        let built_in = catalog.all().filter(|resource| !resource.custom);
        let reserved = built_in.map(|resource| {
            let names = json!({"plural": resource.plural});
            json!({"spec": {"group": resource.group}, "status": {"acceptedNames": names}})
        });
        Self {
            registry: Arc::downgrade(registry),
            resource,
            reserved: reserved.collect(),
            known: BTreeMap::new(),
            unreconciled: BTreeSet::new(),
            being_cleaned: BTreeSet::new(),
            cleaning: JoinSet::new(),
            checks: JoinSet::new(),
        }
    }

    async fn apply(&mut self, update: Update) {
        let mut changed = BTreeSet::new();
        let mut deleted = BTreeSet::new();
        match update {
            Update::Reset(objects) => {
                deleted.extend(self.known.keys().cloned());
                for stored in objects {
                    deleted.remove(&*stored.name);
                    changed.insert(stored.name.to_string());
                    self.remember(stored);
                }
            }
            Update::Events(events) => {
                for event in events {
                    let name = event.current.name.to_string();
                    if event.deleted {
                        changed.remove(&name);
                        deleted.insert(name);
                    } else {
                        deleted.remove(&name);
                        changed.insert(name);
                        self.remember(event.current.clone());
                    }
                }
            }
        }
        for name in &deleted {
            self.forget(name).await;
        }
        if !deleted.is_empty() {
            // The names are free now, so waiting definitions may get them.
            let waiting = self.known.iter().filter(|(_, known)| known.served.is_none());
            changed.extend(waiting.map(|(name, _)| name.clone()));
        }
        self.reconcile(changed).await;
    }

    fn remember(&mut self, stored: Arc<Stored>) {
        let names = names_of(&stored.value());
        let served = self.known.remove(&*stored.name).and_then(|known| known.served);
        self.known.insert(stored.name.to_string(), KnownDefinition { stored, names, served });
    }

    async fn forget(&mut self, name: &str) {
        self.unreconciled.remove(name);
        let (Some(known), Some(registry)) = (self.known.remove(name), self.registry.upgrade())
        else {
            return;
        };
        if let Some(served) = known.served {
            registry.uninstall(&served.group, &served.plural).await;
            cleanup::purge(&registry, &storage_prefix(&served.group, &served.plural)).await;
        }
    }

    /// Serves the current state of these definitions, then writes their status.
    async fn reconcile(&mut self, names: BTreeSet<String>) {
        let Some(registry) = self.registry.upgrade() else { return };
        let now = jiff::Timestamp::now().as_second();
        let mut install = Vec::new();
        let mut outdated = Vec::new();
        let mut outdated_status = Vec::new();
        let mut terminating_definitions = Vec::new();
        let mut served = Vec::new();
        for name in names.clone() {
            let Some(known) = self.known.get(&name) else { continue };
            let mut crd = known.stored.value();
            let desired = desired_status(&crd, &self.other_names(&name), now);
            let is_current = crd["status"] == desired;
            crd["status"] = desired;
            served.push((name.clone(), self.desired_resources(&crd, &mut install, &mut outdated)));
            // The next definition must respect the names that this one gets.
            self.known.get_mut(&name).expect("looked up above").names = names_of(&crd);
            if !is_current {
                outdated_status.push(name.clone());
            }
            if crd.is_terminating() && crd.finalizers().contains(&CLEANUP_FINALIZER) {
                terminating_definitions.push((name, crd));
            }
        }
        if !install.is_empty()
            && let Err(error) = registry.install(install).await
        {
            tracing::error!(%error, "cannot load the objects of a new kind, trying again");
            self.unreconciled.extend(names);
            return;
        }
        for (name, served) in served {
            let Some(known) = self.known.get_mut(&name) else { continue };
            if let Some(served) = served.as_ref().filter(|now| {
                known.served.as_ref().is_none_or(|b| b.fingerprint != now.fingerprint)
            }) {
                self.checks.spawn(conform::check_after_install(
                    self.registry.clone(),
                    served.group_and_plural(),
                ));
            }
            known.served = served;
        }
        // Only now, when no new instances can be created.
        for (name, crd) in terminating_definitions {
            self.start_cleanup(&registry, name, &crd);
        }
        for (group, version, plural) in outdated {
            registry.uninstall_version(&group, &version, &plural).await;
        }
        // Concurrently, so that the storage commits them in one batch.
        let results = outdated_status.iter().map(|name| self.write_status(&registry, name));
        let results = futures::future::join_all(results).await;
        for (name, result) in outdated_status.into_iter().zip(results) {
            if let Err(status) = result {
                tracing::warn!(definition = name, %status, "cannot write the status, trying again");
                self.unreconciled.insert(name);
            }
        }
    }

    /// The desired resources of a definition. Adds those to `install` that changed, and versions
    /// that are no longer served to `outdated`.
    fn desired_resources(
        &self,
        crd: &Value,
        install: &mut Vec<Resource>,
        outdated: &mut Vec<(String, String, String)>,
    ) -> Option<InstalledResources> {
        let before = self.known.get(crd.name()).and_then(|known| known.served.clone());
        if !is_established(&crd["status"]) || self.is_reserved(crd) {
            return before;
        }
        let names = &crd["status"]["acceptedNames"];
        let fingerprint = format!("{}/{}/{names}", crd.uid(), crd.generation());
        if let Some(before) = before.as_ref().filter(|before| before.fingerprint == fingerprint) {
            let is_terminating = crd.is_terminating();
            if before.terminating.swap(is_terminating, Ordering::AcqRel) != is_terminating
                && let Some(registry) = self.registry.upgrade()
            {
                registry.note_discovery_change();
            }
            return Some(before.clone());
        }
        let terminating = Arc::new(AtomicBool::new(crd.is_terminating()));
        let registry = self.registry.clone();
        let resources = resources_of(crd, &terminating, |target| {
            Arc::new(ScaleEndpoint { registry: registry.clone(), target })
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let served = InstalledResources {
            group: text(&crd["spec"]["group"]),
            plural: text(&crd["spec"]["names"]["plural"]),
            versions: resources.iter().map(|resource| resource.version.clone()).collect(),
            fingerprint,
            terminating,
        };
        for version in before.iter().flat_map(|before| before.versions.difference(&served.versions))
        {
            outdated.push((served.group.clone(), version.clone(), served.plural.clone()));
        }
        install.extend(resources);
        Some(served)
    }

    fn other_names(&self, name: &str) -> Vec<&Value> {
        let other_names = self.known.iter().filter(|(other, _)| *other != name);
        other_names.map(|(_, known)| &known.names).chain(&self.reserved).collect()
    }

    fn is_reserved(&self, crd: &Value) -> bool {
        self.reserved.iter().any(|built_in| {
            built_in["spec"]["group"] == crd["spec"]["group"]
                && built_in["status"]["acceptedNames"]["plural"] == crd["spec"]["names"]["plural"]
        })
    }

    async fn write_status(&self, registry: &Registry, name: &str) -> Result<(), Status> {
        let now = jiff::Timestamp::now().as_second();
        let other_names = self.other_names(name);
        let target = WriteTarget { resource: &self.resource, namespace: "", name };
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = desired_status(old, &other_names, now);
            Ok(new)
        };
        let options = WriteOptions::system();
        match registry.modify(&target, Operation::UpdateStatus, &options, &change).await {
            Ok(_) => Ok(()),
            Err(status) if status.code == 404 => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Starts the deletion of a definition's instances, unless it is running.
    fn start_cleanup(&mut self, registry: &Arc<Registry>, name: String, crd: &Value) {
        if !self.being_cleaned.insert(name.clone()) {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let job = cleanup::Job {
            registry: Arc::downgrade(registry),
            definitions: self.resource.clone(),
            name,
            uid: crd.uid().to_owned(),
            group: text(&crd["spec"]["group"]),
            plural: text(&crd["spec"]["names"]["plural"]),
        };
        self.cleaning.spawn(cleanup::run(job));
    }
}

/// The part of a definition that other definitions must respect.
fn names_of(crd: &Value) -> Value {
    json!({
        "metadata": {"name": crd.name()},
        "spec": {"group": crd["spec"]["group"]},
        "status": {"acceptedNames": crd["status"]["acceptedNames"]},
    })
}
