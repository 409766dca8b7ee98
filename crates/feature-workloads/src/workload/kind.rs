//! The kinds of workloads, and where Kubernetes has them.

use rest_view::{Key, KubeResource};
use serde_json::Value;

/// A kind that the view shows in the flattened form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    Deployment,
    DaemonSet,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
    Job,
    CronJob,
    Pod,
}

impl WorkloadKind {
    pub const ALL: [Self; 8] = [
        Self::Deployment,
        Self::DaemonSet,
        Self::StatefulSet,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::Job,
        Self::CronJob,
        Self::Pod,
    ];
    /// Those that a `workload` is one of.
    pub const WORKLOADS: [Self; 7] = [
        Self::Deployment,
        Self::DaemonSet,
        Self::StatefulSet,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::Job,
        Self::CronJob,
    ];

    /// The type's id in the view.
    pub fn id(self) -> &'static str {
        self.names().0
    }
    /// The API group and version, plural and kind of the objects.
    fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Deployment => ("deployment", "apps", "deployments", "Deployment"),
            Self::DaemonSet => ("daemonSet", "apps", "daemonsets", "DaemonSet"),
            Self::StatefulSet => ("statefulSet", "apps", "statefulsets", "StatefulSet"),
            Self::ReplicaSet => ("replicaSet", "apps", "replicasets", "ReplicaSet"),
            Self::ReplicationController => {
                ("replicationController", "", "replicationcontrollers", "ReplicationController")
            }
            Self::Job => ("job", "batch", "jobs", "Job"),
            Self::CronJob => ("cronJob", "batch", "cronjobs", "CronJob"),
            Self::Pod => ("pod", "", "pods", "Pod"),
        }
    }
    /// The resource of Kubernetes that stores workloads of this kind.
    pub fn resource(self) -> KubeResource {
        let (_, group, plural, kind) = self.names();
        KubeResource::new(group, "v1", plural, kind, true)
    }
    /// Where in an object its pods' specification is; the template's metadata is beside it.
    pub fn pod_spec(self) -> &'static [&'static str] {
        match self {
            Self::Pod => &["spec"],
            Self::CronJob => &["spec", "jobTemplate", "spec", "template", "spec"],
            _ => &["spec", "template", "spec"],
        }
    }
    /// The field that says what is particular to the kind, and on creation that it is this kind.
    pub fn config_field(self) -> String {
        format!("{}Config", self.id())
    }
    /// The kind that the first part of an id names, in any case of letters.
    pub fn of_prefix(prefix: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id().eq_ignore_ascii_case(prefix))
    }
    /// The kind of a stored object.
    pub fn of_object(object: &Value) -> Option<Self> {
        let kind = object.get("kind").and_then(Value::as_str)?;
        Self::ALL.into_iter().find(|known| known.names().3 == kind)
    }
    /// `deployment:default:web`; pods are `default:web-x`.
    pub fn id_of(self, key: &Key) -> String {
        match self {
            Self::Pod => format!("{}:{}", key.namespace, key.name),
            _ => format!("{}:{}:{}", self.id().to_lowercase(), key.namespace, key.name),
        }
    }
    /// Takes an id apart. Without a kind in front it is one of `self`.
    pub fn key_of(self, id: &str) -> Option<(Self, Key)> {
        let parts: Vec<&str> = id.split(':').collect();
        let (kind, namespace, name) = match parts[..] {
            [namespace, name] => (self, namespace, name),
            [prefix, namespace, name] => (Self::of_prefix(prefix)?, namespace, name),
            _ => return None,
        };
        let is_segment = |text: &str| {
            !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%'])
        };
        if !is_segment(namespace) || !is_segment(name) {
            return None;
        }
        Some((kind, Key { namespace: namespace.to_owned(), name: name.to_owned() }))
    }
}
