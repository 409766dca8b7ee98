//! Which pods of a node a drain evicts, which it leaves, and which stand in its way. Pure.
//!
//! By the rules of `kubectl drain` and in its order: a pod that the node runs by itself stays, one
//! of a DaemonSet stays or stands in the way, and so on.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Map, Value};

/// Marks pods that come from a file on the node: the API cannot end them.
const MIRROR_POD: &str = "kubernetes.io/config.mirror";
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);
/// Pods that a message names; of others it says how many they are.
const NAMED_MAX: usize = 3;

/// What a drain may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Also evicts pods that nothing starts again.
    pub force: bool,
    /// Leaves pods of DaemonSets, which start again at once; they stand in the way otherwise.
    pub ignore_daemon_sets: bool,
    /// Also evicts pods whose data in an `emptyDir` is lost by that.
    pub delete_local_data: bool,
    /// Seconds that each pod has to end; `None`: its own.
    pub grace_seconds: Option<i64>,
    /// Time after which the drain gives up.
    pub timeout: Duration,
}

impl Options {
    /// From a checked `nodeDrainInput`.
    pub fn of(input: &Map<String, Value>) -> Self {
        let flag =
            |name: &str, default| input.get(name).and_then(Value::as_bool).unwrap_or(default);
        let seconds = input.get("timeout").and_then(Value::as_u64);
        Self {
            force: flag("force", false),
            ignore_daemon_sets: flag("ignoreDaemonSets", true),
            delete_local_data: flag("deleteLocalData", false),
            grace_seconds: input.get("gracePeriod").and_then(Value::as_i64).filter(|s| *s >= 0),
            timeout: seconds.map_or(TIMEOUT_DEFAULT, Duration::from_secs),
        }
    }
}

/// A pod by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

impl PodName {
    /// Empty where the pod lacks one.
    pub fn of(pod: &Pod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Why a pod stands in the way of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    DaemonSet,
    LocalData,
    Unmanaged,
}

impl Obstacle {
    fn words(self) -> &'static str {
        match self {
            Self::DaemonSet => "would be started again at once (ignoreDaemonSets leaves them)",
            Self::LocalData => "would lose data in an emptyDir (deleteLocalData evicts them)",
            Self::Unmanaged => "would not be started again by anything (force evicts them)",
        }
    }
}

/// What a drain does with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Evicted,
    Stays,
    Obstacle(Obstacle),
}

/// The name of the DaemonSet that runs the pod.
pub fn daemon_set(pod: &Pod) -> Option<&str> {
    let owner = controller(pod).filter(|owner| owner.kind == "DaemonSet")?;
    Some(&owner.name)
}

/// `orphans`: pods whose DaemonSet is no more.
pub fn fate(pod: &Pod, options: &Options, orphans: &BTreeSet<PodName>) -> Fate {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    let is_orphan = orphans.contains(&PodName::of(pod));
    if daemon_set(pod).is_some() && !has_ended && !is_orphan {
        return match options.ignore_daemon_sets {
            true => Fate::Stays,
            false => Fate::Obstacle(Obstacle::DaemonSet),
        };
    }
    if pod.annotations().contains_key(MIRROR_POD) {
        return Fate::Stays;
    }
    if has_ended {
        return Fate::Evicted;
    }
    if has_local_data(pod) && !options.delete_local_data {
        return Fate::Obstacle(Obstacle::LocalData);
    }
    let is_managed = controller(pod).is_some() && !is_orphan;
    match is_managed || options.force {
        true => Fate::Evicted,
        false => Fate::Obstacle(Obstacle::Unmanaged),
    }
}

/// What is in the way, with the options that would let the drain go on; `None`: nothing.
pub fn refusal(obstacles: &[(PodName, Obstacle)]) -> Option<String> {
    let kinds: BTreeSet<Obstacle> = obstacles.iter().map(|(_, obstacle)| *obstacle).collect();
    let sentences: Vec<String> = kinds
        .into_iter()
        .map(|kind| {
            let pods = obstacles.iter().filter(|(_, obstacle)| *obstacle == kind);
            format!("{} {}", named(pods.map(|(pod, _)| pod.to_string())), kind.words())
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// The first few, and how many more there are.
pub fn named(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let first = all[..all.len().min(NAMED_MAX)].join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.owner_references().iter().find(|owner| owner.controller == Some(true))
}

fn has_local_data(pod: &Pod) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.into_iter().any(|volume| volume.empty_dir.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(part: Value) -> Pod {
        let mut object = json!({"metadata": {"namespace": "web", "name": "p"}});
        api_meta::patch::merge_patch(&mut object, &part).unwrap();
        serde_json::from_value(object).unwrap()
    }

    fn owned(kind: &str) -> Value {
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "1", "controller": true}]}})
    }

    fn options(input: Value) -> Options {
        Options::of(input.as_object().unwrap())
    }

    #[test]
    fn what_is_not_said_is_as_clients_expect() {
        let expected = Options {
            force: false,
            ignore_daemon_sets: true,
            delete_local_data: false,
            grace_seconds: None,
            timeout: Duration::from_secs(120),
        };
        assert_eq!(options(json!({})), expected);
        assert_eq!(options(json!({"gracePeriod": -1})).grace_seconds, None);
        assert_eq!(options(json!({"gracePeriod": 0})).grace_seconds, Some(0));
    }

    #[test]
    fn each_pod_has_the_fate_that_kubectl_gives_it() {
        let local = json!({"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}});
        let ended = json!({"status": {"phase": "Failed"}});
        let mirror = json!({"metadata": {"annotations": {MIRROR_POD: "x"}}});
        let mut daemon_with_data = owned("DaemonSet");
        api_meta::patch::merge_patch(&mut daemon_with_data, &local).unwrap();
        let mut replica_with_data = owned("ReplicaSet");
        api_meta::patch::merge_patch(&mut replica_with_data, &local).unwrap();
        let (none, all) = (
            json!({"ignoreDaemonSets": false}),
            json!({"ignoreDaemonSets": true, "force": true, "deleteLocalData": true}),
        );
        let cases = [
            (owned("ReplicaSet"), Fate::Evicted, Fate::Evicted),
            (owned("DaemonSet"), Fate::Obstacle(Obstacle::DaemonSet), Fate::Stays),
            (daemon_with_data, Fate::Obstacle(Obstacle::DaemonSet), Fate::Stays),
            (mirror, Fate::Stays, Fate::Stays),
            (replica_with_data, Fate::Obstacle(Obstacle::LocalData), Fate::Evicted),
            (local, Fate::Obstacle(Obstacle::LocalData), Fate::Evicted),
            (json!({}), Fate::Obstacle(Obstacle::Unmanaged), Fate::Evicted),
            (ended, Fate::Evicted, Fate::Evicted),
        ];
        for (part, without, with) in cases {
            let pod = pod(part.clone());
            let none_is_orphan = BTreeSet::new();
            assert_eq!(fate(&pod, &options(none.clone()), &none_is_orphan), without, "{part}");
            assert_eq!(fate(&pod, &options(all.clone()), &none_is_orphan), with, "{part}");
        }
    }

    #[test]
    fn a_pod_whose_daemon_set_is_no_more_needs_force() {
        let pod = pod(owned("DaemonSet"));
        let orphans = BTreeSet::from([PodName::of(&pod)]);
        assert_eq!(fate(&pod, &options(json!({})), &orphans), Fate::Obstacle(Obstacle::Unmanaged));
        assert_eq!(fate(&pod, &options(json!({"force": true})), &orphans), Fate::Evicted);
    }

    #[test]
    fn a_refusal_names_pods_and_the_option() {
        let pods: Vec<_> = (0..5)
            .map(|i| {
                (PodName { namespace: "web".into(), name: format!("p{i}") }, Obstacle::Unmanaged)
            })
            .collect();
        let text = refusal(&pods).unwrap();
        assert!(
            text.starts_with("web/p0, web/p1, web/p2 and 2 more would not be started"),
            "{text}"
        );
        assert_eq!(refusal(&[]), None);
    }
}
