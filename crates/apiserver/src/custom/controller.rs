//! Keeps true: every established definition is served as it stands, and every definition's status
//! says so.
//!
//! Owns the conditions of definitions and their accepted names. It follows the definitions
//! themselves, through the registry of its own process: the resources are installed before the
//! status says `Established`, so whoever waits for that can go on at once. A definition that is
//! being deleted is handed to [`cleanup`].

mod cleanup;
pub mod conform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::{Value, json};
use storage::StorageError;
use tokio::task::{JoinHandle, JoinSet};

use super::names::{desired_status, is_established};
use super::resources::{resources_of, storage_prefix};
use super::scale::ScaleEndpoint;
use super::{CLEANUP_FINALIZER, GROUP, PLURAL, definition_resource};
use crate::registry::{Registry, Subscription, Target, Update, WriteOptions};
use crate::resource::Resource;
use crate::stored::Stored;
use crate::strategy::Operation;
use crate::tasks::WatchedTasks;

/// Pause before a failed step is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Serves custom resources for as long as it is held.
pub struct DefinitionController {
    task: JoinHandle<()>,
}

impl Drop for DefinitionController {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DefinitionController {
    /// What it does in a task of its own.
    pub fn tasks(&self) -> WatchedTasks {
        self.task.abort_handle().into()
    }

    /// Installs the defining kind and everything that stored definitions define, then goes on in
    /// the background.
    pub async fn start(registry: &Arc<Registry>) -> Result<Self, StorageError> {
        registry.install(vec![definition_resource()]).await?;
        let resource = registry.find(GROUP, PLURAL).expect("installed in the line above");
        let mut subscription = registry.subscribe(&resource);
        let mut keeper = Keeper::new(registry, resource);
        if let Some(update) = subscription.next().await {
            keeper.apply(update).await;
        }
        Ok(Self { task: tokio::spawn(run(keeper, subscription)) })
    }
}

async fn run(mut keeper: Keeper, mut subscription: Subscription) {
    loop {
        let retry = !keeper.unsettled.is_empty();
        tokio::select! {
            update = subscription.next() => match update {
                Some(update) => keeper.apply(update).await,
                None => return,
            },
            Some(ended) = keeper.cleaning.join_next() => {
                if let Ok(name) = ended {
                    keeper.being_cleaned.remove(&name);
                }
            }
            Some(_) = keeper.checks.join_next() => {}
            () = tokio::time::sleep(RETRY_PAUSE), if retry => {
                let names = std::mem::take(&mut keeper.unsettled);
                keeper.settle(names).await;
            }
        }
    }
}

/// A definition as far as other definitions and the next change need to know. The tree is not kept:
/// a thousand of them would fill the memory.
struct Known {
    stored: Arc<Stored>,
    /// Group and accepted names, in the places where a definition has them.
    names: Value,
    served: Option<Served>,
}

/// What is installed for a definition.
#[derive(Clone)]
struct Served {
    group: String,
    plural: String,
    versions: BTreeSet<String>,
    /// Differs when the resources would.
    of: String,
    /// Shared with the resources, so that watches on them go on.
    terminating: Arc<AtomicBool>,
}

impl Served {
    /// Group and plural.
    fn place(&self) -> (String, String) {
        (self.group.clone(), self.plural.clone())
    }
}

struct Keeper {
    registry: Weak<Registry>,
    resource: Arc<Resource>,
    /// Names that no definition is ever given: those of built-in kinds, as [`Known::names`].
    reserved: Vec<Value>,
    known: BTreeMap<String, Known>,
    /// Definitions whose last step failed.
    unsettled: BTreeSet<String>,
    being_cleaned: BTreeSet<String>,
    cleaning: JoinSet<String>,
    checks: JoinSet<()>,
}

impl Keeper {
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
            unsettled: BTreeSet::new(),
            being_cleaned: BTreeSet::new(),
            cleaning: JoinSet::new(),
            checks: JoinSet::new(),
        }
    }

    async fn apply(&mut self, update: Update) {
        let mut changed = BTreeSet::new();
        let mut gone = BTreeSet::new();
        match update {
            Update::Reset(objects) => {
                gone.extend(self.known.keys().cloned());
                for stored in objects {
                    gone.remove(&*stored.name);
                    changed.insert(stored.name.to_string());
                    self.learn(stored);
                }
            }
            Update::Events(events) => {
                for event in events {
                    let name = event.current.name.to_string();
                    if event.deleted {
                        changed.remove(&name);
                        gone.insert(name);
                    } else {
                        gone.remove(&name);
                        changed.insert(name);
                        self.learn(event.current.clone());
                    }
                }
            }
        }
        for name in &gone {
            self.forget(name).await;
        }
        if !gone.is_empty() {
            // The names are free now: whoever wants them may have them.
            let waiting = self.known.iter().filter(|(_, known)| known.served.is_none());
            changed.extend(waiting.map(|(name, _)| name.clone()));
        }
        self.settle(changed).await;
    }

    fn learn(&mut self, stored: Arc<Stored>) {
        let names = names_of(&stored.value());
        let served = self.known.remove(&*stored.name).and_then(|known| known.served);
        self.known.insert(stored.name.to_string(), Known { stored, names, served });
    }

    async fn forget(&mut self, name: &str) {
        self.unsettled.remove(name);
        let (Some(known), Some(registry)) = (self.known.remove(name), self.registry.upgrade())
        else {
            return;
        };
        if let Some(served) = known.served {
            registry.uninstall(&served.group, &served.plural).await;
            cleanup::purge(&registry, &storage_prefix(&served.group, &served.plural)).await;
        }
    }

    /// Serves these definitions as they stand, then tells it in their status.
    async fn settle(&mut self, names: BTreeSet<String>) {
        let Some(registry) = self.registry.upgrade() else { return };
        let now = jiff::Timestamp::now().as_second();
        let mut install = Vec::new();
        let mut outdated = Vec::new();
        let mut behind = Vec::new();
        let mut ending = Vec::new();
        let mut served = Vec::new();
        for name in names.clone() {
            let Some(known) = self.known.get(&name) else { continue };
            let mut crd = known.stored.value();
            let desired = desired_status(&crd, &self.others(&name), now);
            let told = crd["status"] == desired;
            crd["status"] = desired;
            served.push((name.clone(), self.serve(&crd, &mut install, &mut outdated)));
            // The next one must respect the names that this one is being given.
            self.known.get_mut(&name).expect("looked up above").names = names_of(&crd);
            if !told {
                behind.push(name.clone());
            }
            if crd.is_terminating() && crd.finalizers().contains(&CLEANUP_FINALIZER) {
                ending.push((name, crd));
            }
        }
        if !install.is_empty()
            && let Err(error) = registry.install(install).await
        {
            tracing::error!(%error, "cannot load the objects of a new kind, trying again");
            self.unsettled.extend(names);
            return;
        }
        for (name, served) in served {
            let Some(known) = self.known.get_mut(&name) else { continue };
            if let Some(served) =
                served.as_ref().filter(|now| known.served.as_ref().is_none_or(|b| b.of != now.of))
            {
                self.checks.spawn(conform::later(self.registry.clone(), served.place()));
            }
            known.served = served;
        }
        // Only now that nothing new can be created.
        for (name, crd) in ending {
            self.clean(&registry, name, &crd);
        }
        for (group, version, plural) in outdated {
            registry.uninstall_version(&group, &version, &plural).await;
        }
        // Together, so that the storage commits them together.
        let told = behind.iter().map(|name| self.tell(&registry, name));
        let told = futures::future::join_all(told).await;
        for (name, told) in behind.into_iter().zip(told) {
            if let Err(status) = told {
                tracing::warn!(definition = name, %status, "cannot write the status, trying again");
                self.unsettled.insert(name);
            }
        }
    }

    /// What should be served for a definition; adds what is to be done for it.
    fn serve(
        &self,
        crd: &Value,
        install: &mut Vec<Resource>,
        outdated: &mut Vec<(String, String, String)>,
    ) -> Option<Served> {
        let before = self.known.get(crd.name()).and_then(|known| known.served.clone());
        if !is_established(&crd["status"]) || self.is_reserved(crd) {
            return before;
        }
        let names = &crd["status"]["acceptedNames"];
        let of = format!("{}/{}/{names}", crd.uid(), crd.generation());
        if let Some(before) = before.as_ref().filter(|before| before.of == of) {
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
        let served = Served {
            group: text(&crd["spec"]["group"]),
            plural: text(&crd["spec"]["names"]["plural"]),
            versions: resources.iter().map(|resource| resource.version.clone()).collect(),
            of,
            terminating,
        };
        for version in before.iter().flat_map(|before| before.versions.difference(&served.versions))
        {
            outdated.push((served.group.clone(), version.clone(), served.plural.clone()));
        }
        install.extend(resources);
        Some(served)
    }

    fn others(&self, name: &str) -> Vec<&Value> {
        let others = self.known.iter().filter(|(other, _)| *other != name);
        others.map(|(_, known)| &known.names).chain(&self.reserved).collect()
    }

    fn is_reserved(&self, crd: &Value) -> bool {
        self.reserved.iter().any(|built_in| {
            built_in["spec"]["group"] == crd["spec"]["group"]
                && built_in["status"]["acceptedNames"]["plural"] == crd["spec"]["names"]["plural"]
        })
    }

    async fn tell(&self, registry: &Registry, name: &str) -> Result<(), Status> {
        let now = jiff::Timestamp::now().as_second();
        let others = self.others(name);
        let target = Target { resource: &self.resource, namespace: "", name };
        let change = |old: &Value| {
            let mut new = old.clone();
            new["status"] = desired_status(old, &others, now);
            Ok(new)
        };
        let options = WriteOptions::system();
        match registry.modify(&target, Operation::UpdateStatus, &options, &change).await {
            Ok(_) => Ok(()),
            Err(status) if status.code == 404 => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Begins to remove the instances of a definition, unless that is under way.
    fn clean(&mut self, registry: &Arc<Registry>, name: String, crd: &Value) {
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
