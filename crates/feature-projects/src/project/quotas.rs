//! Keeps true: in every namespace of a project with a quota, a ResourceQuota has what the namespace
//! was given of it; in every namespace of a project with limits for containers, a LimitRange has
//! them; no other object with this label is in the cluster.
//!
//! A namespace requests its part by the annotation `field.cattle.io/resourceQuota`; one without it
//! gets the default of the project, which is written there ([`request`]). [`allocation`] decides
//! what each gets, [`objects`] is how that looks in the cluster. What came of it is a condition in
//! the namespace's annotation `cattle.io/status` and, as the sum, in the project's status.
//! [`check`] refuses requests through Drover that do not fit, [`validation`] quotas that are wrong.
//!
//! Runs once per connected cluster, not in `local`, whose namespaces hold the server's own data.
//! Watches projects and assignments of namespaces in the management API; namespaces and what it
//! made downstream, so that changes made there are reverted. All of it is owned by our downstream
//! namespace. Acts downstream by impersonation of its own identity, with a role that it makes when
//! the first project of the cluster has a quota or limits. Owns the cluster's condition
//! ProjectQuotasApplied.

pub(crate) mod allocation;
pub(crate) mod check;
mod objects;
pub(crate) mod request;
pub(crate) mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use api_management::{Cluster, NamespaceAssignment, Project, keys};
use controller::error::is_code;
use controller::{
    Attempt, DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition, ReconcileError,
    Reflector, StatusPatch, StatusTarget, Whole,
};
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{ours, rule};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use self::allocation::{Quantities, QuotaShare, Request, share};
use self::objects::{WrittenLimits, WrittenQuota, held, limit_range, project_of, resource_quota};
use self::request::{ProjectLimits, quota_annotation, with_condition};
use super::namespaces::controller::Seen;
use super::namespaces::step::Claim;
use crate::own_role::{INTERVAL, OwnRole};
use crate::whole_cluster::{self, ClusterController, WholeCluster, owned_label};
use crate::writes::{Write, all, delete_others, namespace_of, put};

const CONTROLLER: &str = "project-quotas";
const APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "ProjectQuotasApplied");

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![
        ours(&["clusters", "projects"], &["get"]),
        ours(&["clusters/status", "projects/status"], &["patch"]),
    ];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    Arc::new(ProjectQuotas {
        client,
        clusters: reflectors.get(),
        projects: reflectors.get(),
        assignments: reflectors.get(),
    })
}

/// What the management API has.
#[derive(Clone)]
struct ProjectQuotas {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    projects: Arc<Reflector<Whole<Project>>>,
    assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
}

impl DownstreamController for ProjectQuotas {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(run(scope, self.clone()))
    }
}

async fn run(scope: DownstreamScope, management: ProjectQuotas) {
    let verbs = ["get", "list", "watch", "create", "update", "delete"];
    let rules = vec![
        rule("", &["resourcequotas", "limitranges"], &verbs),
        rule("", &["namespaces"], &["patch"]),
    ];
    let role = OwnRole::new(CONTROLLER, &identity(), keys::OWNED_PROJECT_QUOTA, rules);
    let ProjectQuotas { client, clusters, assignments, .. } = management.clone();
    let quotas = QuotasOfCluster {
        cluster: WholeCluster::new(&scope, &clusters, &assignments, &identity(), role),
        made: OnceLock::new(),
        given: Mutex::default(),
        management,
    };
    whole_cluster::run(quotas, &scope, APPLIED, &client).await;
}

/// The quotas and limits of all projects of one connected cluster.
struct QuotasOfCluster {
    cluster: WholeCluster,
    management: ProjectQuotas,
    /// Only this controller may watch it, once its role is there.
    made: OnceLock<Made>,
    /// What was given last, by project and namespace: a quota may be deleted in the cluster.
    given: Mutex<BTreeMap<(String, String), Quantities>>,
}

/// What this controller made in the cluster.
struct Made {
    quotas: Arc<Reflector<WrittenQuota>>,
    limits: Arc<Reflector<WrittenLimits>>,
}

/// What is to be in the cluster.
#[derive(Default)]
struct Desired {
    quotas: Vec<ResourceQuota>,
    limits: Vec<LimitRange>,
    /// By namespace: the annotations to write, and those to remove with null.
    annotations: BTreeMap<String, Map<String, Value>>,
    /// By project: the sum of what its namespaces were given.
    used: BTreeMap<String, Quantities>,
}

impl QuotasOfCluster {
    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let label = owned_label(keys::OWNED_PROJECT_QUOTA);
            let reflectors = self.cluster.reflectors();
            let made =
                Made { quotas: reflectors.selected(&label), limits: reflectors.selected(&label) };
            self.cluster.follow(&made.quotas, PartialEq::eq);
            self.cluster.follow(&made.limits, PartialEq::eq);
            made
        })
    }

    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let ProjectQuotas { clusters, projects, assignments, .. } = &self.management;
        tokio::join!(clusters.synced(), projects.synced(), assignments.synced());
        self.cluster.members.namespaces.try_synced().await?;
        // Removal deletes what is made; it must not be created again.
        if !self.cluster.role.is_staying() || !self.concerns().await? {
            return Ok(Outcome::Done);
        }
        self.cluster.role.apply().await?;
        tokio::try_join!(self.made().quotas.try_synced(), self.made().limits.try_synced())?;
        let desired = self.desired();
        self.put(&desired).await?;
        self.report_used(&desired).await?;
        Ok(Outcome::RequeueAfter(INTERVAL))
    }

    /// Whether the cluster has, or had, anything of a quota. What it had is known by the role.
    async fn concerns(&self) -> Result<bool, ReconcileError> {
        let projects = self.management.projects.in_namespace(&self.cluster.name);
        let has_limits = |project: &Project| !ProjectLimits::of(project).is_empty();
        if self.made.get().is_some() || projects.iter().any(|(_, project)| has_limits(project)) {
            return Ok(true);
        }
        self.cluster.role.was_used().await
    }

    fn desired(&self) -> Desired {
        let mut desired = Desired::default();
        let projects = &self.management.projects;
        let mut of_projects = self.cluster.members.by_project(projects);
        self.forget_others(&of_projects);
        // What another product says of namespaces that it manages stays.
        let is_ours = |seen: &Seen| {
            !matches!(Claim::of(seen.project.as_deref(), &self.cluster.name), Claim::Foreign)
        };
        let all =
            self.cluster.members.namespaces.all().into_iter().filter(|(_, seen)| is_ours(seen));
        let mut without: BTreeSet<String> = all.map(|(key, _)| key.name).collect();
        for (key, project) in projects.in_namespace(&self.cluster.name) {
            let namespaces = of_projects.remove(&key.name).unwrap_or_default();
            let limits = ProjectLimits::of(&project);
            if !limits.total.is_empty() {
                without.retain(|namespace| !namespaces.contains(namespace));
            }
            self.add_project(&mut desired, &key.name, &limits, &namespaces);
        }
        for namespace in without {
            self.annotate(&mut desired, &namespace, None);
        }
        desired
    }

    fn add_project(
        &self,
        desired: &mut Desired,
        project: &str,
        limits: &ProjectLimits,
        namespaces: &BTreeSet<String>,
    ) {
        let seen =
            |name: &String| Some((name.clone(), self.cluster.members.namespaces.named(name)?));
        let namespaces: BTreeMap<String, Arc<Seen>> = namespaces.iter().filter_map(seen).collect();
        for (name, namespace) in &namespaces {
            let of_containers = limits.of_containers(namespace.container_limits.as_deref());
            desired.limits.extend(limit_range(name, &of_containers));
        }
        if limits.total.is_empty() {
            desired.used.insert(project.to_owned(), Quantities::new());
            return;
        }
        let requests = namespaces.iter().map(|(name, namespace)| Request {
            namespace: name.clone(),
            created: namespace.created,
            limit: limits.requested(namespace.quota.as_deref()),
            held: self.held(project, name),
        });
        let (grants, used) = share(&limits.total, &limits.namespace_default, requests.collect());
        desired.used.insert(project.to_owned(), used);
        for (name, grant) in grants {
            desired.quotas.push(resource_quota(project, &name, &grant.limit));
            self.annotate(desired, &name, Some((&grant, limits)));
            self.given.lock().insert((project.to_owned(), name), grant.limit);
        }
    }

    /// What a namespace has of the quota of this project.
    fn held(&self, project: &str, namespace: &str) -> Quantities {
        let present = self.made().quotas.get(&Key::namespaced(namespace, objects::NAME));
        match present.filter(|quota| project_of(quota) == Some(project)) {
            Some(quota) => held(&quota),
            None => {
                let key = (project.to_owned(), namespace.to_owned());
                self.given.lock().get(&key).cloned().unwrap_or_default()
            }
        }
    }

    /// Forgets what namespaces had that left their project, or are gone.
    fn forget_others(&self, of_projects: &BTreeMap<String, BTreeSet<String>>) {
        self.given.lock().retain(|(project, namespace), _| {
            of_projects.get(project).is_some_and(|namespaces| namespaces.contains(namespace))
        });
    }

    /// The annotations of a namespace that say what came of its request; without a grant, that
    /// nothing did.
    fn annotate(
        &self,
        desired: &mut Desired,
        name: &str,
        given: Option<(&QuotaShare, &ProjectLimits)>,
    ) {
        let Some(namespace) = self.cluster.members.namespaces.named(name) else { return };
        let mut annotations = Map::new();
        if let Some((_, limits)) = given.filter(|_| namespace.quota.is_none()) {
            let default = quota_annotation(&limits.requested(None));
            annotations.insert(keys::RESOURCE_QUOTA.to_owned(), default.into());
        }
        let excess = given.map(|(grant, _)| grant.excess.as_str());
        let status =
            with_condition(namespace.status.as_deref(), excess, &controller::status::now());
        annotations.extend(status.map(|status| (keys::STATUS.to_owned(), status.into())));
        if !annotations.is_empty() {
            desired.annotations.insert(name.to_owned(), annotations);
        }
    }

    /// Takes away first, so that a project does not have more than its limit meanwhile.
    async fn put(&self, desired: &Desired) -> Result<(), ReconcileError> {
        let owner = our_namespace(&self.cluster.role.agent).await?;
        let made = self.made();
        let never = |_: &Key| false;
        let quotas_in = |namespace: &str| Api::namespaced(self.cluster.client.clone(), namespace);
        delete_others(&made.quotas, &desired.quotas, &quotas_in, &never).await?;
        let ranges_in = |namespace: &str| Api::namespaced(self.cluster.client.clone(), namespace);
        delete_others(&made.limits, &desired.limits, &ranges_in, &never).await?;
        let (more, less): (Vec<&ResourceQuota>, Vec<&ResourceQuota>) =
            desired.quotas.iter().partition(|quota| self.grows(quota));
        for quotas in [less, more] {
            let writes = quotas.into_iter().map(|quota| -> Write<'_> {
                let is_same = |known: &ResourceQuota| {
                    known.spec == quota.spec && project_of(known) == project_of(quota)
                };
                Box::pin(put(quotas_in(&namespace_of(quota)), quota, &made.quotas, &owner, is_same))
            });
            all(writes.collect()).await?;
        }
        let writes = desired.limits.iter().map(|range| -> Write<'_> {
            let is_same = |known: &LimitRange| known.spec == range.spec;
            Box::pin(put(ranges_in(&namespace_of(range)), range, &made.limits, &owner, is_same))
        });
        all(writes.collect()).await?;
        let annotations = desired.annotations.iter();
        all(annotations.map(|(name, all)| self.write_annotations(name, all)).collect()).await
    }

    fn grows(&self, quota: &ResourceQuota) -> bool {
        let before = self.made().quotas.get(&Key::of(quota)).map(|known| held(&known));
        let before = before.unwrap_or_default();
        held(quota).iter().any(|(name, amount)| before.get(name).is_none_or(|old| amount > old))
    }

    fn write_annotations<'a>(
        &'a self,
        name: &'a str,
        annotations: &'a Map<String, Value>,
    ) -> Write<'a> {
        Box::pin(async move {
            let Some(namespace) = self.cluster.members.namespaces.named(name) else {
                return Ok(());
            };
            let patch = json!({"metadata": {
                // Of the version that was looked at: what came since is looked at first.
                "resourceVersion": namespace.version,
                "annotations": annotations,
            }});
            let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
            let patch = Patch::Merge(&patch);
            match namespaces.patch_metadata(name, &PatchParams::default(), &patch).await {
                // A watch says so in a moment.
                Err(error) if is_code(&error, 404) || is_code(&error, 409) => Ok(()),
                written => {
                    written.attempt(|| format!("write the quota of namespace \"{name}\"")).map(drop)
                }
            }
        })
    }

    async fn report_used(&self, desired: &Desired) -> Result<(), ReconcileError> {
        for (name, used) in &desired.used {
            let key = Key::namespaced(&self.cluster.name, name);
            let Some(project) = self.management.projects.get(&key) else { continue };
            let used: BTreeMap<String, String> =
                used.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect();
            if project.status.used_limit == used {
                continue;
            }
            let value = if used.is_empty() { Value::Null } else { json!(used) };
            let target = StatusTarget::of::<Project>(&self.cluster.name, name);
            let patch = StatusPatch::new().field("usedLimit", value);
            let uid = json!(project.metadata.uid);
            let is_same = |stored: &Value| stored["metadata"]["uid"] == uid;
            match patch.write_if(&self.management.client, &target, is_same).await {
                Err(ReconcileError::Api { source, .. }) if is_code(&source, 404) => {}
                done => drop(done?),
            }
        }
        Ok(())
    }
}

impl ClusterController for QuotasOfCluster {
    const NAME: &'static str = CONTROLLER;

    fn cluster(&self) -> &WholeCluster {
        &self.cluster
    }
    fn watch(&self) {
        self.cluster.follow_own(&self.management.projects);
        self.cluster.follow_own(&self.management.assignments);
        self.cluster.follow_all(&self.cluster.members.namespaces);
    }
    fn reconcile(&self) -> BoxFuture<'_, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}
