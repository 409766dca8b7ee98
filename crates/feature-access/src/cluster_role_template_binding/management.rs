//! Keeps true: the members of a cluster see it, and what their roles allow of its objects, in the
//! management API; and the members of its projects see it, and what all projects of it share.
//!
//! For each (cluster, role in use): a ClusterRole on the one cluster object and a Role in its
//! namespace, both bound to the role's group; for roles in use in projects to the group of all who
//! have the role in any project of the cluster. Their number does not depend on the number of
//! users. Those that earlier versions named otherwise have our label and are deleted. Watches
//! bindings of both kinds (to their cluster), projects (to their cluster), role templates (to all
//! clusters that use them) and clusters. Owns no condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, ClusterRoleTemplateBinding, PolicyRule, RoleTemplate, keys};
use controller::ensure::{self, Object};
use controller::{
    Attempt, Key, Metadata, Outcome, Reconcile, ReconcileError, Reflector, Runner, Whole,
};
use feature_kit::access::{cluster_group, projects_group};
use feature_kit::ownership::{is_namespace_of, owner_reference};
use feature_kit::rbac::{ours, role_ref, rule, subject, to_kube};
use feature_kit::roles::{ProjectBindings, READ};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client, ResourceExt};

use crate::role_template::downstream::UsedRoles;
use crate::role_template::effective::EffectiveTemplates;
use crate::role_template::{rules, with_inherited};

/// Label of what this controller makes; the value is the cluster's id.
pub(crate) const MEMBERSHIP: &str = "drover.io/membership";

/// Changes of roles in projects within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let all = ["get", "list", "create", "patch", "delete", "bind", "escalate"];
    let resources = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
    ControllerIdentity::new(
        "cluster-membership",
        vec![rule("rbac.authorization.k8s.io", &resources, &all)],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let membership = Membership {
        client,
        clusters: scope.reflectors.get(),
        namespaces: scope.reflectors.get(),
        bindings: scope.reflectors.get(),
        in_projects: ProjectBindings::new(&scope.reflectors),
        templates: EffectiveTemplates::new(&scope.reflectors),
    };
    let (clusters, namespaces) = (membership.clusters.clone(), membership.namespaces.clone());
    let (bindings, in_projects) = (membership.bindings.clone(), membership.in_projects.clone());
    let templates = membership.templates.clone();
    // Until all is known, a role that is in use may look like one that is not.
    tokio::join!(bindings.synced(), in_projects.synced(), templates.synced());
    let runner = Runner::new(Arc::new(membership));
    runner.watch(&clusters, |change| {
        let new = matches!(change, controller::Change::Applied { old: None, .. });
        new.then(|| change.key().clone())
    });
    let known = clusters.clone();
    runner.watch(&namespaces, move |change| {
        let key = Key::cluster_scoped(&change.key().name);
        known.get(&key).map(|_| key)
    });
    runner.watch(&bindings, |change| [Key::cluster_scoped(&change.key().namespace)]);
    runner.watch_bursts(&in_projects.bindings, DEBOUNCE, |change| {
        change.object().project().map(|(cluster, _)| Key::cluster_scoped(cluster))
    });
    runner.watch_bursts(&in_projects.projects, DEBOUNCE, |change| {
        let began_or_ended = change
            .differs(|old, new| old.metadata.deletion_timestamp == new.metadata.deletion_timestamp);
        began_or_ended.then(|| Key::cluster_scoped(&change.key().namespace))
    });
    templates.watch(&runner, move || {
        let mut used: BTreeSet<String> = BTreeSet::new();
        bindings.for_each(|key, _| used.extend([key.namespace.clone()]));
        in_projects.bindings.for_each(|_, binding| {
            used.extend(binding.project().map(|(cluster, _)| cluster.to_owned()));
        });
        used.iter().map(|cluster| Key::cluster_scoped(cluster)).collect()
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Membership {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    namespaces: Arc<Reflector<Metadata<Namespace>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    in_projects: ProjectBindings,
    templates: EffectiveTemplates,
}

/// The objects for one cluster.
#[derive(Default)]
pub(crate) struct Objects {
    pub cluster_roles: Vec<ClusterRole>,
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    pub roles: Vec<Role>,
    pub role_bindings: Vec<RoleBinding>,
}

/// Who has a role, and what of it holds.
#[derive(Clone, Copy)]
enum Holders {
    Cluster,
    AnyProject,
}

/// What is to be there for a cluster in which these role templates are used. Pure.
pub(crate) fn desired(
    cluster: &Cluster,
    used: &UsedRoles,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> Objects {
    let mut objects = Objects::default();
    for (name, template) in with_inherited(used.in_cluster.iter().cloned(), known) {
        add_role(&mut objects, cluster, Holders::Cluster, name, template);
    }
    for (name, template) in with_inherited(used.in_projects.iter().cloned(), known) {
        add_role(&mut objects, cluster, Holders::AnyProject, name, template);
    }
    objects
}

fn add_role(
    objects: &mut Objects,
    cluster: &Cluster,
    holders: Holders,
    role: &str,
    template: &RoleTemplate,
) {
    let id = cluster.name_any();
    let metadata = |name: String, namespace: Option<String>| ObjectMeta {
        name: Some(name),
        namespace,
        labels: Some([(MEMBERSHIP.to_owned(), id.clone())].into()),
        annotations: Some([(keys::CLUSTER_ROLE_OWNER.to_owned(), role.to_owned())].into()),
        owner_references: Some(vec![owner_reference(cluster)]),
        ..ObjectMeta::default()
    };
    // No part of a group has a colon, so that no other cluster and role have this name.
    let (group, name_inside, inside, verbs): (_, _, _, &[&str]) = match holders {
        Holders::Cluster if rules::is_owner(template, &id) => {
            (cluster_group(&id, role), role.to_owned(), rules::cluster_plane(template), &["*"])
        }
        Holders::Cluster => {
            (cluster_group(&id, role), role.to_owned(), rules::cluster_plane(template), &READ)
        }
        Holders::AnyProject => {
            let group = projects_group(&id, role);
            (group.clone(), group, rules::shared_plane(template), &["get"])
        }
    };
    let members = Some(vec![subject("Group", &group)]);
    let on_cluster = PolicyRule { resource_names: vec![id.clone()], ..ours(&["clusters"], verbs) };
    objects.cluster_roles.push(ClusterRole {
        metadata: metadata(group.clone(), None),
        rules: Some(vec![to_kube(&on_cluster)]),
        aggregation_rule: None,
    });
    objects.cluster_role_bindings.push(ClusterRoleBinding {
        metadata: metadata(group.clone(), None),
        role_ref: role_ref("ClusterRole", &group),
        subjects: members.clone(),
    });
    if inside.is_empty() {
        return;
    }
    objects.roles.push(Role {
        metadata: metadata(name_inside.clone(), Some(id.clone())),
        rules: Some(inside.iter().map(to_kube).collect()),
    });
    objects.role_bindings.push(RoleBinding {
        metadata: metadata(name_inside.clone(), Some(id.clone())),
        role_ref: role_ref("Role", &name_inside),
        subjects: members,
    });
}

impl Membership {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(cluster) = self.clusters.get(key) else { return Ok(Outcome::Done) };
        if cluster.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let namespace = self.namespaces.named(&key.name);
        if !namespace.is_some_and(|namespace| is_namespace_of(&namespace, &cluster)) {
            return Ok(Outcome::WaitingFor(format!("namespace \"{key}\"")));
        }
        let bindings = self.bindings.in_namespace(&key.name).into_iter();
        let used = UsedRoles {
            in_cluster: bindings.map(|(_, binding)| binding.role_template_name.clone()).collect(),
            in_projects: self.in_projects.roles_in_projects_of(&key.name),
        };
        let objects = desired(&cluster, &used, &self.templates.by_name());
        let client = &self.client;
        apply_set(&Api::all(client.clone()), &objects.cluster_roles, &key.name).await?;
        apply_set(&Api::all(client.clone()), &objects.cluster_role_bindings, &key.name).await?;
        let roles = Api::namespaced(client.clone(), &key.name);
        apply_set(&roles, &objects.roles, &key.name).await?;
        let role_bindings = Api::namespaced(client.clone(), &key.name);
        apply_set(&role_bindings, &objects.role_bindings, &key.name).await?;
        Ok(Outcome::Done)
    }
}

/// Makes the labelled objects of a cluster exactly these.
async fn apply_set<K: Object>(
    api: &Api<K>,
    desired: &[K],
    cluster: &str,
) -> Result<(), ReconcileError> {
    for object in desired {
        ensure::like(api, object).await?;
    }
    let ours = ListParams::default().labels(&format!("{MEMBERSHIP}={cluster}"));
    let attempt = || format!("list {} of cluster \"{cluster}\"", K::plural(&()));
    let present = api.list_metadata(&ours).await.attempt(attempt)?;
    let desired: BTreeSet<String> = desired.iter().map(ResourceExt::name_any).collect();
    for object in present.items {
        if !desired.contains(&object.name_any()) {
            ensure::absent(api, &object.name_any()).await?;
        }
    }
    Ok(())
}

impl Reconcile for Membership {
    fn name(&self) -> &'static str {
        "cluster-membership"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
