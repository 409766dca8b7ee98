//! How the indexes of `/v1` read the kinds of clusters: as an identity of their own, with a
//! ClusterRole in each cluster that names each kind that is read, and nothing else.
//!
//! Whoever may change the cluster in the management API excludes kinds by its annotation
//! [`keys::UNINDEXED_KINDS`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_management::{Cluster, PolicyRule, ids, keys};
use controller::scope::impersonate;
use controller::{ReconcileError, Reflector, Whole, ensure};
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{role_ref, rule, subject, to_kube};
use feature_kit::{ClusterConnections, ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use http::HeaderValue;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kind_view::ClusterReader;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;
use rest_view::KubeResource;

use crate::connections::Connections;

const NAME: &str = "kind-index";
/// Kinds that are never read, by group and resource: values of Secrets have no place in an index,
/// and events say how long ago they were.
const NEVER: [(&str, &str); 3] = [("", "secrets"), ("", "events"), ("events.k8s.io", "events")];

/// The identity of the indexes. It has no rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(NAME, Vec::new())
}

/// See the module.
pub struct IndexReader {
    clusters: Arc<Reflector<Whole<Cluster>>>,
    connections: Arc<Connections>,
    user: HeaderValue,
    /// The kinds that are read, by cluster. Locked while a role is written, so that the last one
    /// written has all of them.
    kinds: Mutex<HashMap<String, Arc<tokio::sync::Mutex<ReadKinds>>>>,
}

/// Groups and resources.
type ReadKinds = BTreeSet<(String, String)>;

impl IndexReader {
    /// A reader that writes nothing before a kind is read. Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext, connections: Arc<Connections>) -> Self {
        let user = HeaderValue::from_str(&identity().user()).expect("a name without line ends");
        let clusters = context.scope.reflectors.get();
        Self { clusters, connections, user, kinds: Mutex::default() }
    }

    async fn allow(
        &self,
        cluster: &str,
        resource: &KubeResource,
    ) -> Result<Client, ReconcileError> {
        let Some(agent) = self.connections.client(cluster) else {
            return Err(ReconcileError::other("read a kind", "the cluster is disconnected"));
        };
        let kinds = self.kinds.lock().entry(cluster.to_owned()).or_default().clone();
        let mut kinds = kinds.lock().await;
        kinds.insert((resource.group.clone(), resource.plural.clone()));
        let owner = our_namespace(&agent).await?;
        let (role, binding) = objects(&kinds, owner);
        ensure::like(&Api::all(agent.clone()), &role).await?;
        ensure::like(&Api::all(agent.clone()), &binding).await?;
        Ok(impersonate(&agent, &self.user))
    }
}

impl ClusterReader for IndexReader {
    fn client<'a>(
        &'a self,
        cluster: &'a str,
        resource: &'a KubeResource,
    ) -> BoxFuture<'a, Result<Client, String>> {
        Box::pin(async { self.allow(cluster, resource).await.map_err(|error| error.to_string()) })
    }

    fn may_read(&self, cluster: &str, resource: &KubeResource) -> bool {
        let own = (resource.group.as_str(), resource.plural.as_str());
        if cluster == ids::LOCAL_CLUSTER || NEVER.contains(&own) {
            return false;
        }
        let Some(stored) = self.clusters.named(cluster) else { return false };
        stored.metadata.deletion_timestamp.is_none()
            && !is_excluded(&stored, resource)
            && self.connections.client(cluster).is_some()
    }
}

fn is_excluded(cluster: &Cluster, resource: &KubeResource) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    let excluded = annotations.and_then(|all| all.get(keys::UNINDEXED_KINDS));
    let name = match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    };
    excluded
        .is_some_and(|text| text.split(',').any(|kind| [name.as_str(), "*"].contains(&kind.trim())))
}

fn objects(
    kinds: &ReadKinds,
    owner: k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
) -> (ClusterRole, ClusterRoleBinding) {
    let name = format!("drover:{NAME}");
    let labels = [(keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_KIND_INDEX.to_owned())];
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        labels: Some(labels.into()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let rules = kinds
        .iter()
        .map(|(group, plural)| -> PolicyRule { rule(group, &[plural], &["list", "watch"]) });
    let role = ClusterRole {
        metadata: metadata.clone(),
        rules: Some(rules.map(|rule| to_kube(&rule)).collect()),
        aggregation_rule: None,
    };
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", &name),
        subjects: Some(vec![subject("User", &identity().user())]),
    };
    (role, binding)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_cluster_excludes_kinds_by_name() {
        let mut cluster = Cluster::default();
        let widgets = KubeResource::new("example.io", "v1", "widgets", "Widget", true);
        let pods = KubeResource::new("", "v1", "pods", "Pod", true);
        let mut excluded = |text: &str| {
            let annotation = (keys::UNINDEXED_KINDS.to_owned(), text.to_owned());
            cluster.metadata.annotations = Some(BTreeMap::from([annotation]));
            [&widgets, &pods].map(|kind| is_excluded(&cluster, kind))
        };
        assert_eq!(excluded("widgets.example.io, nodes"), [true, false]);
        assert_eq!(excluded("pods"), [false, true]);
        assert_eq!(excluded("widgets"), [false, false]);
        assert_eq!(excluded("*"), [true, true]);
        assert_eq!(excluded(""), [false, false]);
    }
}
