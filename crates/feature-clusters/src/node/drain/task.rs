//! One drain: round after round, what is to go and has not been evicted is evicted, until nothing
//! is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_management::Node;
use backoff::Backoff;
use controller::ReconcileError;
use feature_kit::downstream::with_cluster_timeout;
use futures::StreamExt;
use http::Request;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::core::Status;
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use rest_view::urls::encode;
use rest_view::{ApiError, Caller, Key};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::condition;
use super::plan::{self, Fate, Obstacle, Options, PodName};
use super::progress::{Progress, Waiting};

/// Evictions of one drain that are under way at once.
const EVICTIONS_AT_ONCE: usize = 8;
/// Waits between rounds. What a disruption budget refused is retried in each.
const ROUND_WAIT: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// How a drain ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Drained {
        pods: usize,
    },
    Stopped,
    Uncordoned,
    Deleted,
    CredentialEnded,
    /// Why the cluster does not let this person evict a pod.
    Refused(String),
    /// Pods that stand in the way and came since the drain began.
    Obstructed(String),
    /// What is left.
    TimedOut(String),
}

impl Ending {
    /// In one CamelCase word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Drained { .. } => "Drained",
            Self::Stopped => condition::STOPPED,
            Self::Uncordoned => "Uncordoned",
            Self::Deleted => "Deleted",
            Self::CredentialEnded => "CredentialEnded",
            Self::Refused(_) => "Refused",
            Self::Obstructed(_) => "Obstructed",
            Self::TimedOut(_) => "TimedOut",
        }
    }
}

/// A drain of one node.
pub struct Task {
    /// The node's object here.
    pub(super) node: Key,
    /// Its name in its cluster.
    pub(super) name: String,
    pub(super) user: String,
    options: Options,
    /// Acts in the cluster as the person who requested the drain.
    cluster: Client,
    /// Fires when the credential that requested it no longer holds.
    credential_ended: CancellationToken,
    progress: Mutex<Progress>,
    /// Whether a DaemonSet is there, by namespace and name, as far as it was read.
    daemon_sets: Mutex<BTreeMap<(String, String), bool>>,
}

/// The pods of the node that matter.
struct Pods {
    evicted: Vec<Pod>,
    obstacles: Vec<(PodName, Obstacle)>,
}

impl Task {
    /// Of a stored node that has joined its cluster as `name`; `cluster` acts there as the caller.
    pub fn new(
        caller: &Caller,
        stored: &Value,
        name: &str,
        cluster: Client,
        options: Options,
    ) -> Self {
        Self {
            node: Key::of(stored),
            name: name.to_owned(),
            user: caller.user_id.clone(),
            options,
            cluster,
            credential_ended: caller.ended.clone(),
            progress: Mutex::default(),
            daemon_sets: Mutex::default(),
        }
    }

    /// Refuses who may not evict pods of the cluster.
    ///
    /// # Errors
    /// 403, or the cluster does not answer.
    pub async fn require_eviction(&self) -> Result<(), ApiError> {
        let attributes = ResourceAttributes {
            verb: Some("create".to_owned()),
            resource: Some("pods".to_owned()),
            subresource: Some("eviction".to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.cluster.clone());
        let parameters = PostParams::default();
        let answer = async { Ok(reviews.create(&parameters, &review).await?) };
        let answer = with_cluster_timeout(answer).await?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        let text =
            "you may not evict pods in all namespaces of this cluster (create pods/eviction)";
        Err(ApiError::new(403, "Forbidden", text))
    }

    /// What stands in the way now; `None`: nothing.
    ///
    /// # Errors
    /// The person may not read the pods, or the cluster does not answer.
    pub async fn refusal(&self) -> Result<Option<String>, ApiError> {
        Ok(plan::refusal(&with_cluster_timeout(self.pods()).await?.obstacles))
    }

    /// Runs until the drain ends by itself.
    pub async fn run(&self, writer: &Client) -> Ending {
        tokio::select! {
            ending = self.rounds(writer) => ending,
            () = self.credential_ended.cancelled() => Ending::CredentialEnded,
            () = tokio::time::sleep(self.options.timeout) => {
                Ending::TimedOut(self.progress.lock().text())
            }
        }
    }

    async fn rounds(&self, writer: &Client) -> Ending {
        let mut rounds = 0;
        let mut was_cordoned = false;
        loop {
            match self.is_cordoned(writer).await {
                Some(Cordoned::Deleted) => return Ending::Deleted,
                Some(Cordoned::No) if was_cordoned => return Ending::Uncordoned,
                Some(Cordoned::Yes) => was_cordoned = true,
                // The object here has yet to follow, or could not be read this time.
                Some(Cordoned::No) | None => {}
            }
            match self.round().await {
                Ok(true) => return Ending::Drained { pods: self.progress.lock().ended() },
                Ok(false) => {}
                Err(ending) => return ending,
            }
            if let Err(error) = self.report(writer).await {
                tracing::debug!(
                    node = self.name,
                    error = error.chain(),
                    "progress was not written"
                );
            }
            rounds += 1;
            tokio::time::sleep(ROUND_WAIT.delay(rounds)).await;
        }
    }

    /// Writes how far the drain is.
    pub async fn report(&self, writer: &Client) -> Result<(), ReconcileError> {
        let text = self.progress.lock().text();
        condition::write(writer, &self.node, condition::draining(text)).await
    }

    async fn is_cordoned(&self, writer: &Client) -> Option<Cordoned> {
        let nodes: Api<Node> = Api::namespaced(writer.clone(), &self.node.namespace);
        let Some(node) = nodes.get_opt(&self.node.name).await.ok()? else {
            return Some(Cordoned::Deleted);
        };
        let spec = node.status.internal_node_spec.unwrap_or_default();
        Some(if spec.unschedulable == Some(true) { Cordoned::Yes } else { Cordoned::No })
    }

    /// Evicts what is left. Whether nothing was.
    async fn round(&self) -> Result<bool, Ending> {
        let pods = match with_cluster_timeout(self.pods()).await {
            Ok(pods) => pods,
            Err(error) if is_refusal(error.status) => return Err(Ending::Refused(error.message)),
            Err(error) => {
                self.progress.lock().silent(error.message);
                return Ok(false);
            }
        };
        if let Some(text) = plan::refusal(&pods.obstacles) {
            return Err(Ending::Obstructed(text));
        }
        let uids: Vec<String> = pods.evicted.iter().filter_map(ResourceExt::uid).collect();
        let evictions = pods.evicted.iter();
        let evictions = evictions.map(|pod| async { (PodName::of(pod), self.wait_for(pod).await) });
        let evictions: Vec<_> = evictions.collect();
        let mut evictions = futures::stream::iter(evictions).buffer_unordered(EVICTIONS_AT_ONCE);
        let mut left = BTreeMap::new();
        while let Some((pod, waiting)) = evictions.next().await {
            if let Some(waiting) = waiting? {
                left.insert(pod, waiting);
            }
        }
        self.progress.lock().round(uids.into_iter(), left);
        Ok(pods.evicted.is_empty())
    }

    async fn pods(&self) -> Result<Pods, ApiError> {
        let api: Api<Pod> = Api::all(self.cluster.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let all = api.list(&here).await?.items;
        let orphans = self.orphans(&all).await?;
        let mut pods = Pods { evicted: Vec::new(), obstacles: Vec::new() };
        for pod in all {
            match plan::fate(&pod, &self.options, &orphans) {
                Fate::Evicted => pods.evicted.push(pod),
                Fate::Stays => {}
                Fate::Obstacle(obstacle) => pods.obstacles.push((PodName::of(&pod), obstacle)),
            }
        }
        Ok(pods)
    }

    /// Pods whose DaemonSet is no more.
    async fn orphans(&self, pods: &[Pod]) -> Result<BTreeSet<PodName>, ApiError> {
        let mut orphans = BTreeSet::new();
        for pod in pods {
            let Some(name) = plan::daemon_set(pod) else { continue };
            if !self.has_daemon_set(pod.namespace().unwrap_or_default(), name).await? {
                orphans.insert(PodName::of(pod));
            }
        }
        Ok(orphans)
    }

    async fn has_daemon_set(&self, namespace: String, name: &str) -> Result<bool, ApiError> {
        let sets: Api<DaemonSet> = Api::namespaced(self.cluster.clone(), &namespace);
        let key = (namespace, name.to_owned());
        if let Some(known) = self.daemon_sets.lock().get(&key) {
            return Ok(*known);
        }
        let is_there = match sets.get_metadata_opt(name).await.map_err(ApiError::from) {
            Ok(found) => found.is_some(),
            // Who may not read it takes the pod's word.
            Err(error) if error.is_forbidden() => true,
            Err(error) => return Err(error),
        };
        self.daemon_sets.lock().insert(key, is_there);
        Ok(is_there)
    }

    /// Evicts the pod unless it is ending. What it waits for; `None`: it is no more.
    async fn wait_for(&self, pod: &Pod) -> Result<Option<Waiting>, Ending> {
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(Some(Waiting::Ending));
        }
        let Err(error) = self.evict(pod).await else { return Ok(Some(Waiting::Ending)) };
        let kube::Error::Api(status) = error else {
            return Ok(Some(Waiting::Error(error.to_string())));
        };
        Ok(match status.code {
            // Another pod has its name now.
            409 => None,
            404 if is_about(&status, &pod.name_any()) => None,
            429 => Some(Waiting::Budget(cause(&status).unwrap_or(&status.message).to_owned())),
            403 if is_namespace_ending(&status) => Some(Waiting::Ending),
            code if is_refusal(code) => return Err(Ending::Refused(status.message)),
            _ => Some(Waiting::Error(status.message)),
        })
    }

    async fn evict(&self, pod: &Pod) -> Result<(), kube::Error> {
        let PodName { namespace, name } = PodName::of(pod);
        let path =
            format!("/api/v1/namespaces/{}/pods/{}/eviction", encode(&namespace), encode(&name));
        let mut options = json!({"preconditions": {"uid": pod.uid()}});
        if let Some(seconds) = self.options.grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        // Not `Api::evict`, which names these options wrongly, so that they have no effect.
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name}, "deleteOptions": options,
        });
        let request = Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.cluster.request::<Value>(request).await.map(drop)
    }
}

enum Cordoned {
    Yes,
    No,
    Deleted,
}

fn is_refusal(code: u16) -> bool {
    code == 401 || code == 403
}

/// Whether the answer is about the pod, and not about its eviction, which no such cluster may know.
fn is_about(status: &Status, pod: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.name == pod)
}

fn cause(status: &Status) -> Option<&str> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| cause.message.as_str()).find(|text| !text.is_empty())
}

/// A namespace that is being deleted takes its pods along.
fn is_namespace_ending(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
