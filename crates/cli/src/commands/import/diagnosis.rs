//! Derives from the objects of the agent's namespace which step the agent's pod has reached, and
//! what blocks it. Pure; `agent_watch` reads the objects.

use std::fmt;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Event, Pod};

#[cfg(test)]
mod tests;

/// The label of the agent's pods, as the manifest sets it.
pub const AGENT_SELECTOR: &str = "app=cattle-cluster-agent";
/// Which of a Deployment's ReplicaSets is the current one.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Prefix of a kubelet before the message of a failed startup probe.
const PROBE_PREFIX: &str = "Startup probe failed: ";
/// Longest quoted message of a cluster, in characters.
const QUOTE_MAX: usize = 600;

/// The steps until the agent is connected, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentStep {
    #[default]
    Created,
    Scheduled,
    ImageThere,
    Started,
    Connected,
}

impl AgentStep {
    /// The step as the checklist shows it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Created => "agent pod created",
            Self::Scheduled => "agent pod has a node",
            Self::ImageThere => "agent image is on the node",
            Self::Started => "agent started",
            Self::Connected => "agent connected",
        }
    }

    /// The next step; the last one returns itself.
    pub fn next(self) -> Self {
        match self {
            Self::Created => Self::Scheduled,
            Self::Scheduled => Self::ImageThere,
            Self::ImageThere => Self::Started,
            Self::Started | Self::Connected => Self::Connected,
        }
    }
}

/// Why a step does not complete, and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub what: String,
    /// Empty if `what` contains it.
    pub next: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.next.is_empty() { Ok(()) } else { write!(f, "; {}", self.next) }
    }
}

impl Trouble {
    fn new(what: impl Into<String>, next: impl Into<String>) -> Option<Self> {
        Some(Self { what: what.into(), next: next.into() })
    }
}

/// The progress of the agent's pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The current step.
    pub step: AgentStep,
    /// None while no problem is known.
    pub trouble: Option<Trouble>,
}

/// The objects that were read from the agent's namespace.
#[derive(Default)]
pub struct AgentObjects {
    pub replica_sets: Vec<ReplicaSet>,
    pub pods: Vec<Pod>,
    pub events: Vec<Event>,
}

/// The progress of the newest pod, or why there is none.
pub fn diagnose(observed: &AgentObjects) -> Progress {
    let at = |step, trouble| Progress { step, trouble };
    let revision = |set: &ReplicaSet| {
        let annotations = set.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(REVISION)?.parse::<u64>().ok()).unwrap_or_default()
    };
    let Some(set) = observed.replica_sets.iter().max_by_key(|set| revision(set)) else {
        return at(AgentStep::Created, None);
    };
    let current = observed.pods.iter().filter(|pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        pod.metadata.deletion_timestamp.is_none()
            && owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
    });
    let newest = current.max_by_key(|pod| pod.metadata.creation_timestamp.clone().map(|at| at.0));
    let Some(pod) = newest else {
        return at(AgentStep::Created, replica_failure(set));
    };
    let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else {
        return at(AgentStep::Scheduled, unschedulable(pod));
    };
    let events = Events { all: &observed.events, pod };
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    match statuses.and_then(|all| all.first()) {
        Some(container) => of_container(container, node, &events),
        None => at(AgentStep::ImageThere, pod_failure(pod).or_else(|| events.setup_failed())),
    }
}

/// The cluster's message on why it creates no pod.
fn replica_failure(set: &ReplicaSet) -> Option<Trouble> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    let failure = conditions.iter().find(|c| c.type_ == "ReplicaFailure" && c.status == "True")?;
    let message = failure.message.as_deref().unwrap_or_default();
    let next = if message.contains("violates PodSecurity") {
        "the namespace cattle-system enforces more than the level \"restricted\", or the cluster's \
         agent environment was changed: see the labels pod-security.kubernetes.io/* of the \
         namespace"
    } else if message.contains("exceeded quota") || message.contains("failed quota") {
        "raise or remove the ResourceQuota in namespace cattle-system"
    } else if message.contains("serviceaccount") {
        "the service account of the manifest is missing: run the command again with --resume"
    } else {
        "something in the cluster refuses the pod (a quota, an admission webhook, a policy): ask \
         whoever runs it to allow the agent in namespace cattle-system"
    };
    Trouble::new(format!("the cluster refuses the agent's pod: {}", quote(message)), next)
}

fn unschedulable(pod: &Pod) -> Option<Trouble> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|c| {
        c.type_ == "PodScheduled" && c.status == "False" && c.reason.as_deref() != Some("")
    })?;
    let message = condition.message.as_deref()?;
    let next = if message.contains("untolerated taint") {
        "remove the taint from a node (kubectl taint node NODE KEY-), or add a node without one"
    } else if message.contains("Insufficient") {
        "make room on a node, or add one; the agent requests 10m of CPU and 32 MiB"
    } else {
        "add a node that fits: Linux, ready, and not cordoned"
    };
    Trouble::new(format!("no node takes the agent's pod: {}", quote(message)), next)
}

/// The failure of a pod that ended before its container was created, such as by an eviction.
fn pod_failure(pod: &Pod) -> Option<Trouble> {
    let status = pod.status.as_ref().filter(|s| s.phase.as_deref() == Some("Failed"))?;
    let reason = status.reason.as_deref().unwrap_or("Failed");
    let message = status.message.as_deref().unwrap_or_default();
    let what = format!("the agent's pod ended: {reason}: {}", quote(message));
    Trouble::new(what, "the cluster creates another one; check the node if that ends too")
}

fn of_container(container: &ContainerStatus, node: &str, events: &Events<'_>) -> Progress {
    let at = |step, trouble| Progress { step, trouble };
    let state = container.state.clone().unwrap_or_default();
    if state.running.is_some() {
        return at(AgentStep::Connected, events.probe_failed().or_else(|| last_words(container)));
    }
    let waiting = state.waiting.unwrap_or_default();
    let message = waiting.message.as_deref().unwrap_or_default();
    match waiting.reason.as_deref().unwrap_or_default() {
        reason @ ("ErrImagePull"
        | "ImagePullBackOff"
        | "ErrImageNeverPull"
        | "InvalidImageName"
        | "ImageInspectError"
        | "RegistryUnavailable") => {
            at(AgentStep::ImageThere, no_image(&container.image, node, reason, message))
        }
        reason @ ("CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "StartError") => at(AgentStep::Started, no_start(node, reason, message)),
        "" | "CrashLoopBackOff" => match last_words(container) {
            Some(trouble) => at(AgentStep::Connected, Some(trouble)),
            None => at(AgentStep::Started, None),
        },
        // ContainerCreating: volumes, network and image, in this order.
        _ => at(AgentStep::ImageThere, events.setup_failed()),
    }
}

fn no_image(image: &str, node: &str, reason: &str, message: &str) -> Option<Trouble> {
    Trouble::new(
        format!(
            "node {node} cannot get the agent's image \"{image}\" ({reason}): {}",
            quote(message)
        ),
        "load the image into the node (ctr -n k8s.io images import drover-agent.tar), or push it \
         to a registry that the nodes reach and name it in the setting agent-image",
    )
}

fn no_start(node: &str, reason: &str, message: &str) -> Option<Trouble> {
    let next = if message.contains("exec format error") || message.contains("no such file") {
        "the image does not fit the node: build it for the node's processor (cargo xtask image \
         --target TRIPLE)"
    } else {
        "check the pod: kubectl -n cattle-system describe pod -l app=cattle-cluster-agent"
    };
    let what = format!("node {node} cannot start the agent ({reason}): {}", quote(message));
    Trouble::new(what, next)
}

/// How the container ended, with the agent's own message if it left one.
fn last_words(container: &ContainerStatus) -> Option<Trouble> {
    let terminated = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
    let end = terminated(&container.state).or_else(|| terminated(&container.last_state))?;
    let reason = end.reason.as_deref().unwrap_or("Error");
    if reason == "OOMKilled" {
        let what = "the agent was ended because it ran out of memory";
        return Trouble::new(what, "check for a LimitRange in namespace cattle-system");
    }
    let message = end.message.as_deref().unwrap_or_default();
    if message.is_empty() {
        let what = format!("the agent ended with code {} ({reason})", end.exit_code);
        let next = "check its log: kubectl -n cattle-system logs -p -l app=cattle-cluster-agent";
        return Trouble::new(what, next);
    }
    // The agent's message ends with what to do.
    Trouble::new(format!("the agent says: {}", quote(message)), "")
}

/// The events of one pod.
struct Events<'a> {
    all: &'a [Event],
    pod: &'a Pod,
}

impl Events<'_> {
    /// The newest message with one of these reasons.
    fn newest(&self, reasons: &[&str]) -> Option<&str> {
        let of_pod = self.all.iter().filter(|event| {
            event.involved_object.uid == self.pod.metadata.uid
                && reasons.contains(&event.reason.as_deref().unwrap_or_default())
        });
        let at = |event: &&Event| {
            let last = event.last_timestamp.as_ref().map(|at| at.0);
            last.or_else(|| event.event_time.as_ref().map(|at| at.0))
        };
        of_pod.max_by_key(at)?.message.as_deref()
    }

    fn setup_failed(&self) -> Option<Trouble> {
        let reasons =
            ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady"];
        let message = self.newest(&reasons)?;
        let what = format!("the node cannot prepare the agent's pod: {}", quote(message));
        Trouble::new(
            what,
            "the kubelet retries; if the problem persists, check the kubelet of the node",
        )
    }

    fn probe_failed(&self) -> Option<Trouble> {
        let message = self.newest(&["Unhealthy"])?.strip_prefix(PROBE_PREFIX)?;
        Trouble::new(format!("the agent says: {}", quote(message)), "")
    }
}

/// A message on one line, cut at [`QUOTE_MAX`] characters.
fn quote(text: &str) -> String {
    let words = text.split_whitespace();
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
