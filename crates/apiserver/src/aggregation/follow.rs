//! Invariant: the [`ApiServiceTable`] reflects the stored APIServices, and the condition of each
//! one says whether its server is available.
//!
//! Owns the condition `Available`. One task follows APIServices, Services and EndpointSlices. Each
//! version that another server serves has its own [`ApiReconciler`], so that none waits for
//! another.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use api_meta::time;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::check::{self, Availability, SERVICE_LABEL};
use super::{
    AVAILABLE, AggregatedApi, Aggregation, Api, ApiServiceTable, FrontProxy, GROUP, PLURAL,
    Priority, Published, Remote, condition, documents,
};
use crate::fields::{items, str_of};
use crate::registry::{Registry, Subscription, Update, WriteOptions, WriteTarget};
use crate::retry::RETRY;
use crate::stored::Stored;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

/// The interval between two checks of an available server.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The pause before a recheck, because changes of a Service come in bursts.
const SETTLE_PAUSE: Duration = Duration::from_millis(20);

/// Maintains the table, until dropped.
pub struct ApiServiceFollower {
    tasks: Tasks,
}

impl ApiServiceFollower {
    /// The tasks of the follower, for their supervision.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Loads the stored APIServices, then follows them in a task. When this returns, requests for
/// aggregated versions are no longer handled by this server. Without `front_proxy` requests carry
/// no client certificate.
///
/// # Errors
/// APIServices are not served, or the storage cannot be read. The caller does not serve requests.
pub async fn start(
    registry: &Arc<Registry>,
    aggregation: &Arc<Aggregation>,
    front_proxy: Option<FrontProxy>,
) -> Result<ApiServiceFollower, Status> {
    registry.fresh().await?;
    let resource = registry.find(GROUP, PLURAL).ok_or_else(Status::unknown_resource)?;
    let mut services = registry.subscribe(&resource);
    let first = services.next().await.ok_or_else(Status::unknown_resource)?;
    let (updates, received) = mpsc::unbounded_channel();
    let mut follower = Follower {
        registry: Arc::downgrade(registry),
        aggregation: aggregation.clone(),
        front_proxy,
        tracked: BTreeMap::new(),
        reconcilers: JoinSet::new(),
        updates,
    };
    follower.apply(first);
    let mut tasks = Tasks::default();
    tasks.spawn(follow(follower, services, received, registry.clone()));
    Ok(ApiServiceFollower { tasks })
}

async fn follow(
    mut follower: Follower,
    mut services: Subscription,
    mut received: mpsc::UnboundedReceiver<PublishedUpdate>,
    registry: Arc<Registry>,
) {
    let kinds = [("", "services"), ("discovery.k8s.io", "endpointslices")];
    let [mut backing, mut slices] = kinds.map(|(group, plural)| {
        registry.find(group, plural).map(|resource| registry.subscribe(&resource))
    });
    drop(registry);
    loop {
        tokio::select! {
            update = services.next() => match update {
                Some(update) => follower.apply(update),
                None => return,
            },
            Some(update) = received.recv() => follower.apply_published(update),
            Some(update) = next(&mut backing) => {
                follower.recheck(&update, |service| service.name.to_string());
            }
            Some(update) = next(&mut slices) => follower.recheck(&update, |slice| {
                slice.value().label(SERVICE_LABEL).unwrap_or_default().to_owned()
            }),
            Some(_) = follower.reconcilers.join_next() => {}
        }
    }
}

/// The next update; pending forever when the resource is not served.
async fn next(subscription: &mut Option<Subscription>) -> Option<Update> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// What a reconciler fetched for an APIService.
struct PublishedUpdate {
    name: String,
    remote: Arc<Remote>,
    published: Published,
}

struct TrackedApi {
    /// The spec; when it changes, a new reconciler is started.
    spec: Value,
    uid: String,
    api: Api,
    reconciler: Option<AbortHandle>,
}

struct Follower {
    registry: Weak<Registry>,
    aggregation: Arc<Aggregation>,
    front_proxy: Option<FrontProxy>,
    tracked: BTreeMap<String, TrackedApi>,
    reconcilers: JoinSet<()>,
    updates: mpsc::UnboundedSender<PublishedUpdate>,
}

impl Follower {
    fn apply(&mut self, update: Update) {
        match update {
            Update::Reset(objects) => {
                let names: Vec<String> = objects.iter().map(|one| one.name.to_string()).collect();
                let removed: Vec<String> =
                    self.tracked.keys().filter(|name| !names.contains(name)).cloned().collect();
                removed.iter().for_each(|name| self.forget(name));
                objects.iter().for_each(|object| self.track(object));
            }
            Update::Events(events) => {
                for event in events {
                    if event.deleted {
                        self.forget(&event.current.name);
                    } else {
                        self.track(&event.current);
                    }
                }
            }
        }
        self.publish();
    }

    fn forget(&mut self, name: &str) {
        let tracked = self.tracked.remove(name);
        tracked.and_then(|tracked| tracked.reconciler).inspect(AbortHandle::abort);
    }

    fn track(&mut self, object: &Stored) {
        let (name, value) = (object.name.to_string(), object.value());
        let spec = &value["spec"];
        let same = |tracked: &&mut TrackedApi| tracked.spec == *spec && tracked.uid == value.uid();
        if let Some(tracked) = self.tracked.get_mut(&name).filter(same) {
            if let Some(aggregated) = &mut tracked.api.aggregated {
                aggregated.available = is_available(&value);
            }
            return;
        }
        self.forget(&name);
        let number = |field: &str| spec[field].as_i64().unwrap_or_default();
        let aggregated = spec["service"].is_object().then(|| AggregatedApi {
            remote: Arc::new(Remote::of(spec, self.front_proxy.as_ref())),
            available: is_available(&value),
            published: Arc::default(),
        });
        let api = Api {
            group: str_of(&spec["group"]).to_owned(),
            version: str_of(&spec["version"]).to_owned(),
            priority: Priority {
                group: number("groupPriorityMinimum"),
                version: number("versionPriority"),
            },
            aggregated,
        };
        let reconciler = api.aggregated.as_ref().map(|aggregated| {
            let reconciler = ApiReconciler {
                registry: self.registry.clone(),
                name: name.clone(),
                uid: value.uid().to_owned(),
                api: api.clone(),
                remote: aggregated.remote.clone(),
                updates: self.updates.clone(),
            };
            self.reconcilers.spawn(reconciler.run())
        });
        let tracked =
            TrackedApi { spec: spec.clone(), uid: value.uid().to_owned(), api, reconciler };
        self.tracked.insert(name, tracked);
    }

    fn apply_published(&mut self, update: PublishedUpdate) {
        let tracked =
            self.tracked.get_mut(&update.name).and_then(|tracked| tracked.api.aggregated.as_mut());
        if let Some(aggregated) = tracked.filter(|one| Arc::ptr_eq(&one.remote, &update.remote)) {
            aggregated.published = Arc::new(update.published);
            self.publish();
        }
    }

    /// Rechecks the servers behind the Services of these objects.
    fn recheck(&self, update: &Update, service: impl Fn(&Stored) -> String) {
        let objects: Vec<&Arc<Stored>> = match update {
            Update::Reset(objects) => objects.iter().collect(),
            Update::Events(events) => events.iter().map(|event| &event.current).collect(),
        };
        let remotes: Vec<&Arc<Remote>> = self
            .tracked
            .values()
            .filter_map(|one| Some(&one.api.aggregated.as_ref()?.remote))
            .collect();
        if remotes.is_empty() {
            return;
        }
        for object in objects {
            let name = service(object);
            for remote in &remotes {
                if *remote.namespace == *object.namespace && remote.service == name {
                    remote.recheck.notify_one();
                }
            }
        }
    }

    fn publish(&self) {
        if let Some(registry) = self.registry.upgrade() {
            let apis = self.tracked.values().map(|tracked| tracked.api.clone()).collect();
            self.aggregation.set_table(ApiServiceTable(apis));
            registry.note_discovery_change();
        }
    }
}

fn is_available(object: &Value) -> bool {
    available_condition(object)["status"] == "True"
}

fn available_condition(object: &Value) -> &Value {
    let conditions = items(&object["status"]["conditions"]);
    conditions.iter().find(|one| one["type"] == AVAILABLE).unwrap_or(&Value::Null)
}

/// Reconciles one version that another server serves, until its APIService changes.
struct ApiReconciler {
    registry: Weak<Registry>,
    name: String,
    uid: String,
    api: Api,
    remote: Arc<Remote>,
    updates: mpsc::UnboundedSender<PublishedUpdate>,
}

impl ApiReconciler {
    async fn run(self) {
        let mut published = Published::default();
        let mut failures = 0;
        loop {
            let Some(registry) = self.registry.upgrade() else { return };
            let mut availability = check::availability(&registry, &self.api, &self.remote).await;
            let mut found = Published { is_current: false, ..published.clone() };
            if availability.is_available() {
                match documents::fetch(&registry, &self.api, &self.remote, &published).await {
                    Ok(now) => found = now,
                    Err(message) => {
                        availability = Availability::unavailable("FailedDiscoveryCheck", message);
                    }
                }
            }
            // Before the condition is written, so that a client that waits for it finds the
            // documents.
            if found != published {
                published = found;
                let (name, remote) = (self.name.clone(), self.remote.clone());
                let update = PublishedUpdate { name, remote, published: published.clone() };
                let _ = self.updates.send(update);
            }
            failures = if availability.is_available() { 0 } else { failures + 1 };
            if let Err(status) = self.write_condition(&registry, &availability).await {
                tracing::warn!(name = self.name, %status, "cannot write the condition of an API");
                failures += 1;
            }
            drop(registry);
            let pause = if failures == 0 { CHECK_INTERVAL } else { RETRY.delay(failures) };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.remote.recheck.notified() => tokio::time::sleep(SETTLE_PAUSE).await,
            }
        }
    }

    async fn write_condition(
        &self,
        registry: &Registry,
        availability: &Availability,
    ) -> Result<(), Status> {
        let Some(resource) = registry.find(GROUP, PLURAL) else { return Ok(()) };
        let target = WriteTarget { resource: &resource, namespace: "", name: &self.name };
        let now = time::format_seconds(jiff::Timestamp::now().as_second());
        let change = |old: &Value| {
            if old.uid() != self.uid {
                return Err(target.not_found());
            }
            let Availability { status, reason, message } = availability;
            let updated = condition(available_condition(old), status, reason, message, &now);
            let mut conditions = items(&old["status"]["conditions"]).to_vec();
            match conditions.iter_mut().find(|one| one["type"] == AVAILABLE) {
                Some(one) => *one = updated,
                None => conditions.push(updated),
            }
            let mut new = old.clone();
            new["status"] = json!({"conditions": conditions});
            Ok(new)
        };
        let options = WriteOptions::system();
        match registry.modify(&target, Operation::UpdateStatus, &options, &change).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}
