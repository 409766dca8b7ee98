//! What a removal did and what it left, as kept after the cluster's object is gone.

use api_management::{Cluster, keys};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use kube::runtime::events::{Event, EventType};
use serde::Serialize;

use super::Patience;

/// Entries of each list that are kept; the rest is counted.
const ENTRIES_MAX: usize = 200;

/// Something that was removed downstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    pub kind: String,
    pub name: String,
}

impl Removed {
    /// A deleted object, by its kind and name.
    pub fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }
}

/// Something that was not removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// `downstream`, `management` or `provider`.
    pub cluster: String,
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    pub why: String,
}

impl Left {
    /// An object that was not removed. `cluster` is `downstream`, `management` or `provider`; `why`
    /// is for users.
    pub fn new(cluster: &str, kind: &str, namespace: &str, name: &str, why: &str) -> Self {
        let [cluster, kind, namespace, name, why] =
            [cluster, kind, namespace, name, why].map(str::to_owned);
        Self { cluster, kind, namespace, name, why }
    }
}

/// The report of one removal.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub cluster: String,
    pub display_name: String,
    pub deleted_at: String,
    pub finished_at: String,
    /// `remove`, or `detach`: what runs in the cluster stays as it is, also if we made the cluster.
    pub mode: &'static str,
    /// `complete`, `forced` or `deadline`.
    pub outcome: &'static str,
    pub removed: Vec<Removed>,
    pub left: Vec<Left>,
    /// When its driver was done with it, or was seen to be.
    #[serde(skip)]
    pub driver_done_at: Option<Timestamp>,
    #[serde(skip)]
    pub downstream_started: bool,
    #[serde(skip)]
    pub downstream_clean: bool,
}

impl Report {
    /// Notes what was removed, each thing once.
    pub fn note(&mut self, removed: Vec<Removed>) {
        for entry in removed {
            if self.removed.len() < ENTRIES_MAX && !self.removed.contains(&entry) {
                self.removed.push(entry);
            }
        }
    }

    pub(super) fn describe(
        &mut self,
        cluster: &Cluster,
        deleted_at: Timestamp,
        patience: Patience,
    ) {
        self.cluster = cluster.name_any();
        self.display_name = cluster.display_name().to_owned();
        self.deleted_at = deleted_at.to_string();
        self.finished_at = controller::status::now();
        self.mode = if cluster.is_detached() { "detach" } else { "remove" };
        self.outcome = match patience {
            _ if self.left.is_empty() => "complete",
            Patience::Forced => "forced",
            Patience::Wait | Patience::PastDeadline => "deadline",
        };
    }

    /// The same in one line, for those who look at events.
    pub fn to_event(&self) -> Event {
        let (removed, left) = (self.removed.len(), self.left.len());
        let note = format!(
            "{removed} objects of ours were removed from cluster \"{}\", {left} are left; \
             the report is ConfigMap \"{}\" in namespace \"{}\"",
            self.display_name,
            self.name(),
            keys::SYSTEM_NS,
        );
        let is_detached = self.mode == "detach";
        Event {
            type_: if self.left.is_empty() { EventType::Normal } else { EventType::Warning },
            reason: if is_detached { "Detached" } else { "Removed" }.to_owned(),
            note: Some(note),
            action: if is_detached { "Detach" } else { "Remove" }.to_owned(),
            secondary: None,
        }
    }

    fn name(&self) -> String {
        format!("removal-{}", self.cluster)
    }

    /// The report as it is stored, with a label for its cluster.
    pub fn to_config_map(&self) -> ConfigMap {
        let json = serde_json::to_string_pretty(self).expect("a report serialises");
        let labels = [(keys::CLUSTER_ID.to_owned(), self.cluster.clone())];
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name()),
                namespace: Some(keys::SYSTEM_NS.to_owned()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            data: Some([("report.json".to_owned(), json)].into()),
            ..ConfigMap::default()
        }
    }
}
