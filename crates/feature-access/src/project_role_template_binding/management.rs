//! Keeps true: the members of a project see it in the management API, and they and the members of
//! its cluster have what their roles allow in the namespace of the project.
//!
//! For each (project, role in use in it): a Role on the project object, in the cluster's namespace,
//! and a Role in the project's namespace, both bound to the group of its members. For each
//! (project, role in use in its cluster): a Role in the project's namespace, bound to that role's
//! group. Their number does not depend on the number of users. Watches projects (own key), their
//! namespaces, bindings (to their project, or the projects of their cluster), role templates (to
//! the projects that use one), and what it made itself, so that it is put back. Owns no condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{ClusterRoleTemplateBinding, PolicyRule, Project, RoleTemplate, keys};
use controller::{
    Change, Key, Metadata, Outcome, Projection, Reconcile, ReconcileError, Reflector, Runner,
    Whole, ensure,
};
use feature_kit::access::{VERB_CREATE_NAMESPACES, cluster_group, project_group};
use feature_kit::ownership::{is_namespace_of_project, is_owned_by, owner_reference};
use feature_kit::rbac::{RbacBinding, ensure_binding, ours, role_ref, rule, subject, to_kube};
use feature_kit::roles::{ProjectBindings, READ, creates_namespaces};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

use crate::role_template::downstream::UsedRoles;
use crate::role_template::effective::EffectiveTemplates;
use crate::role_template::{rules, with_inherited};

/// Label of what this controller makes; the value is the cluster's id.
const MEMBERSHIP: &str = "drover.io/project-membership";
/// Label of what it makes in the cluster's namespace: name of the project.
const PROJECT: &str = "drover.io/project-name";

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
        namespaces: reflectors.get(),
        of_clusters: reflectors.get(),
        of_projects: ProjectBindings::new(reflectors),
        templates: EffectiveTemplates::new(reflectors),
        roles: reflectors.selected(MEMBERSHIP),
        role_bindings: reflectors.selected(MEMBERSHIP),
    });
    let watched = membership.clone();
    // Until all is known, a role that is in use may look like one that is not.
    tokio::join!(
        watched.of_clusters.synced(),
        watched.of_projects.synced(),
        watched.templates.synced(),
        watched.roles.synced(),
        watched.role_bindings.synced()
    );
    let runner = Runner::new(membership);
    runner.watch_own(&watched.of_projects.projects);
    runner.watch(&watched.namespaces, |change| keys::project_of(change.object()).map(key));
    runner.watch(&watched.of_projects.bindings, |change| change.object().project().map(key));
    let projects = watched.of_projects.projects.clone();
    runner
        .watch(&watched.of_clusters, move |change| in_cluster(&projects, &change.key().namespace));
    let using = watched.clone();
    watched.templates.watch(&runner, move || using.using_roles());
    watch_made(&runner, &watched.roles);
    watch_made(&runner, &watched.role_bindings);
    runner.run("", &context.scope.controllers, context.scope.stop.clone()).await;
}

fn key((cluster, project): (&str, &str)) -> Key {
    Key::namespaced(cluster, project)
}

fn in_cluster(projects: &Reflector<Whole<Project>>, cluster: &str) -> Vec<Key> {
    projects.in_namespace(cluster).into_iter().map(|(key, _)| key).collect()
}

/// What was made for a project is looked at again when somebody changes it.
fn watch_made<K>(runner: &Runner, made: &Reflector<Whole<K>>)
where
    K: ensure::Object + 'static,
    Whole<K>: Projection<Projected = K>,
{
    runner.watch(made, |change: &Change<'_, K>| {
        let labels = change.object().labels();
        let project = labels.get(PROJECT).unwrap_or(&change.key().namespace);
        labels.get(MEMBERSHIP).map(|cluster| Key::namespaced(cluster, project))
    });
}

struct ProjectMembership {
    client: Client,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
    of_clusters: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    of_projects: ProjectBindings,
    templates: EffectiveTemplates,
    roles: Arc<Reflector<Whole<Role>>>,
    role_bindings: Arc<Reflector<Whole<RoleBinding>>>,
}

/// Roles and their bindings, by namespace and name.
pub(crate) type ProjectObjects = BTreeMap<Key, (Role, RoleBinding)>;

/// What is to be there for a project: in its own namespace, and in that of its cluster. `used`: the
/// role templates that are used in its cluster, and in the project itself. Pure.
pub(crate) fn desired(
    project: &Project,
    used: &UsedRoles,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> ProjectObjects {
    let Key { namespace: cluster, name } = Key::of(project);
    let mut objects = ProjectObjects::new();
    let mut add = |role: &str, object: &str, namespace: &str, group: &str, rules: &[PolicyRule]| {
        if !rules.is_empty() {
            let metadata = metadata(project, role, object, namespace);
            let made = role_and_binding(metadata, group, rules);
            objects.insert(Key::namespaced(namespace, object), made);
        }
    };
    for (role, template) in with_inherited(used.in_cluster.iter().cloned(), known) {
        let rules = rules::project_plane_of_cluster(template);
        add(role, role, &name, &cluster_group(&cluster, role), &rules);
    }
    for (role, template) in with_inherited(used.in_projects.iter().cloned(), known) {
        // No name of a role template has a colon, so that none of a cluster's roles has this name.
        let group = project_group(&name, role);
        add(role, &group, &cluster, &group, &[on_project(template, &name)]);
        add(role, &group, &name, &group, &rules::project_plane(template));
    }
    objects
}

/// What a role in a project allows on the project object itself.
fn on_project(template: &RoleTemplate, project: &str) -> PolicyRule {
    let mut verbs = READ.to_vec();
    if rules::is_project_owner(template, project) {
        verbs = vec!["*"];
    } else if creates_namespaces(template) {
        verbs.push(VERB_CREATE_NAMESPACES);
    }
    PolicyRule { resource_names: vec![project.to_owned()], ..ours(&["projects"], &verbs) }
}

fn metadata(project: &Project, role: &str, name: &str, namespace: &str) -> ObjectMeta {
    let Key { namespace: cluster, name: own } = Key::of(project);
    let is_outside = namespace == cluster;
    let mut labels = BTreeMap::from([(MEMBERSHIP.to_owned(), cluster)]);
    if is_outside {
        labels.insert(PROJECT.to_owned(), own);
    }
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels),
        annotations: Some([(keys::CLUSTER_ROLE_OWNER.to_owned(), role.to_owned())].into()),
        // What is in the project's own namespace goes with the namespace.
        owner_references: is_outside.then(|| vec![owner_reference(project)]),
        ..ObjectMeta::default()
    }
}

fn role_and_binding(
    metadata: ObjectMeta,
    group: &str,
    rules: &[PolicyRule],
) -> (Role, RoleBinding) {
    let name = metadata.name.clone().unwrap_or_default();
    let role =
        Role { metadata: metadata.clone(), rules: Some(rules.iter().map(to_kube).collect()) };
    let binding = RoleBinding {
        metadata,
        role_ref: role_ref("Role", &name),
        subjects: Some(vec![subject("Group", group)]),
    };
    (role, binding)
}

impl ProjectMembership {
    /// The projects in which, or in whose cluster, anybody has a role.
    fn using_roles(&self) -> Vec<Key> {
        let (mut clusters, mut found) = (BTreeSet::new(), BTreeSet::new());
        self.of_clusters.for_each(|key, _| clusters.extend([key.namespace.clone()]));
        self.of_projects.bindings.for_each(|_, binding| found.extend(binding.project().map(key)));
        let projects = &self.of_projects.projects;
        found.extend(clusters.iter().flat_map(|cluster| in_cluster(projects, cluster)));
        found.into_iter().collect()
    }

    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let project = self.of_projects.projects.get(key);
        let staying = project.filter(|project| project.metadata.deletion_timestamp.is_none());
        let Some(project) = staying else {
            // Its own namespace is deleted with all that is in it.
            self.put(key, &key.namespace, &ProjectObjects::new(), "").await?;
            return Ok(Outcome::Done);
        };
        let uid = project.metadata.uid.as_deref().unwrap_or_default();
        let namespace = self.namespaces.named(&key.name).filter(|namespace| {
            namespace.deletion_timestamp.is_none() && is_namespace_of_project(namespace, &project)
        });
        if namespace.is_none() {
            // What is bound in the namespace of that name was bound in another project.
            self.put(key, &key.namespace, &ProjectObjects::new(), uid).await?;
            return Ok(Outcome::WaitingFor(format!("namespace \"{}\"", key.name)));
        }
        let of_cluster = self.of_clusters.in_namespace(&key.namespace).into_iter();
        let used = UsedRoles {
            in_cluster: of_cluster.map(|(_, binding)| binding.role_template_name.clone()).collect(),
            in_projects: self.of_projects.roles_of(key),
        };
        let desired = desired(&project, &used, &self.templates.by_name());
        self.put(key, &key.namespace, &desired, uid).await?;
        self.put(key, &key.name, &desired, uid).await?;
        Ok(Outcome::Done)
    }

    /// Makes what is there for a project in one namespace exactly what is desired there. `uid`: of
    /// the project.
    async fn put(
        &self,
        project: &Key,
        namespace: &str,
        desired: &ProjectObjects,
        uid: &str,
    ) -> Result<(), ReconcileError> {
        let roles: Api<Role> = Api::namespaced(self.client.clone(), namespace);
        let bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
        let is_owned =
            |metadata: &ObjectMeta| namespace == project.name || is_owned_by(metadata, Some(uid));
        for (key, (role, binding)) in desired.iter().filter(|(key, _)| key.namespace == namespace) {
            let same = |known: &Role| known.rules == role.rules && is_owned(&known.metadata);
            if self.roles.get(key).is_none_or(|known| !same(&known)) {
                ensure::like(&roles, role).await?;
            }
            let known = self.role_bindings.get(key);
            let same = |known: &RoleBinding| {
                known.role_ref == binding.role_ref
                    && known.subjects() == binding.subjects()
                    && is_owned(&known.metadata)
            };
            if known.as_deref().is_none_or(|known| !same(known)) {
                ensure_binding(&bindings, binding, known.as_deref()).await?;
            }
        }
        let is_superfluous = |key: &Key| !desired.contains_key(key);
        for key in present(&self.role_bindings, project, namespace).filter(is_superfluous) {
            ensure::absent(&bindings, &key.name).await?;
        }
        for key in present(&self.roles, project, namespace).filter(is_superfluous) {
            ensure::absent(&roles, &key.name).await?;
        }
        Ok(())
    }
}

/// What was made for a project in one namespace: its own, or that of its cluster.
fn present<P: Projection>(
    made: &Reflector<P>,
    project: &Key,
    namespace: &str,
) -> impl Iterator<Item = Key> + use<P> {
    // In the cluster's namespace there are those of all projects.
    let prefix = match namespace == project.namespace {
        true => project_group(&project.name, ""),
        false => String::new(),
    };
    made.with_prefix(namespace, &prefix).into_iter().map(|(key, _)| key)
}

impl Reconcile for ProjectMembership {
    fn name(&self) -> &'static str {
        "project-membership"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
