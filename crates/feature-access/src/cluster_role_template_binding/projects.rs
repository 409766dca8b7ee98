//! Keeps true: who has a role in a cluster has what the role allows in the namespace of each of its
//! projects in the management API.
//!
//! For each (project, role in use in its cluster): a Role in the project's namespace, bound to the
//! role's group. Watches projects (own key), their namespaces, bindings (to the projects of their
//! cluster), role templates (to the projects of all clusters that use one), and what it made
//! itself, so that it is put back. All of it goes with the namespace. Owns no condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{ClusterRoleTemplateBinding, Project, RoleTemplate, keys};
use controller::{
    Change, Key, Metadata, Outcome, Projection, Reconcile, ReconcileError, Reflector, Runner,
    Whole, ensure,
};
use feature_kit::access::cluster_group;
use feature_kit::ownership::is_namespace_of_project;
use feature_kit::rbac::{role_ref, rule, subject, to_kube};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

use crate::role_template::{by_name, rules, with_inherited};

/// Label of what this controller makes; the value is the cluster's id.
const MEMBERSHIP: &str = "drover.io/project-membership";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let all = ["get", "create", "patch", "delete", "bind", "escalate"];
    let resources = ["roles", "rolebindings"];
    ControllerIdentity::new(
        "project-membership",
        vec![rule("rbac.authorization.k8s.io", &resources, &all)],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let reflectors = &context.scope.reflectors;
    let membership = Arc::new(ProjectMembership {
        client,
        projects: reflectors.get(),
        namespaces: reflectors.get(),
        bindings: reflectors.get(),
        templates: reflectors.get(),
        roles: reflectors.selected(MEMBERSHIP),
        role_bindings: reflectors.selected(MEMBERSHIP),
    });
    let watched = membership.clone();
    // Until all is known, a role that is in use may look like one that is not.
    tokio::join!(
        watched.bindings.synced(),
        watched.templates.synced(),
        watched.roles.synced(),
        watched.role_bindings.synced()
    );
    let runner = Runner::new(membership);
    runner.watch_own(&watched.projects);
    runner.watch(&watched.namespaces, |change| keys::project_of(change.object()).map(key));
    let projects = watched.projects.clone();
    let of_cluster = move |cluster: &str| -> Vec<Key> {
        projects.in_namespace(cluster).into_iter().map(|(key, _)| key).collect()
    };
    let below = of_cluster.clone();
    runner.watch(&watched.bindings, move |change| below(&change.key().namespace));
    let used = watched.bindings.clone();
    runner.watch(&watched.templates, move |_| {
        let clusters: BTreeSet<String> =
            used.all().into_iter().map(|(key, _)| key.namespace).collect();
        clusters.iter().flat_map(|cluster| of_cluster(cluster)).collect::<Vec<_>>()
    });
    watch_made(&runner, &watched.roles);
    watch_made(&runner, &watched.role_bindings);
    runner.run("", &context.scope.controllers, context.scope.stop.clone()).await;
}

fn key((cluster, project): (&str, &str)) -> Key {
    Key::namespaced(cluster, project)
}

/// What was made for a project is looked at again when somebody changes it.
fn watch_made<K>(runner: &Runner, made: &Reflector<Whole<K>>)
where
    K: ensure::Object + 'static,
    Whole<K>: Projection<Projected = K>,
{
    runner.watch(made, |change: &Change<'_, K>| {
        let cluster = change.object().labels().get(MEMBERSHIP).cloned();
        cluster.map(|cluster| Key::namespaced(&cluster, &change.key().namespace))
    });
}

struct ProjectMembership {
    client: Client,
    projects: Arc<Reflector<Whole<Project>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
    roles: Arc<Reflector<Whole<Role>>>,
    role_bindings: Arc<Reflector<Whole<RoleBinding>>>,
}

/// What is to be in the namespace of a project of this cluster, in which these role templates are
/// used, by name. Pure.
pub(crate) fn desired(
    project: &Key,
    used: &BTreeSet<String>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> BTreeMap<String, (Role, RoleBinding)> {
    let mut objects = BTreeMap::new();
    for (name, template) in with_inherited(used.iter().cloned(), known) {
        let rules = rules::project_plane(template);
        if rules.is_empty() {
            continue;
        }
        let cluster = &project.namespace;
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(project.name.clone()),
            labels: Some([(MEMBERSHIP.to_owned(), cluster.clone())].into()),
            annotations: Some([(keys::CLUSTER_ROLE_OWNER.to_owned(), name.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let role =
            Role { metadata: metadata.clone(), rules: Some(rules.iter().map(to_kube).collect()) };
        let binding = RoleBinding {
            metadata,
            role_ref: role_ref("Role", name),
            subjects: Some(vec![subject("Group", &cluster_group(cluster, name))]),
        };
        objects.insert(name.to_owned(), (role, binding));
    }
    objects
}

impl ProjectMembership {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(project) = self.projects.get(key) else { return Ok(Outcome::Done) };
        let namespace = self.namespaces.named(&key.name).filter(|namespace| {
            namespace.deletion_timestamp.is_none() && is_namespace_of_project(namespace, &project)
        });
        if project.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        if namespace.is_none() {
            return Ok(Outcome::WaitingFor(format!("namespace \"{}\"", key.name)));
        }
        let bindings = self.bindings.in_namespace(&key.namespace);
        let used: BTreeSet<String> =
            bindings.iter().map(|(_, binding)| binding.role_template_name.clone()).collect();
        let desired = desired(key, &used, &by_name(&self.templates));
        let roles: Api<Role> = Api::namespaced(self.client.clone(), &key.name);
        let role_bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), &key.name);
        for (name, (role, binding)) in &desired {
            let made = Key::namespaced(&key.name, name);
            if self.roles.get(&made).is_none_or(|known| known.rules != role.rules) {
                ensure::like(&roles, role).await?;
            }
            let same = |known: &RoleBinding| {
                known.role_ref == binding.role_ref && known.subjects == binding.subjects
            };
            if self.role_bindings.get(&made).is_none_or(|known| !same(&known)) {
                ensure::like(&role_bindings, binding).await?;
            }
        }
        for (made, _) in self.role_bindings.in_namespace(&key.name) {
            if !desired.contains_key(&made.name) {
                ensure::absent(&role_bindings, &made.name).await?;
            }
        }
        for (made, _) in self.roles.in_namespace(&key.name) {
            if !desired.contains_key(&made.name) {
                ensure::absent(&roles, &made.name).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Reconcile for ProjectMembership {
    fn name(&self) -> &'static str {
        "project-membership"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
