//! Keeps true: every namespace of a cluster has the Pod Security labels that its template gives,
//! and none of ours where no template holds.
//!
//! Labels are applied by server-side apply under a field manager of their own. So the namespace
//! itself says which are ours; what somebody else writes over them is not, and is written again.
//!
//! Runs once per connected cluster, not in `local`. Watches clusters, projects, templates and their
//! bindings in the management API, namespaces downstream. Acts downstream by impersonation of its
//! own identity, with a role that it makes when a template holds for the first time. Owns the
//! cluster's condition PodSecurityApplied and `status.appliedPodSecurityPolicyTemplateName`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{Cluster, NamespaceAssignment, keys};
use controller::error::is_code;
use controller::{
    Attempt, DownstreamController, DownstreamScope, Outcome, OwnedCondition, ReconcileError,
    Reflector, StatusPatch, StatusTarget, Whole,
};
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::policies::{ClusterPolicies, Labels, LevelDecision, Policies};
use crate::own_role::{INTERVAL, OwnRole};
use crate::project::namespaces::controller::Seen;
use crate::whole_cluster::{self, ClusterController, WholeCluster};
use crate::writes::{Write, all};

const CONTROLLER: &str = keys::OWNED_POD_SECURITY;
const APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "PodSecurityApplied");
/// The field of the cluster's status that says which PodSecurityPolicyTemplate holds by default.
const APPLIED_FIELD: &str = "appliedPodSecurityPolicyTemplateName";
/// The first minor version of Kubernetes 1 whose API servers enforce the labels.
const MINOR_MIN: u32 = 23;

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    Arc::new(PodSecurity {
        client,
        policies: Policies::new(reflectors),
        assignments: reflectors.get(),
    })
}

/// What the management API has.
#[derive(Clone)]
struct PodSecurity {
    client: Client,
    policies: Policies,
    assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl DownstreamController for PodSecurity {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(run(scope, self.clone()))
    }
}

async fn run(scope: DownstreamScope, management: PodSecurity) {
    let rules = vec![rule("", &["namespaces"], &["get", "patch"])];
    let role = OwnRole::new(CONTROLLER, &identity(), keys::OWNED_POD_SECURITY, rules);
    let PodSecurity { client, policies, assignments } = management.clone();
    let clusters = &policies.clusters;
    let levels = LevelsOfCluster {
        cluster: WholeCluster::new(&scope, clusters, &assignments, &identity(), role),
        minor: OnceCell::new(),
        management,
    };
    whole_cluster::run(levels, &scope, APPLIED, &client).await;
}

/// The Pod Security levels of one connected cluster.
struct LevelsOfCluster {
    cluster: WholeCluster,
    management: PodSecurity,
    /// Of its Kubernetes version.
    minor: OnceCell<u32>,
}

impl LevelsOfCluster {
    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let policies = &self.management.policies;
        tokio::join!(policies.synced(), self.management.assignments.synced());
        self.cluster.members.namespaces.try_synced().await?;
        let Some(policies) = policies.of_cluster(&self.cluster.name) else {
            return Ok(Outcome::Done);
        };
        // Removal takes the labels off; they must not be written again.
        if !self.cluster.role.is_staying() || !self.concerns(&policies) {
            return Ok(Outcome::Done);
        }
        self.cluster.role.apply().await?;
        let (changes, missing) = self.changes(&policies);
        let writes = changes.iter().map(|(name, labels)| self.write(name, labels));
        all(writes.collect()).await?;
        self.report(&policies).await?;
        if let Some(first) = missing.into_iter().next() {
            return Ok(Outcome::Terminal(format!("{first}; namespaces there stay as they are")));
        }
        if policies.is_any() && self.minor().await? < MINOR_MIN {
            let text = format!(
                "the cluster does not enforce Pod Security levels: that needs Kubernetes 1.{MINOR_MIN} \
                 or newer; update the cluster, or set no template"
            );
            return Ok(Outcome::Terminal(text));
        }
        Ok(Outcome::RequeueAfter(INTERVAL))
    }

    /// Whether a template holds anywhere in the cluster, or did.
    fn concerns(&self, policies: &ClusterPolicies) -> bool {
        let cluster = self.management.policies.clusters.named(&self.cluster.name);
        let namespaces = self.cluster.members.namespaces.all();
        let is_reported = |cluster: &Cluster| {
            !cluster.status.applied_pod_security_policy_template_name.is_empty()
        };
        policies.is_any()
            || cluster.is_some_and(|cluster| is_reported(&cluster))
            || namespaces.iter().any(|(_, seen)| !seen.pod_security.ours.is_empty())
    }

    /// The labels to apply, by namespace, and the templates that do not exist.
    fn changes(&self, policies: &ClusterPolicies) -> (BTreeMap<String, Labels>, BTreeSet<String>) {
        let members = &self.cluster.members;
        let mut projects: BTreeMap<String, String> = BTreeMap::new();
        for (project, namespaces) in members.by_project(&self.management.policies.projects) {
            projects.extend(namespaces.into_iter().map(|namespace| (namespace, project.clone())));
        }
        let (mut changes, mut missing) = (BTreeMap::new(), BTreeSet::new());
        for (key, seen) in members.namespaces.all() {
            let project = projects.get(&key.name).map(String::as_str);
            let labels = match policies.of(project, &key.name) {
                LevelDecision::Governed(governed) => governed.labels,
                LevelDecision::Free => Labels::new(),
                LevelDecision::Missing(text) => {
                    missing.insert(text);
                    continue;
                }
            };
            if !seen.terminating && !seen.pod_security.is(&labels) {
                changes.insert(key.name, labels);
            }
        }
        (changes, missing)
    }

    /// Makes these the labels of ours.
    fn write<'a>(&'a self, name: &'a str, labels: &'a Labels) -> Write<'a> {
        Box::pin(async move {
            let Some(seen) = self.cluster.members.namespaces.named(name) else { return Ok(()) };
            let patch = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name,
                // Another namespace of the name is not meant, nor is one to be created.
                "uid": seen.uid,
                "labels": labels,
            }});
            let options = PatchParams::apply(keys::POD_SECURITY_MANAGER).force();
            let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
            match namespaces.patch(name, &options, &Patch::Apply(&patch)).await {
                Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(()),
                written => written
                    .attempt(|| format!("write the Pod Security levels of namespace \"{name}\""))
                    .map(drop),
            }
        })
    }

    async fn minor(&self) -> Result<u32, ReconcileError> {
        let read = async || {
            let version = self.cluster.role.agent.apiserver_version().await;
            let version = version.attempt(|| "read the version of the cluster".to_owned())?;
            let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
            Ok(digits.parse().unwrap_or(u32::MAX))
        };
        self.minor.get_or_try_init(read).await.copied()
    }

    async fn report(&self, policies: &ClusterPolicies) -> Result<(), ReconcileError> {
        let target = StatusTarget::of::<Cluster>("", &self.cluster.name);
        let applied = policies.default_policy_template().map_or(Value::Null, Value::from);
        let patch = StatusPatch::new().field(APPLIED_FIELD, applied);
        patch.write(&self.management.client, &target).await.map(drop)
    }
}

impl ClusterController for LevelsOfCluster {
    const NAME: &'static str = CONTROLLER;

    fn cluster(&self) -> &WholeCluster {
        &self.cluster
    }
    fn watch(&self) {
        let PodSecurity { policies, assignments, .. } = &self.management;
        policies.follow(&self.cluster);
        self.cluster.follow_own(assignments);
        self.cluster.follow(&self.cluster.members.namespaces, Seen::is_same_for_levels);
    }
    fn reconcile(&self) -> BoxFuture<'_, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}

impl Policies {
    /// Reconciles a cluster again when a template holds there that did not, or another one.
    pub(crate) fn follow(&self, cluster: &WholeCluster) {
        cluster.follow_some(&self.clusters, |change, cluster| {
            change.key().name == cluster && change.differs(|old, new| old.spec == new.spec)
        });
        cluster.follow_own(&self.projects);
        cluster.follow_own(&self.bindings);
        cluster.follow_all(&self.templates);
        cluster.follow_all(&self.policy_templates);
    }
}

/// The Pod Security labels of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenLevels {
    pub labels: Labels,
    /// The keys of those that this controller applied and nobody changed since.
    pub ours: BTreeSet<String>,
}

impl SeenLevels {
    /// From the metadata of a namespace.
    pub fn of(metadata: &kube::api::ObjectMeta) -> Self {
        let labels = metadata.labels.iter().flatten();
        let labels = labels.filter(|(key, _)| key.starts_with(keys::POD_SECURITY_PREFIX));
        let entries = metadata.managed_fields.iter().flatten();
        let ours = entries.filter(|entry| {
            entry.manager.as_deref() == Some(keys::POD_SECURITY_MANAGER)
                && entry.operation.as_deref() == Some("Apply")
        });
        let fields = ours.filter_map(|entry| entry.fields_v1.as_ref());
        let applied = fields.filter_map(|fields| fields.0["f:metadata"]["f:labels"].as_object());
        let applied = applied.flat_map(|labels| labels.keys());
        Self {
            labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
            ours: applied.filter_map(|key| key.strip_prefix("f:")).map(str::to_owned).collect(),
        }
    }

    /// Whether these are all labels of ours, and the namespace has them.
    fn is(&self, labels: &Labels) -> bool {
        self.ours.iter().eq(labels.keys())
            && labels.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_somebody_else_wrote_over_is_not_ours_any_more() {
        let seen = |fields: Value, level: &str| {
            let metadata = json!({
                "labels": {"pod-security.kubernetes.io/enforce": level, "team": "a"},
                "managedFields": [
                    {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata":
                        {"f:labels": {"f:team": {}}}}},
                    {"manager": keys::POD_SECURITY_MANAGER, "operation": "Apply",
                        "fieldsV1": fields},
                ],
            });
            SeenLevels::of(&serde_json::from_value(metadata).unwrap())
        };
        let key = "pod-security.kubernetes.io/enforce".to_owned();
        let labels = Labels::from([(key.clone(), "baseline".to_owned())]);
        let own = json!({"f:metadata": {"f:labels": {"f:pod-security.kubernetes.io/enforce": {}}}});
        assert!(seen(own.clone(), "baseline").is(&labels));
        assert!(!seen(own.clone(), "privileged").is(&labels));
        assert!(!seen(json!({}), "baseline").is(&labels));
        assert!(!seen(own, "baseline").is(&Labels::new()), "one that holds no more is taken off");
        assert!(seen(json!({}), "baseline").is(&Labels::new()), "those of others stay");
    }
}
