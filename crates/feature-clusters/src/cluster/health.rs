//! Keeps true: the cluster's conditions say whether its agent is connected and its API is well.
//!
//! Owns Connected, AgentDeployed, Waiting and Ready, and the status fields version, provider,
//! apiEndpoint, caCert, componentStatuses and kubeSystemUid, which a registration writes first.
//! Watches clusters and the events of connections; probes the API every [`PROBE_INTERVAL`] while it
//! is connected. Not connected costs nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::cluster::WAITING;
use api_management::{Cluster, condition};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controller::{
    ConditionState, Key, Limits, Outcome, OwnedCondition, Reconcile, ReconcileError, Reflector,
    Runner, StatusPatch, StatusTarget, Whole, error,
};
use feature_kit::rbac::ours;
use feature_kit::{ClusterConnections, ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use http::Request;
use k8s_openapi::api::core::v1::ComponentStatus;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::ListParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::uid;
use crate::connections::{Connections, Obstacle};

const CONNECTED: OwnedCondition = OwnedCondition::of("Cluster", "Connected");
const AGENT_DEPLOYED: OwnedCondition = OwnedCondition::of("Cluster", "AgentDeployed");
const API_SEEN: OwnedCondition = OwnedCondition::of("Cluster", "Waiting");
const READY: OwnedCondition = OwnedCondition::of("Cluster", "Ready");

/// Time between two questions to a cluster that is well.
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// Time to the next question when the last answer was bad.
const PROBE_INTERVAL_UNWELL: Duration = Duration::from_secs(3);
/// Longest wait for an answer.
const PROBE_TIME_MAX: Duration = Duration::from_secs(5);
/// Age at which version and components are read again.
const FACTS_AGE_MAX: Duration = Duration::from_secs(300);
/// After a start agents need a moment to come back; until then a cluster that was connected before
/// is not reported as lost.
const START_GRACE: Duration = Duration::from_secs(15);
/// Bad answers in a row from which on a cluster that was well is reported as unhealthy: one is an
/// accident.
const BAD_ANSWERS_MIN: u32 = 2;
/// Clusters probed at once.
const PROBES_MAX: usize = 64;

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "cluster-health",
        vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`]; `connections`
/// reach the clusters.
pub async fn run(context: ManagementContext, client: Client, connections: Arc<Connections>) {
    let scope = &context.scope;
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    let health = Health {
        client,
        clusters: clusters.clone(),
        connections: connections.clone(),
        facts_at: Mutex::default(),
        bad_answers: Mutex::default(),
        seen: Mutex::default(),
        answered: Mutex::default(),
        started_at: Instant::now(),
    };
    let limits = Limits { running_max: PROBES_MAX, running_per_lane_max: 1, ..Limits::default() };
    let runner = Runner::with_limits(Arc::new(health), limits);
    let mut events = connections.events();
    // Own writes come back as changes; only what the probe depends on causes another one.
    runner.watch(&clusters, |change| {
        let relevant = match change {
            controller::Change::Applied { new, old: Some(old), .. } => {
                new.status.agent_identity != old.status.agent_identity
            }
            _ => true,
        };
        relevant.then(|| change.key().clone())
    });
    let queue = runner.queue().clone();
    let follow = async move {
        loop {
            match events.recv().await {
                Ok(event) => queue.add(Key::cluster_scoped(&event.cluster)),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    clusters.for_each(|key, _| queue.add(key.clone()));
                }
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = runner.run("", &scope.controllers, scope.stop.clone()) => {}
        () = follow => {}
    }
}

struct Health {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    connections: Arc<Connections>,
    facts_at: Mutex<HashMap<String, Instant>>,
    bad_answers: Mutex<HashMap<String, u32>>,
    /// Clusters that were connected since the start.
    seen: Mutex<HashSet<String>>,
    /// Clusters in whose status it stands that the API answered well, also before that comes back
    /// as a change.
    answered: Mutex<HashSet<String>>,
    started_at: Instant,
}

/// What was seen of a cluster.
pub(crate) struct Observed {
    pub local: bool,
    /// An agent has registered a key.
    pub enrolled: bool,
    /// The API answered well at some time.
    pub seen_before: bool,
    /// What the API says of itself; none when it cannot be reached.
    pub api: Option<Result<(), String>>,
    /// The API may be reached without it.
    pub has_agent: bool,
    /// The cluster that answers is another entry's.
    pub is_anothers: bool,
    /// Why it cannot be reached, if that is known.
    pub obstacle: Option<Obstacle>,
}

/// Reason and message of a cluster whose agent was here and is not.
const DISCONNECTED: (&str, &str) = ("Disconnected", "cluster agent is not connected");

/// The conditions of the agent.
fn with_agent(
    patch: StatusPatch,
    observed: &Observed,
    reported: Option<(&str, &str)>,
) -> StatusPatch {
    if observed.has_agent && observed.api.is_some() {
        return patch
            .condition(CONNECTED, ConditionState::yes())
            .condition(AGENT_DEPLOYED, ConditionState::yes());
    }
    let connected = if observed.local || observed.enrolled {
        let (reason, message) = reported.unwrap_or(DISCONNECTED);
        ConditionState::no(reason, message)
    } else {
        let (reason, message) = reported.unwrap_or(("AgentNotRegistered", ""));
        ConditionState::unknown(reason, message)
    };
    patch.condition(CONNECTED, connected)
}

/// The conditions of a cluster. Pure.
pub(crate) fn desired(observed: &Observed) -> StatusPatch {
    let reported = observed.obstacle.as_ref().map(|o| (o.reason, o.message.as_str()));
    let patch = with_agent(StatusPatch::new(), observed, reported);
    let Some(api) = &observed.api else {
        return if observed.seen_before {
            let (reason, message) = reported.unwrap_or(DISCONNECTED);
            patch.condition(READY, ConditionState::no(reason, message))
        } else {
            let (reason, message) = reported.unwrap_or(("", "waiting for the cluster's API"));
            patch.condition(API_SEEN, ConditionState::unknown(reason, message))
        };
    };
    match api {
        Ok(()) if observed.is_anothers => {
            let ready = ConditionState::no(uid::ALREADY_MANAGED, uid::MESSAGE);
            patch.condition(READY, ready).condition(API_SEEN, ConditionState::yes())
        }
        Ok(()) => {
            patch.condition(READY, ConditionState::yes()).condition(API_SEEN, ConditionState::yes())
        }
        Err(cause) => {
            let message = format!("cluster API is not healthy: {cause}");
            let patch = patch.condition(READY, ConditionState::no("Unhealthy", message));
            if observed.seen_before {
                return patch;
            }
            let waiting = ConditionState::unknown("", "waiting for the cluster's API");
            patch.condition(API_SEEN, waiting)
        }
    }
}

impl Health {
    async fn look(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else {
            self.facts_at.lock().remove(&key.name);
            self.bad_answers.lock().remove(&key.name);
            self.seen.lock().remove(&key.name);
            self.answered.lock().remove(&key.name);
            return Ok(Outcome::Done);
        };
        let client = self.connections.client(&key.name);
        let api = match &client {
            Some(client) => Some(probe(client).await),
            None => None,
        };
        if let Some(wait) = self.too_early(&cluster, api.as_ref()) {
            return Ok(Outcome::RequeueAfter(wait));
        }
        let well = matches!(api, Some(Ok(())));
        let facts = client.filter(|_| well && self.facts_due(&cluster));
        let uid = match &facts {
            Some(client) => uid::read(client).await.unwrap_or_default(),
            None => String::new(),
        };
        let is_anothers = uid::is_managed_by_another(&self.clusters, &cluster, &uid);
        let observed = Observed {
            local: cluster.is_local(),
            enrolled: cluster.status.agent_identity.is_some(),
            seen_before: condition::is_true(&cluster.status.conditions, WAITING)
                || self.answered.lock().contains(&key.name),
            api,
            has_agent: self.connections.has_agent(&key.name),
            is_anothers,
            obstacle: self.connections.obstacle(&key.name),
        };
        let mut patch = desired(&observed);
        if let Some(endpoint) = self.connections.endpoint(&key.name) {
            patch = patch
                .field("apiEndpoint", format!("https://{}", endpoint.address))
                .field("caCert", STANDARD.encode(endpoint.ca_cert));
        }
        if !uid.is_empty() && !is_anothers {
            patch = patch.field("kubeSystemUid", uid);
        }
        if let Some(client) = facts {
            patch = self.with_facts(patch, &client, &key.name).await;
        }
        patch.write(&self.client, &StatusTarget::of::<Cluster>("", &key.name)).await?;
        if well {
            self.answered.lock().insert(key.name.clone());
        }
        Ok(match observed.api {
            None if self.connections.has_direct(&key.name) => {
                Outcome::RequeueAfter(PROBE_INTERVAL_UNWELL)
            }
            None => Outcome::WaitingFor("the cluster's agent".to_owned()),
            Some(Ok(())) => Outcome::RequeueAfter(PROBE_INTERVAL),
            Some(Err(_)) => Outcome::RequeueAfter(PROBE_INTERVAL_UNWELL),
        })
    }

    /// Whether what was seen may be an accident; then how long to wait before looking again.
    fn too_early(&self, cluster: &Cluster, api: Option<&Result<(), String>>) -> Option<Duration> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let is_true = |owned: OwnedCondition| {
            condition::is_true(&cluster.status.conditions, owned.condition())
        };
        match api {
            // It was here since the start, so it is really lost.
            None if self.seen.lock().contains(&name) => None,
            None => {
                let left = START_GRACE.checked_sub(self.started_at.elapsed())?;
                is_true(CONNECTED).then_some(left)
            }
            Some(Ok(())) => {
                self.bad_answers.lock().remove(&name);
                self.seen.lock().insert(name);
                None
            }
            Some(Err(_)) => {
                self.seen.lock().insert(name.clone());
                let mut all = self.bad_answers.lock();
                let count = all.entry(name).or_default();
                *count = count.saturating_add(1);
                (is_true(READY) && *count < BAD_ANSWERS_MIN).then_some(PROBE_INTERVAL_UNWELL)
            }
        }
    }

    fn facts_due(&self, cluster: &Cluster) -> bool {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let read_at = self.facts_at.lock().get(name).copied();
        let unwell = !condition::is_true(&cluster.status.conditions, READY.condition());
        unwell || read_at.is_none_or(|at| at.elapsed() > FACTS_AGE_MAX)
    }

    /// Adds what rarely changes. What cannot be had stays as it was.
    async fn with_facts(&self, patch: StatusPatch, client: &Client, cluster: &str) -> StatusPatch {
        let mut patch = patch;
        let version = tokio::time::timeout(PROBE_TIME_MAX, client.apiserver_version()).await;
        if let Ok(Ok(version)) = version {
            patch = patch
                .field("provider", provider(&version.git_version))
                .field("version", version_field(&version));
            self.facts_at.lock().insert(cluster.to_owned(), Instant::now());
        }
        let components = tokio::time::timeout(PROBE_TIME_MAX, components(client)).await;
        if let Ok(Some(components)) = components {
            patch = patch.field("componentStatuses", components);
        }
        patch
    }
}

fn version_field(version: &Info) -> Value {
    serde_json::to_value(version).unwrap_or_default()
}

/// The distribution, by the suffix that distributions put on their version.
pub(crate) fn provider(git_version: &str) -> &'static str {
    let known = [("+k3s", "k3s"), ("+rke2", "rke2"), ("-eks", "eks"), ("-gke", "gke")];
    known.iter().find(|(mark, _)| git_version.contains(mark)).map_or("", |(_, name)| name)
}

/// Asks the API whether it is ready; older ones know only `/healthz`.
async fn probe(client: &Client) -> Result<(), String> {
    let get = async |path: &str| {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        client.request_text(request).await
    };
    let both = async {
        match get("/readyz").await {
            Err(error) if error::is_code(&error, 404) => get("/healthz").await,
            answer => answer,
        }
    };
    match tokio::time::timeout(PROBE_TIME_MAX, both).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if !status.message.is_empty() => {
            Err(status.message.lines().last().unwrap_or_default().to_owned())
        }
        Ok(Err(error)) => Err(ReconcileError::other("ask", error).to_string()),
        Err(_) => Err(format!("no answer within {} s", PROBE_TIME_MAX.as_secs())),
    }
}

/// Health of the control plane's parts; none where the API has no such thing.
async fn components(client: &Client) -> Option<Vec<Value>> {
    let api: Api<ComponentStatus> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await.ok()?;
    let of = |component: ComponentStatus| {
        json!({
            "name": component.metadata.name.unwrap_or_default(),
            "conditions": component.conditions.unwrap_or_default(),
        })
    };
    Some(list.items.into_iter().map(of).collect())
}

impl Reconcile for Health {
    fn name(&self) -> &'static str {
        "cluster-health"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.look(key))
    }
}
