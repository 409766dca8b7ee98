//! Keeps true: the [`Table`] is what the stored APIServices say, and the condition of each one says
//! whether its server is there.
//!
//! Owns the condition `Available`. One task follows APIServices, Services and EndpointSlices; each
//! version that another server serves has a [`Keeper`] of its own, so that none waits for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use api_meta::time;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::check::{self, SERVICE_LABEL, Verdict};
use super::{
    AVAILABLE, Aggregation, Api, Elsewhere, FrontProxy, GROUP, PLURAL, Priority, Published, Remote,
    Table, condition, documents,
};
use crate::backoff::pause_after;
use crate::fields::{items, str_of};
use crate::registry::{Registry, Subscription, Target, Update, WriteOptions};
use crate::stored::Stored;
use crate::strategy::Operation;
use crate::tasks::{Tasks, WatchedTasks};

/// Pause between looks at a server that is there.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Changes of a Service come together.
const SETTLE_PAUSE: Duration = Duration::from_millis(20);

/// Keeps the table, until dropped.
pub struct ApiServiceFollower {
    tasks: Tasks,
}

impl ApiServiceFollower {
    /// What it does in tasks of its own.
    pub fn tasks(&self) -> WatchedTasks {
        self.tasks.watched()
    }
}

/// Loads the stored APIServices, then follows them in a task. When this returns, no request for
/// what another server serves is answered here.
///
/// # Errors
/// APIServices are not served, or the storage cannot be read.
pub async fn start(
    registry: &Arc<Registry>,
    aggregation: &Arc<Aggregation>,
    front_proxy: Option<FrontProxy>,
) -> Result<ApiServiceFollower, Status> {
    registry.fresh().await?;
    let resource = registry.find(GROUP, PLURAL).ok_or_else(Status::unknown_resource)?;
    let mut services = registry.subscribe(&resource);
    let first = services.next().await.ok_or_else(Status::unknown_resource)?;
    let (news, told) = mpsc::unbounded_channel();
    let mut follower = Follower {
        registry: Arc::downgrade(registry),
        aggregation: aggregation.clone(),
        front_proxy,
        known: BTreeMap::new(),
        keepers: JoinSet::new(),
        news,
    };
    follower.take(first);
    let mut tasks = Tasks::default();
    tasks.spawn(follow(follower, services, told, registry.clone()));
    Ok(ApiServiceFollower { tasks })
}

async fn follow(
    mut follower: Follower,
    mut services: Subscription,
    mut told: mpsc::UnboundedReceiver<News>,
    registry: Arc<Registry>,
) {
    let places = [("", "services"), ("discovery.k8s.io", "endpointslices")];
    let [mut backing, mut slices] = places.map(|(group, plural)| {
        registry.find(group, plural).map(|resource| registry.subscribe(&resource))
    });
    drop(registry);
    loop {
        tokio::select! {
            update = services.next() => match update {
                Some(update) => follower.take(update),
                None => return,
            },
            Some(news) = told.recv() => follower.learn(news),
            Some(update) = next(&mut backing) => {
                follower.doubt(&update, |service| service.name.to_string());
            }
            Some(update) = next(&mut slices) => follower.doubt(&update, |slice| {
                slice.value().label(SERVICE_LABEL).unwrap_or_default().to_owned()
            }),
            Some(_) = follower.keepers.join_next() => {}
        }
    }
}

/// Never, when the resource is not served.
async fn next(subscription: &mut Option<Subscription>) -> Option<Update> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// What a keeper has found out about an APIService.
struct News {
    name: String,
    remote: Arc<Remote>,
    published: Published,
}

struct Known {
    /// The part of the object that another keeper is needed for when it changes.
    spec: Value,
    uid: String,
    api: Api,
    keeper: Option<AbortHandle>,
}

struct Follower {
    registry: Weak<Registry>,
    aggregation: Arc<Aggregation>,
    front_proxy: Option<FrontProxy>,
    known: BTreeMap<String, Known>,
    keepers: JoinSet<()>,
    news: mpsc::UnboundedSender<News>,
}

impl Follower {
    fn take(&mut self, update: Update) {
        match update {
            Update::Reset(objects) => {
                let names: Vec<String> = objects.iter().map(|one| one.name.to_string()).collect();
                let gone: Vec<String> =
                    self.known.keys().filter(|name| !names.contains(name)).cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
                objects.iter().for_each(|object| self.put(object));
            }
            Update::Events(events) => {
                for event in events {
                    if event.deleted {
                        self.forget(&event.current.name);
                    } else {
                        self.put(&event.current);
                    }
                }
            }
        }
        self.publish();
    }

    fn forget(&mut self, name: &str) {
        let known = self.known.remove(name);
        known.and_then(|known| known.keeper).inspect(AbortHandle::abort);
    }

    fn put(&mut self, object: &Stored) {
        let (name, value) = (object.name.to_string(), object.value());
        let spec = &value["spec"];
        let same = |known: &&mut Known| known.spec == *spec && known.uid == value.uid();
        if let Some(known) = self.known.get_mut(&name).filter(same) {
            if let Some(elsewhere) = &mut known.api.elsewhere {
                elsewhere.available = is_available(&value);
            }
            return;
        }
        self.forget(&name);
        let number = |field: &str| spec[field].as_i64().unwrap_or_default();
        let elsewhere = spec["service"].is_object().then(|| Elsewhere {
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
            elsewhere,
        };
        let keeper = api.elsewhere.as_ref().map(|elsewhere| {
            let keeper = Keeper {
                registry: self.registry.clone(),
                name: name.clone(),
                uid: value.uid().to_owned(),
                api: api.clone(),
                remote: elsewhere.remote.clone(),
                news: self.news.clone(),
            };
            self.keepers.spawn(keeper.run())
        });
        let known = Known { spec: spec.clone(), uid: value.uid().to_owned(), api, keeper };
        self.known.insert(name, known);
    }

    fn learn(&mut self, news: News) {
        let known = self.known.get_mut(&news.name).and_then(|known| known.api.elsewhere.as_mut());
        if let Some(elsewhere) = known.filter(|one| Arc::ptr_eq(&one.remote, &news.remote)) {
            elsewhere.published = Arc::new(news.published);
            self.publish();
        }
    }

    /// Lets servers behind these be looked at again.
    fn doubt(&self, update: &Update, service: impl Fn(&Stored) -> String) {
        let objects: Vec<&Arc<Stored>> = match update {
            Update::Reset(objects) => objects.iter().collect(),
            Update::Events(events) => events.iter().map(|event| &event.current).collect(),
        };
        let remotes: Vec<&Arc<Remote>> = self
            .known
            .values()
            .filter_map(|one| Some(&one.api.elsewhere.as_ref()?.remote))
            .collect();
        if remotes.is_empty() {
            return;
        }
        for object in objects {
            let name = service(object);
            for remote in &remotes {
                if *remote.namespace == *object.namespace && remote.service == name {
                    remote.doubted.notify_one();
                }
            }
        }
    }

    fn publish(&self) {
        if let Some(registry) = self.registry.upgrade() {
            let apis = self.known.values().map(|known| known.api.clone()).collect();
            self.aggregation.set_table(Table(apis));
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

/// Looks after one version that another server serves, until its APIService changes.
struct Keeper {
    registry: Weak<Registry>,
    name: String,
    uid: String,
    api: Api,
    remote: Arc<Remote>,
    news: mpsc::UnboundedSender<News>,
}

impl Keeper {
    async fn run(self) {
        let mut published = Published::default();
        let mut failures = 0;
        loop {
            let Some(registry) = self.registry.upgrade() else { return };
            let mut verdict = check::availability(&registry, &self.api, &self.remote).await;
            let mut found = Published { is_current: false, ..published.clone() };
            if verdict.passed() {
                match documents::fetch(&registry, &self.api, &self.remote, &published).await {
                    Ok(now) => found = now,
                    Err(message) => {
                        verdict = Verdict::no("FailedDiscoveryCheck", message);
                    }
                }
            }
            // Before the condition: who waits for it finds the documents.
            if found != published {
                published = found;
                let (name, remote) = (self.name.clone(), self.remote.clone());
                let news = News { name, remote, published: published.clone() };
                let _ = self.news.send(news);
            }
            failures = if verdict.passed() { 0 } else { failures + 1 };
            if let Err(status) = self.tell(&registry, &verdict).await {
                tracing::warn!(name = self.name, %status, "cannot write the condition of an API");
                failures += 1;
            }
            drop(registry);
            let pause = if failures == 0 { LOOK_EVERY } else { pause_after(failures) };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.remote.doubted.notified() => tokio::time::sleep(SETTLE_PAUSE).await,
            }
        }
    }

    async fn tell(&self, registry: &Registry, verdict: &Verdict) -> Result<(), Status> {
        let Some(resource) = registry.find(GROUP, PLURAL) else { return Ok(()) };
        let target = Target { resource: &resource, namespace: "", name: &self.name };
        let now = time::format_seconds(jiff::Timestamp::now().as_second());
        let change = |old: &Value| {
            if old.uid() != self.uid {
                return Err(target.not_found());
            }
            let Verdict { status, reason, message } = verdict;
            let told = condition(available_condition(old), status, reason, message, &now);
            let mut conditions = items(&old["status"]["conditions"]).to_vec();
            match conditions.iter_mut().find(|one| one["type"] == AVAILABLE) {
                Some(one) => *one = told,
                None => conditions.push(told),
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
