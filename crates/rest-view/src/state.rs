//! The state of an object in one word, from its conditions. Pure.
//!
//! Source: management-API wire reference, "state computation" (behaviour of the 2.5 line).

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A cattle.io object without conditions shows as `initializing` while younger than this.
pub(crate) const INITIALIZING_FOR: SignedDuration = SignedDuration::from_secs(5);
/// A removal that lasts longer shows as an error.
const REMOVAL_EXPECTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// Whether the object is in transition: `transitioning` of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transitioning {
    No,
    Yes,
    Error,
}

impl Transitioning {
    /// As the field spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Error => "error",
        }
    }
}

/// The state of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// One lower-case word, such as `active`.
    pub state: String,
    pub transitioning: Transitioning,
    /// Messages of the conditions that decided, joined with `; `.
    pub message: String,
}

/// False is an error, Unknown is "in progress".
const UNKNOWN_IS_PROGRESS: &[(&str, &str)] = &[
    ("Active", "activating"),
    ("InitialRolesPopulated", "activating"),
    ("ResourceQuotaValidated", "activating"),
    ("AddonDeploy", "provisioning"),
    ("AgentDeployed", "provisioning"),
    ("CertsGenerated", "provisioning"),
    ("DockerProvisioned", "provisioning"),
    ("etcd", "provisioning"),
    ("NodesCreated", "provisioning"),
    ("Provisioned", "provisioning"),
    ("BackingNamespaceCreated", "configuring"),
    ("ConfigOK", "configuring"),
    ("CreatorMadeOwner", "configuring"),
    ("DefaultNamespaceAssigned", "configuring"),
    ("DefaultNetworkPolicyCreated", "configuring"),
    ("DefaultProjectCreated", "configuring"),
    ("SystemProjectCreated", "configuring"),
    ("Built", "building"),
    ("Created", "creating"),
    ("Deployed", "deploying"),
    ("Drained", "draining"),
    ("Downloaded", "downloading"),
    ("Inactive", "deactivating"),
    ("Initialized", "initializing"),
    ("Installed", "installing"),
    ("Pending", "pending"),
    ("AbleToScale", "pending"),
    ("ScalingActive", "pending"),
    ("PodScheduled", "scheduling"),
    ("Refreshed", "refreshed"),
    ("Registered", "registering"),
    ("Removed", "removing"),
    ("Saved", "saving"),
    ("Updated", "updating"),
    ("Updating", "updating"),
    ("Upgraded", "upgrading"),
    ("Waiting", "waiting"),
    ("RunCompleted", "running"),
    ("Processed", "processed"),
];
/// False is "in progress", Unknown is an error.
const FALSE_IS_PROGRESS: &[(&str, &str)] = &[
    ("Completed", "activating"),
    ("Ready", "unavailable"),
    ("Available", "updating"),
    ("Progressing", "inactive"),
];
/// True is "in progress".
const TRUE_IS_PROGRESS: &[(&str, &str)] = &[("Reconciling", "reconciling")];
/// True is an error that does not change the state.
const TRUE_IS_ERROR: &[&str] = &[
    "OutOfDisk",
    "MemoryPressure",
    "DiskPressure",
    "NetworkUnavailable",
    "KernelHasNoDeadlock",
    "Unschedulable",
    "ReplicaFailure",
    "Stalled",
];

struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

#[derive(Default)]
struct Draft {
    state: String,
    error: bool,
    transitioning: bool,
    messages: Vec<String>,
}

impl Draft {
    fn say(&mut self, message: &str) {
        if !message.is_empty() && !self.messages.iter().any(|said| said == message) {
            self.messages.push(message.to_owned());
        }
    }
}

/// Evaluates `status.conditions`, then phase, age and deletion, in the order that the reference
/// gives.
pub fn summarise(stored: &Value, now: Timestamp) -> Summary {
    let from_annotation: Value = stored["metadata"]["annotations"]["cattle.io/status"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let mut conditions = conditions(&stored["status"]["conditions"]);
    conditions.extend(self::conditions(&from_annotation["Conditions"]));
    conditions.extend(self::conditions(&from_annotation["conditions"]));

    let mut draft = seeded(&stored["status"]);
    errors(&mut draft, &conditions);
    unknown_is_progress(&mut draft, &conditions);
    if draft.state.is_empty() {
        false_is_progress(&mut draft, &conditions);
    }
    if draft.state.is_empty() {
        let found = conditions.iter().filter(|c| c.status == "True");
        if let Some((condition, state)) =
            found.filter_map(|c| Some((c, word(TRUE_IS_PROGRESS, c.kind)?))).next()
        {
            (draft.state, draft.transitioning) = (state.to_owned(), true);
            draft.say(condition.message);
        }
    }
    if draft.state.is_empty()
        && let Some(active) = stored["spec"]["active"].as_bool()
    {
        draft.state = if active { "active" } else { "inactive" }.to_owned();
    }
    phase(&mut draft, stored);
    if draft.state.is_empty() && conditions.is_empty() && is_young(stored, now) {
        (draft.state, draft.transitioning) = ("initializing".to_owned(), true);
    }
    removal(&mut draft, stored, &conditions, now);
    load_balancer(&mut draft, stored);
    if draft.state.is_empty() {
        draft.state = "active".to_owned();
    }
    Summary {
        state: draft.state.to_lowercase(),
        transitioning: match (draft.error, draft.transitioning) {
            (true, _) => Transitioning::Error,
            (false, true) => Transitioning::Yes,
            (false, false) => Transitioning::No,
        },
        message: draft.messages.join("; "),
    }
}

fn conditions(list: &Value) -> Vec<Condition<'_>> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|condition| Condition {
            kind: condition["type"].as_str().unwrap_or_default(),
            status: condition["status"].as_str().unwrap_or_default(),
            reason: condition["reason"].as_str().unwrap_or_default(),
            message: condition["message"].as_str().unwrap_or_default(),
        })
        .collect()
}

fn word(table: &[(&str, &'static str)], kind: &str) -> Option<&'static str> {
    table.iter().find(|(name, _)| *name == kind).map(|(_, state)| *state)
}

/// The state that `status.display`, else `status.summary` states explicitly.
fn seeded(status: &Value) -> Draft {
    let mut draft = Draft::default();
    let said = ["display", "summary"].map(|key| &status[key]);
    let filled = |said: &&&Value| said.as_object().is_some_and(|entries| !entries.is_empty());
    let Some(said) = said.iter().find(filled) else { return draft };
    draft.state = said["state"].as_str().unwrap_or_default().to_owned();
    draft.error = said["error"] == true;
    draft.transitioning = said["transitioning"] == true;
    draft.say(said["message"].as_str().unwrap_or_default());
    draft
}

fn errors(draft: &mut Draft, conditions: &[Condition<'_>]) {
    let failed = conditions.iter().find(|c| {
        c.reason == "Error" || (matches!(c.kind, "Failed" | "Progressing") && c.status == "False")
    });
    if let Some(condition) = failed {
        draft.error = true;
        if matches!(draft.state.as_str(), "" | "active") {
            draft.state = "error".to_owned();
        }
        draft.say(condition.message);
    }
    if draft.error {
        return;
    }
    for condition in conditions.iter().filter(|c| c.status == "True") {
        if TRUE_IS_ERROR.contains(&condition.kind) {
            draft.error = true;
            draft.say(condition.message);
        }
    }
}

fn unknown_is_progress(draft: &mut Draft, conditions: &[Condition<'_>]) {
    for condition in conditions {
        let Some(state) = word(UNKNOWN_IS_PROGRESS, condition.kind) else { continue };
        match condition.status {
            "False" => {
                (draft.error, draft.state) = (true, state.to_owned());
                draft.say(condition.message);
            }
            "Unknown" if draft.state.is_empty() => {
                (draft.transitioning, draft.state) = (true, state.to_owned());
                draft.say(condition.message);
            }
            _ => {}
        }
    }
}

fn false_is_progress(draft: &mut Draft, conditions: &[Condition<'_>]) {
    for condition in conditions {
        let Some(state) = word(FALSE_IS_PROGRESS, condition.kind) else { continue };
        match condition.status {
            "False" => draft.transitioning = true,
            "Unknown" => draft.error = true,
            _ => continue,
        }
        draft.state = state.to_owned();
        draft.say(condition.message);
        return;
    }
}

fn phase(draft: &mut Draft, stored: &Value) {
    let phase = stored["status"]["phase"].as_str().unwrap_or_default();
    if phase == "Succeeded" {
        (draft.state, draft.transitioning) = ("succeeded".to_owned(), false);
    } else if draft.state.is_empty() {
        draft.state = phase.to_owned();
    }
}

fn time(stored: &Value, field: &str) -> Option<Timestamp> {
    stored["metadata"][field].as_str()?.parse().ok()
}

/// The next time at which [`summarise`] may return something else for the same object; `None`:
/// never.
pub(crate) fn settles_at(stored: &Value, now: Timestamp) -> Option<Timestamp> {
    let end = |field, lasts| time(stored, field)?.checked_add(lasts).ok().filter(|at| *at >= now);
    let young = end("creationTimestamp", INITIALIZING_FOR);
    let removing = end("deletionTimestamp", REMOVAL_EXPECTED_WITHIN);
    young.into_iter().chain(removing).min()
}

fn is_young(stored: &Value, now: Timestamp) -> bool {
    let api_version = stored["apiVersion"].as_str().unwrap_or_default();
    api_version.contains(".cattle.io/")
        && time(stored, "creationTimestamp")
            .is_some_and(|created| now.duration_since(created) < INITIALIZING_FOR)
}

fn removal(draft: &mut Draft, stored: &Value, conditions: &[Condition<'_>], now: Timestamp) {
    if !stored["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    (draft.state, draft.transitioning) = ("removing".to_owned(), true);
    if let Some(removed) = conditions.iter().find(|c| c.kind == "Removed") {
        draft.say(removed.message);
    }
    if let Some(finalizer) = stored["metadata"]["finalizers"][0].as_str() {
        let waiting_for = match finalizer {
            "foregroundDeletion" => "object cleanup",
            other => other.strip_prefix("controller.cattle.io/").unwrap_or(other),
        };
        draft.say(&format!("waiting on {waiting_for}"));
    }
    if time(stored, "deletionTimestamp")
        .is_some_and(|since| now.duration_since(since) > REMOVAL_EXPECTED_WITHIN)
    {
        draft.error = true;
    }
}

/// A Service that waits for its address is pending.
fn load_balancer(draft: &mut Draft, stored: &Value) {
    let waits = stored["kind"] == "Service"
        && stored["spec"]["type"] == "LoadBalancer"
        && !stored["status"]["loadBalancer"]["ingress"][0].is_object()
        && !stored["metadata"]["deletionTimestamp"].is_string();
    if waits {
        (draft.state, draft.transitioning) = ("pending".to_owned(), true);
        draft.say("waiting for an address of the load balancer");
    }
}
