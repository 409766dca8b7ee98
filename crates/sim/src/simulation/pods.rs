//! Scheduler and kubelets in one. Pods get a node, then an address and the phase Running. Pods
//! whose restart policy is not `Always` get the phase Succeeded. Terminating pods are deleted.
//! Nothing is executed here; pods of the agent image are handed to [`crate::agent`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::registry::{DeleteOptions, ListQuery, ReadVersion, WriteTarget};
use apiserver::stored::Stored;
use apiserver::strategy::Operation;
use apiserver::{ApiServer, Resource};
use futures::FutureExt;
use kubernetes_api::kinds::SCHEDULER;
use serde_json::Value;

use super::machine::Machine;
use super::owned::{self, OwnershipMetadata};
use super::replica_set::run_concurrently;
use super::status::{self, KUBELET, running_containers, set_running};
use super::{ObjectKey, Setting, World, key_of, tolerate};
use crate::agent::{AgentPod, Runner};

/// Addresses of pods: 10.128.0.0/9.
const PODS_START: u32 = u32::from_be_bytes([10, 128, 0, 1]);

/// The text of a selectable field, without parsing the object.
pub fn field<'a>(resource: &Resource, object: &'a Stored, label: &str) -> &'a str {
    let at = resource.selectable_fields.iter().position(|field| field.label == label);
    at.and_then(|at| object.fields.get(at)).map_or("", |text| text)
}

/// Whether the pod has ended and runs no more.
pub fn is_finished(pods: &Resource, object: &Stored) -> bool {
    matches!(field(pods, object, "status.phase"), "Failed" | "Succeeded")
}

/// Whether the pod is in the phase Running. A simulated pod that runs is also ready.
pub fn is_running(pods: &Resource, object: &Stored) -> bool {
    field(pods, object, "status.phase") == "Running"
}

/// The next step for a pod.
#[derive(Debug, PartialEq, Eq)]
enum PodAction {
    Nothing,
    Bind,
    Start,
    /// It ran, and its restart policy forbids another start.
    Complete,
    /// Its machine has stopped it, so it can be deleted.
    Finish,
}

/// The scheduler and all kubelets of one cluster.
pub struct Kubelet {
    world: Arc<World>,
    runner: Runner,
    machines: Vec<Machine>,
    /// Index of the machine that is tried first for the next pod.
    next_machine: usize,
    /// The newest assigned address; `None` before the existing addresses were read.
    last_address: Option<u32>,
    /// Pods that run as real processes.
    agents: BTreeMap<ObjectKey, AgentPod>,
}

impl Kubelet {
    /// A kubelet without pods; pods of the agent image reach `server`.
    pub fn new(world: Arc<World>, server: ApiServer, setting: &Setting) -> Self {
        let runner = Runner::new(world.clone(), server, setting);
        Self {
            world,
            runner,
            machines: Vec::new(),
            next_machine: 0,
            last_address: None,
            agents: BTreeMap::new(),
        }
    }

    /// Reads the nodes again. Returns the pods that the change may affect.
    pub fn nodes_changed(&mut self) -> Vec<ObjectKey> {
        let nodes = self.cached(&self.world.kinds.nodes);
        self.machines = nodes.iter().map(|node| Machine::of(node)).collect();
        let pods = &self.world.kinds.pods;
        let names: BTreeSet<&str> = self.machines.iter().map(|m| m.name.as_str()).collect();
        let unsettled = |pod: &&Arc<Stored>| !names.contains(field(pods, pod, "spec.nodeName"));
        self.cached(pods).iter().filter(unsettled).map(|pod| key_of(pod)).collect()
    }

    fn cached(&self, resource: &Arc<Resource>) -> Vec<Arc<Stored>> {
        let query = ListQuery { version: ReadVersion::Any, ..ListQuery::all("") };
        // Reads of the cache never wait.
        match self.world.registry.list(resource, &query).now_or_never() {
            Some(Ok(list)) => list.items,
            _ => Vec::new(),
        }
    }

    fn decide(&self, pod: &Stored, ownership: &OwnershipMetadata) -> PodAction {
        let pods = &self.world.kinds.pods;
        let node = field(pods, pod, "spec.nodeName");
        if ownership.terminating {
            let stops = !node.is_empty() && ownership.grace_seconds > 0;
            return if stops { PodAction::Finish } else { PodAction::Nothing };
        }
        if node.is_empty() {
            return PodAction::Bind;
        }
        if !self.machines.iter().any(|machine| machine.name == node) {
            return PodAction::Finish;
        }
        match field(pods, pod, "status.phase") {
            // Its own task reports its status.
            _ if self.agents.contains_key(&key_of(pod)) => PodAction::Nothing,
            "Pending" | "" => PodAction::Start,
            "Running" if self.is_agent(pod) => PodAction::Start,
            "Running" if field(pods, pod, "spec.restartPolicy") != "Always" => PodAction::Complete,
            _ => PodAction::Nothing,
        }
    }

    fn is_agent(&self, pod: &Stored) -> bool {
        // Most pods are excluded without parsing.
        let text = std::str::from_utf8(&pod.bytes).unwrap_or_default();
        text.contains(self.runner.image()) && self.runner.runs(&pod.value())
    }

    /// Does the next step for these pods. Returns those to retry.
    pub async fn act(&mut self, keys: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let mut jobs = Vec::new();
        let mut again = BTreeSet::new();
        for key in keys {
            let found = self.world.registry.get_at(
                &self.world.kinds.pods,
                &key.0,
                &key.1,
                ReadVersion::Any,
            );
            let pod = match found.await {
                Ok(pod) => pod,
                Err(status) if status.code == 404 => {
                    self.end_agent(&key, None).await;
                    continue;
                }
                Err(_) => {
                    again.insert(key);
                    continue;
                }
            };
            self.end_agent(&key, Some(&pod.uid)).await;
            match self.decide(&pod, &owned::ownership(&pod)) {
                PodAction::Nothing => {}
                PodAction::Bind => {
                    let Some(node) = self.choose(&pod) else { continue };
                    jobs.push(self.job(key, pod, Some(node)));
                }
                PodAction::Start => jobs.push(self.job(key, pod, None)),
                PodAction::Complete => {
                    if status::set_succeeded(&self.world, &pod).await.is_err() {
                        again.insert(key);
                    }
                }
                PodAction::Finish => {
                    self.end_agent(&key, None).await;
                    if finish(&self.world, &pod).await.is_err() {
                        again.insert(key);
                    }
                }
            }
        }
        for job in &jobs {
            if let Some(agent) = &job.agent {
                let pod = AgentPod::start(&self.runner, agent, job.address);
                self.agents.insert(job.key.clone(), pod);
            }
        }
        let world = &self.world;
        let work = jobs.into_iter().map(|job| {
            async move {
                let result = job.start(world).await;
                (result, job.key)
            }
            .boxed()
        });
        let results = run_concurrently(work.collect()).await;
        for (result, key) in results {
            if let Err(status) = result {
                tracing::warn!(namespace = key.0, name = key.1, %status, "cannot start a pod");
                again.insert(key);
            }
        }
        again
    }

    /// Stops the child process of a pod, unless it is that of `uid`.
    async fn end_agent(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let stale = self.agents.get(key).is_some_and(|agent| Some(agent.uid()) != uid);
        if stale && let Some(agent) = self.agents.remove(key) {
            agent.stop().await;
        }
    }

    /// The next node, round-robin, that accepts the pod.
    fn choose(&mut self, pod: &Stored) -> Option<String> {
        let pod = pod.value();
        let count = self.machines.len();
        let offset = (0..count).find(|offset| {
            self.machines[(self.next_machine + offset) % count].accepts(&pod["spec"])
        })?;
        let chosen = (self.next_machine + offset) % count;
        self.next_machine = (chosen + 1) % count;
        Some(self.machines[chosen].name.clone())
    }

    fn job(&mut self, key: ObjectKey, pod: Arc<Stored>, bind: Option<String>) -> Job {
        let node = bind
            .clone()
            .unwrap_or_else(|| field(&self.world.kinds.pods, &pod, "spec.nodeName").to_owned());
        let address = self.next_address();
        let agent = self.is_agent(&pod).then(|| {
            let mut pod = pod.value();
            pod["spec"]["nodeName"] = node.clone().into();
            pod
        });
        Job { key, pod, bind, node, address, agent }
    }

    fn next_address(&mut self) -> Ipv4Addr {
        let pods = &self.world.kinds.pods;
        let last = self.last_address.unwrap_or_else(|| {
            let given = self.cached(pods);
            let addresses = given.iter().filter_map(|pod| {
                field(pods, pod, "status.podIP").parse::<Ipv4Addr>().ok().map(u32::from)
            });
            addresses.max().unwrap_or(PODS_START).max(PODS_START)
        });
        self.last_address = Some(last + 1);
        Ipv4Addr::from(last + 1)
    }

    /// Stops all child processes.
    pub async fn stop(self) {
        for agent in self.agents.into_values() {
            agent.stop().await;
        }
    }
}

/// A pod to start.
struct Job {
    key: ObjectKey,
    pod: Arc<Stored>,
    /// The node to bind it to first.
    bind: Option<String>,
    node: String,
    address: Ipv4Addr,
    /// The pod, when its own task reports its status.
    agent: Option<Value>,
}

impl Job {
    async fn start(&self, world: &World) -> Result<(), Status> {
        let target =
            WriteTarget { resource: &world.kinds.pods, namespace: &self.key.0, name: &self.key.1 };
        if let Some(node) = &self.bind {
            let change = |old: &Value| {
                if old.uid() != &*self.pod.uid {
                    return Err(target.not_found());
                }
                let mut new = old.clone();
                new["spec"]["nodeName"] = node.clone().into();
                Ok(new)
            };
            let options = World::options(SCHEDULER);
            tolerate(world.registry.modify(&target, Operation::Update, &options, &change).await)?;
        }
        if self.agent.is_some() {
            return Ok(());
        }
        let uid = self.pod.uid.to_string();
        let statuses = |pod: &Value| running_containers(pod, &owned::now());
        set_running(world, &target, &uid, &self.node, self.address, &statuses).await
    }
}

/// Deletes a stopped pod.
async fn finish(world: &World, pod: &Stored) -> Result<(), Status> {
    let target =
        WriteTarget { resource: &world.kinds.pods, namespace: &pod.namespace, name: &pod.name };
    let now = DeleteOptions {
        grace_seconds: Some(0),
        uid: Some(pod.uid.to_string()),
        ..DeleteOptions::default()
    };
    tolerate(world.registry.delete(&target, &now, &World::options(KUBELET)).await)
}
