//! Keeps true: in every namespace of a project, each role that is used in the project is bound to
//! the group of its members, and the members may see the namespaces of their project; no other
//! binding or role with this label is in the cluster.
//!
//! For each (namespace, role in use): a RoleBinding to the ClusterRole of the role, which
//! `feature-access` makes (`role_template/downstream.rs`). For each project with namespaces: a
//! ClusterRole that names them, bound to the groups of all roles in use, and one to change and
//! delete them, bound to the groups of the roles that create namespaces. The number of objects does
//! not depend on the number of users. Service accounts do not come through Drover, so those that
//! have a role are subjects themselves. A namespace whose Pod Security labels are yet to be written
//! ([`crate::pod_security`]) has no bindings before: its first pod meets the level.
//!
//! Runs once per connected cluster. Watches projects, their bindings, role templates and
//! assignments of namespaces in the management API; namespaces and what it made downstream, so that
//! changes made there are reverted. All of it is owned by our downstream namespace. Writes
//! RoleBindings by impersonation of its own identity. Owns the cluster's condition
//! ProjectRolesApplied.
//!
//! Not in the cluster `local`, the management API itself: its namespaces hold the server's own
//! data, and only administrators write there. A role in a project of `local` gives what it gives in
//! the management API.

mod objects;

use std::sync::{Arc, OnceLock};

use api_management::{Cluster, NamespaceAssignment, RoleTemplate, keys};
use controller::ensure;
use controller::{
    DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition, Projection,
    ReconcileError, Reflector, Whole,
};
use feature_kit::ownership::{is_owned_by, our_namespace};
use feature_kit::rbac::{RbacBinding, ensure_binding, ours, rule};
use feature_kit::roles::{ProjectBindings, by_name};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, ResourceExt};

use crate::own_role::{INTERVAL, OwnRole};
use crate::pod_security::policies::{LevelDecision, Policies};
use crate::whole_cluster::{self, ClusterController, WholeCluster, owned_label};
use crate::writes::{Write, all, delete_others};

pub(crate) use objects::{ProjectRoleObjects, ProjectUse, add_project};

const CONTROLLER: &str = "project-roles";
const APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "ProjectRolesApplied");
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    let reflectors = &context.scope.reflectors;
    Arc::new(ProjectRoles {
        client,
        clusters: reflectors.get(),
        in_projects: ProjectBindings::new(reflectors),
        templates: reflectors.get(),
        assignments: reflectors.get(),
        policies: Policies::new(reflectors),
    })
}

/// What the management API has.
#[derive(Clone)]
struct ProjectRoles {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    in_projects: ProjectBindings,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
    assignments: Arc<Reflector<Whole<NamespaceAssignment>>>,
    policies: Policies,
}

impl DownstreamController for ProjectRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        Box::pin(run(scope, self.clone()))
    }
}

async fn run(scope: DownstreamScope, management: ProjectRoles) {
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let rules = vec![
        rule(RBAC_GROUP, &["rolebindings"], &verbs),
        // Roles are given that the controller itself does not have.
        rule(RBAC_GROUP, &["clusterroles"], &["bind"]),
    ];
    let role = OwnRole::new(CONTROLLER, &identity(), keys::OWNED_PROJECT_ROLE, rules);
    let label = owned_label(keys::OWNED_PROJECT_ROLE);
    let ProjectRoles { client, clusters, assignments, .. } = management.clone();
    let roles = RolesOfProjects {
        cluster: WholeCluster::new(&scope, &clusters, &assignments, &identity(), role),
        roles: scope.reflectors.selected(&label),
        cluster_bindings: scope.reflectors.selected(&label),
        bindings: OnceLock::new(),
        management,
    };
    whole_cluster::run(roles, &scope, APPLIED, &client).await;
}

/// The roles of all projects of one connected cluster.
struct RolesOfProjects {
    cluster: WholeCluster,
    management: ProjectRoles,
    roles: Arc<Reflector<Whole<ClusterRole>>>,
    cluster_bindings: Arc<Reflector<Whole<ClusterRoleBinding>>>,
    /// Only this controller may watch them, once its role is there.
    bindings: OnceLock<Arc<Reflector<Whole<RoleBinding>>>>,
}

impl RolesOfProjects {
    fn bindings(&self) -> &Arc<Reflector<Whole<RoleBinding>>> {
        self.bindings.get_or_init(|| {
            let label = owned_label(keys::OWNED_PROJECT_ROLE);
            let bindings = self.cluster.reflectors().selected(&label);
            self.cluster.follow_all(&bindings);
            bindings
        })
    }

    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let ProjectRoles { clusters, in_projects, templates, assignments, policies, .. } =
            &self.management;
        tokio::join!(
            clusters.synced(),
            in_projects.synced(),
            templates.synced(),
            assignments.synced(),
            policies.synced()
        );
        let namespaces = &self.cluster.members.namespaces;
        tokio::try_join!(
            namespaces.try_synced(),
            self.roles.try_synced(),
            self.cluster_bindings.try_synced()
        )?;
        // Removal deletes the roles; they must not be created again.
        if !self.cluster.role.is_staying() {
            return Ok(Outcome::Done);
        }
        self.cluster.role.apply().await?;
        self.bindings().try_synced().await?;
        let desired = self.desired();
        self.put(&desired).await.map(|()| Outcome::RequeueAfter(INTERVAL))
    }

    fn desired(&self) -> ProjectRoleObjects {
        let in_projects = &self.management.in_projects;
        let known = by_name(&self.management.templates);
        let mut namespaces = self.cluster.members.by_project(&in_projects.projects);
        let policies = self.management.policies.of_cluster(&self.cluster.name);
        let mut objects = ProjectRoleObjects::default();
        for (key, _) in in_projects.projects.in_namespace(&self.cluster.name) {
            let bindings = in_projects.of_project(&key);
            let mut namespaces = namespaces.remove(&key.name).unwrap_or_default();
            namespaces.retain(|namespace| {
                self.is_open(
                    namespace,
                    policies.as_ref().map(|it| it.of(Some(&key.name), namespace)),
                )
            });
            let of = ProjectUse { project: &key.name, namespaces, bindings: &bindings };
            add_project(&mut objects, of, &known);
        }
        objects
    }

    /// Whether roles may be bound in a namespace whose Pod Security levels are these: those that
    /// are bound stay.
    fn is_open(&self, namespace: &str, levels: Option<LevelDecision>) -> bool {
        let has_its_level = match levels {
            None | Some(LevelDecision::Free) => true,
            Some(LevelDecision::Missing(_)) => false,
            Some(LevelDecision::Governed(governed)) => {
                let seen = self.cluster.members.namespaces.named(namespace);
                seen.is_some_and(|seen| governed.holds_in(&seen.pod_security.labels))
            }
        };
        has_its_level || !self.bindings().in_namespace(namespace).is_empty()
    }

    /// Takes away first, so that a namespace that changed its project is open to the members of one
    /// of them at most.
    async fn put(&self, desired: &ProjectRoleObjects) -> Result<(), ReconcileError> {
        let owner = our_namespace(&self.cluster.role.agent).await?;
        let agent = &self.cluster.role.agent;
        // The controller's own role and its binding have the label too.
        let own = self.cluster.role.name();
        let is_own = |key: &Key| key.namespace.is_empty() && key.name == own;
        let inside = |namespace: &str| Api::namespaced(self.cluster.client.clone(), namespace);
        delete_others(self.bindings(), &desired.bindings, &inside, &is_own).await?;
        let wide = |_: &str| Api::all(agent.clone());
        delete_others(&self.cluster_bindings, &desired.cluster_bindings, &wide, &is_own).await?;
        let wide = |_: &str| Api::all(agent.clone());
        delete_others(&self.roles, &desired.roles, &wide, &is_own).await?;

        let mut writes: Vec<Write<'_>> = Vec::new();
        for role in &desired.roles {
            writes.push(Box::pin(self.put_role(role, &owner)));
        }
        for binding in &desired.cluster_bindings {
            let api = Api::all(agent.clone());
            writes.push(Box::pin(put_binding(api, binding, &self.cluster_bindings, &owner)));
        }
        for binding in &desired.bindings {
            let api = inside(&binding.namespace().unwrap_or_default());
            writes.push(Box::pin(put_binding(api, binding, self.bindings(), &owner)));
        }
        all(writes).await
    }

    async fn put_role(
        &self,
        role: &ClusterRole,
        owner: &OwnerReference,
    ) -> Result<(), ReconcileError> {
        let mut role = role.clone();
        role.metadata.owner_references = Some(vec![owner.clone()]);
        let is_same = |known: &ClusterRole| {
            known.rules == role.rules && is_owned_by(&known.metadata, Some(&owner.uid))
        };
        if self.roles.named(&role.name_any()).is_some_and(|known| is_same(&known)) {
            return Ok(());
        }
        ensure::like(&Api::all(self.cluster.role.agent.clone()), &role).await.map(drop)
    }
}

async fn put_binding<B: RbacBinding>(
    api: Api<B>,
    binding: &B,
    present: &Reflector<Whole<B>>,
    owner: &OwnerReference,
) -> Result<(), ReconcileError>
where
    Whole<B>: Projection<Projected = B>,
{
    let mut binding = binding.clone();
    binding.meta_mut().owner_references = Some(vec![owner.clone()]);
    let known = present.get(&Key::of(&binding));
    let is_same = |known: &B| {
        known.role_ref() == binding.role_ref()
            && known.subjects() == binding.subjects()
            && is_owned_by(known.meta(), Some(&owner.uid))
    };
    if known.as_deref().is_some_and(is_same) {
        return Ok(());
    }
    ensure_binding(&api, &binding, known.as_deref()).await
}

impl ClusterController for RolesOfProjects {
    const NAME: &'static str = CONTROLLER;

    fn cluster(&self) -> &WholeCluster {
        &self.cluster
    }
    fn watch(&self) {
        let ProjectRoles { in_projects, templates, assignments, policies, .. } = &self.management;
        policies.follow(&self.cluster);
        self.cluster.follow_some(&in_projects.bindings, |change, cluster| {
            change.object().project().map(|(of, _)| of) == Some(cluster)
        });
        self.cluster.follow_own(assignments);
        self.cluster.follow_all(templates);
        self.cluster.follow_all(&self.cluster.members.namespaces);
        self.cluster.follow_all(&self.roles);
        self.cluster.follow_all(&self.cluster_bindings);
    }
    fn reconcile(&self) -> BoxFuture<'_, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}
