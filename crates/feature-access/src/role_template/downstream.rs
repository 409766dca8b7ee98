//! Keeps true: every role template that somebody has in a cluster, or in a project of it, is one
//! ClusterRole there. Those of the cluster are bound to the group of their members. What a role in
//! a project needs cluster-wide is a second ClusterRole, bound to the group of all who have the
//! role in any project of the cluster. No other role or binding with this label is there.
//!
//! Roles are bound in the namespaces of projects by `feature-projects` (`project/roles.rs`).
//!
//! Runs once per connected cluster. Watches role templates, projects and bindings in the management
//! API, and our labelled roles and bindings downstream, so that changes made there are reverted.
//! All of it is owned by our downstream namespace. Owns the cluster's condition RolesApplied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{Cluster, ClusterRoleTemplateBinding, PolicyRule, RoleTemplate, keys};
use controller::{
    ConditionReport, DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition,
    Reconcile, ReconcileError, Reflector, Runner, StatusTarget, Whole, WithCondition, ensure,
};
use feature_kit::access::{cluster_group, projects_group};
use feature_kit::ownership::{is_owned_by, our_namespace};
use feature_kit::rbac::{ensure_binding, ours, role_ref, rule, subject, to_kube};
use feature_kit::roles::{
    CLUSTER_ROLE_PREFIX, ProjectBindings, cluster_role_name, creates_namespaces, promoted,
};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

use super::{by_name, rules, with_inherited};

/// Value of the label `drover.io/owned` on our roles and bindings.
const OWNED_ROLE: &str = "role";
/// Prefix of the names of roles with what members of projects need cluster-wide.
const PROJECTS_PREFIX: &str = "drover:projects:";
/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(50);
const CONTROLLER: &str = "downstream-roles";
const ROLES_APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "RolesApplied");

/// What a user can do when the cluster rejects a role.
const NEXT_STEP: &str = "Drover tries again; check what rejects it in the cluster, an admission \
    webhook or policy, or apply the import manifest again to restore the rights of the agent";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    Arc::new(DownstreamRoles {
        client,
        clusters: context.scope.reflectors.get(),
        bindings: context.scope.reflectors.get(),
        in_projects: ProjectBindings::new(&context.scope.reflectors),
        templates: context.scope.reflectors.get(),
    })
}

/// What the management API has.
#[derive(Clone)]
struct DownstreamRoles {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    in_projects: ProjectBindings,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
}

impl DownstreamController for DownstreamRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(run(scope, self.clone()))
    }
}

async fn run(scope: DownstreamScope, management: DownstreamRoles) {
    let selector = format!("{}={OWNED_ROLE}", keys::DOWNSTREAM_OWNED);
    let roles = ClusterRoles {
        cluster: scope.cluster.clone(),
        client: scope.client.clone(),
        management: management.clone(),
        roles: scope.reflectors.selected(&selector),
        bindings: scope.reflectors.selected(&selector),
    };
    let (present_roles, present_bindings) = (roles.roles.clone(), roles.bindings.clone());
    let report = ConditionReport {
        condition: ROLES_APPLIED,
        client: management.client.clone(),
        target: StatusTarget::of::<Cluster>("", &scope.cluster),
        next_step: NEXT_STEP.to_owned(),
    };
    let runner = Runner::new(Arc::new(WithCondition::new(roles, report)));
    let key = Key::cluster_scoped(&scope.cluster);
    let of_cluster = key.clone();
    runner.watch_bursts(&management.bindings, DEBOUNCE, move |change| {
        (change.key().namespace == of_cluster.name).then(|| of_cluster.clone())
    });
    let of_cluster = key.clone();
    runner.watch_bursts(&management.in_projects.projects, DEBOUNCE, move |change| {
        (change.key().namespace == of_cluster.name).then(|| of_cluster.clone())
    });
    let of_cluster = key.clone();
    runner.watch_bursts(&management.in_projects.bindings, DEBOUNCE, move |change| {
        let cluster = change.object().project().map(|(cluster, _)| cluster);
        (cluster == Some(&of_cluster.name)).then(|| of_cluster.clone())
    });
    let always = key.clone();
    runner.watch_bursts(&management.templates, DEBOUNCE, move |_| [always.clone()]);
    let always = key.clone();
    runner.watch_bursts(&present_roles, DEBOUNCE, move |_| [always.clone()]);
    let always = key.clone();
    runner.watch_bursts(&present_bindings, DEBOUNCE, move |_| [always.clone()]);
    runner.queue().add(key);
    runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
}

/// The roles of one connected cluster. Its one key is the cluster's.
struct ClusterRoles {
    cluster: String,
    /// Acts in the cluster with the rights of the agent.
    client: Client,
    management: DownstreamRoles,
    roles: Arc<Reflector<Whole<ClusterRole>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleBinding>>>,
}

impl ClusterRoles {
    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let DownstreamRoles { clusters, bindings, in_projects, templates, .. } = &self.management;
        tokio::join!(
            clusters.synced(),
            bindings.synced(),
            in_projects.synced(),
            templates.synced()
        );
        tokio::try_join!(self.roles.try_synced(), self.bindings.try_synced())?;
        // Removal deletes the roles; they must not be created again.
        let cluster = clusters.named(&self.cluster);
        if cluster.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
            return Ok(Outcome::Done);
        }
        let in_cluster = bindings.in_namespace(&self.cluster);
        let used = UsedRoles {
            in_cluster: in_cluster
                .into_iter()
                .map(|(_, binding)| binding.role_template_name.clone())
                .collect(),
            in_projects: in_projects.roles_in_projects_of(&self.cluster),
        };
        let desired = desired(&self.cluster, &used, &by_name(templates));
        put(&self.client, &desired, &self.roles, &self.bindings).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for ClusterRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}

/// The role templates that are used in a cluster, without those that they inherit.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedRoles {
    pub in_cluster: BTreeSet<String>,
    pub in_projects: BTreeSet<String>,
}

/// The objects in a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct DownstreamObjects {
    pub roles: Vec<ClusterRole>,
    pub bindings: Vec<ClusterRoleBinding>,
}

/// What is to be in a cluster where these role templates are used. Pure.
///
/// The owner role is always there: administrators use it without a binding.
pub(crate) fn desired(
    cluster: &str,
    used: &UsedRoles,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> DownstreamObjects {
    let in_cluster = used.in_cluster.iter().cloned().chain([CLUSTER_OWNER.to_owned()]);
    let in_cluster = with_inherited(in_cluster, known);
    let in_projects = with_inherited(used.in_projects.iter().cloned(), known);
    let mut objects = DownstreamObjects::default();
    for (name, template) in &in_cluster {
        let bound = cluster_role_name(name, template);
        let name_of_binding = format!("{CLUSTER_ROLE_PREFIX}{name}");
        let group = cluster_group(cluster, name);
        objects.bindings.push(binding(metadata(name_of_binding, name), &bound, &group));
    }
    let all: BTreeMap<&str, &RoleTemplate> =
        in_cluster.into_iter().chain(in_projects.clone()).collect();
    for (name, template) in all.into_iter().filter(|(_, template)| !template.external) {
        let metadata = metadata(cluster_role_name(name, template), name);
        objects.roles.push(role(metadata, &rules::downstream(template)));
    }
    for (name, template) in in_projects {
        let rules = beyond_namespaces(template);
        if !rules.is_empty() {
            let metadata = metadata(format!("{PROJECTS_PREFIX}{name}"), name);
            let bound = metadata.name.clone().unwrap_or_default();
            let group = projects_group(cluster, name);
            objects.roles.push(role(metadata.clone(), &rules));
            objects.bindings.push(binding(metadata, &bound, &group));
        }
    }
    objects
}

/// What a role in a project gives outside the namespaces of the project. Which project a new
/// namespace may be in is checked before (`feature-projects`, `namespaces/check.rs`).
fn beyond_namespaces(template: &RoleTemplate) -> Vec<PolicyRule> {
    let mut rules = promoted(template);
    if creates_namespaces(template) {
        rules.push(rule("", &["namespaces"], &["create"]));
    }
    rules
}

fn metadata(name: String, role: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some([(keys::DOWNSTREAM_OWNED.to_owned(), OWNED_ROLE.to_owned())].into()),
        annotations: Some([(keys::CLUSTER_ROLE_OWNER.to_owned(), role.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

fn role(metadata: ObjectMeta, rules: &[PolicyRule]) -> ClusterRole {
    let rules = Some(rules.iter().map(to_kube).collect());
    ClusterRole { metadata, rules, aggregation_rule: None }
}

fn binding(metadata: ObjectMeta, role: &str, group: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![subject("Group", group)]),
    }
}

async fn put(
    client: &Client,
    desired: &DownstreamObjects,
    present_roles: &Reflector<Whole<ClusterRole>>,
    present_bindings: &Reflector<Whole<ClusterRoleBinding>>,
) -> Result<(), ReconcileError> {
    let owner = our_namespace(client).await?;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for role in &desired.roles {
        let mut role = role.clone();
        role.metadata.owner_references = Some(vec![owner.clone()]);
        let known = present_roles.named(&role.name_any());
        if known.is_none_or(|known| {
            known.rules != role.rules || !is_owned_by(&known.metadata, Some(&owner.uid))
        }) {
            ensure::like(&roles, &role).await?;
        }
    }
    for binding in &desired.bindings {
        let mut binding = binding.clone();
        binding.metadata.owner_references = Some(vec![owner.clone()]);
        let known = present_bindings.named(&binding.name_any());
        let same = |known: &ClusterRoleBinding| {
            known.role_ref == binding.role_ref
                && known.subjects == binding.subjects
                && is_owned_by(&known.metadata, Some(&owner.uid))
        };
        if known.as_deref().is_none_or(|known| !same(known)) {
            ensure_binding(&bindings, &binding, known.as_deref()).await?;
        }
    }
    let names: BTreeSet<String> = desired.bindings.iter().map(ResourceExt::name_any).collect();
    for (key, _) in present_bindings.all().iter().filter(|(key, _)| !names.contains(&key.name)) {
        ensure::absent(&bindings, &key.name).await?;
    }
    let names: BTreeSet<String> = desired.roles.iter().map(ResourceExt::name_any).collect();
    for (key, _) in present_roles.all().iter().filter(|(key, _)| !names.contains(&key.name)) {
        ensure::absent(&roles, &key.name).await?;
    }
    Ok(())
}
