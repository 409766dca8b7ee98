//! The roles we ship, as data.

use api_management::role_template::{
    CLUSTER_MEMBER, CLUSTER_OWNER, CONTEXT_CLUSTER, CONTEXT_PROJECT,
};
use api_management::{PolicyRule, RoleTemplate, keys};
use controller::{ReconcileError, ensure};
use feature_kit::access::{CLUSTER_ADMIN, GROUP_GLOBAL_ADMIN, GROUP_PEOPLE};
use feature_kit::rbac::{ours, role_ref, rule, subject, to_kube};
use feature_kit::{Seed, SeedMode};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client};

/// What everybody who logged in may do in the management API.
const PEOPLE_ROLE: &str = "drover:people";

const READ: [&str; 3] = ["get", "list", "watch"];

fn template(name: &str, display_name: &str, rules: Vec<PolicyRule>) -> RoleTemplate {
    let labels = [(keys::BOOTSTRAPPING.to_owned(), keys::BOOTSTRAP_ROLE_TEMPLATE.to_owned())];
    let mut template = RoleTemplate {
        display_name: display_name.to_owned(),
        context: CONTEXT_CLUSTER.to_owned(),
        rules,
        builtin: true,
        ..RoleTemplate::default()
    };
    template.metadata.name = Some(name.to_owned());
    template.metadata.labels = Some(labels.into());
    template
}

/// Everything in a cluster.
pub fn cluster_owner() -> RoleTemplate {
    let urls = PolicyRule {
        non_resource_urls: vec!["*".to_owned()],
        verbs: vec!["*".to_owned()],
        ..PolicyRule::default()
    };
    let rules = vec![rule("*", &["*"], &["*"]), ours(&["clusters"], &["own"]), urls];
    let mut template = template(CLUSTER_OWNER, "Cluster Owner", rules);
    template.administrative = true;
    template.cluster_creator_default = true;
    template
}

/// See the cluster and what all of it shares; make projects.
pub fn cluster_member() -> RoleTemplate {
    let shared = [
        "clusterroletemplatebindings",
        "nodes",
        "nodepools",
        "clusterevents",
        "clusterloggings",
        "clusteralertrules",
        "clusteralertgroups",
        "notifiers",
        "clustercatalogs",
        "clustermonitorgraphs",
        "catalogtemplates",
        "catalogtemplateversions",
    ];
    let local =
        PolicyRule { resource_names: vec!["local".to_owned()], ..ours(&["clusters"], &["get"]) };
    let rules = vec![
        ours(&shared, &READ),
        ours(&["projects"], &["create"]),
        rule("", &["nodes", "persistentvolumes"], &READ),
        rule("storage.k8s.io", &["storageclasses"], &READ),
        rule("apiregistration.k8s.io", &["apiservices"], &READ),
        rule("catalog.cattle.io", &["clusterrepos"], &READ),
        local,
    ];
    template(CLUSTER_MEMBER, "Cluster Member", rules)
}

/// A role of Kubernetes itself, which every cluster has under this name.
fn external(name: &str, display_name: &str) -> RoleTemplate {
    RoleTemplate {
        context: CONTEXT_PROJECT.to_owned(),
        external: true,
        hidden: true,
        ..template(name, display_name, Vec::new())
    }
}

/// A role in projects that has all rights of a role of Kubernetes, and more.
fn in_project(
    name: &str,
    display_name: &str,
    inherited: &str,
    rules: Vec<PolicyRule>,
) -> RoleTemplate {
    RoleTemplate {
        context: CONTEXT_PROJECT.to_owned(),
        role_template_names: vec![inherited.to_owned()],
        ..template(name, display_name, rules)
    }
}

/// What members of every level may do beside the inherited role. `verbs`: on what the project has;
/// what it shares with others is read.
fn shared_in_project(verbs: &[&str]) -> Vec<PolicyRule> {
    let monitoring = ["prometheuses", "prometheusrules", "servicemonitors"];
    let local =
        PolicyRule { resource_names: vec!["local".to_owned()], ..ours(&["clusters"], &["get"]) };
    vec![
        rule("", &["persistentvolumes"], &READ),
        rule("storage.k8s.io", &["storageclasses"], &READ),
        rule("apiregistration.k8s.io", &["apiservices"], &READ),
        rule("", &["persistentvolumeclaims"], verbs),
        rule("metrics.k8s.io", &["pods"], verbs),
        rule("monitoring.coreos.com", &monitoring, verbs),
        rule("catalog.cattle.io", &["clusterrepos", "operations", "releases", "apps"], &READ),
        ours(&["clusterevents", "notifiers", "clustercatalogs"], &READ),
        local,
    ]
}

/// The roles of projects, and those of Kubernetes that they inherit, which come first.
pub fn project_roles() -> Vec<RoleTemplate> {
    let all = ["*"];
    let apps = ["apps", "apprevisions", "pipelines", "pipelineexecutions"];
    let of_owners = [
        "projectroletemplatebindings",
        "projectalertrules",
        "projectalertgroups",
        "projectloggings",
        "projectcatalogs",
        "projectmonitorgraphs",
        "catalogtemplates",
        "catalogtemplateversions",
    ];
    let alerts = ["projectalertrules", "projectalertgroups"];
    let read: Vec<&str> = of_owners.into_iter().filter(|kind| !alerts.contains(kind)).collect();
    let take_part = vec![
        ours(&read, &READ),
        ours(&alerts, &all),
        rule("project.cattle.io", &apps, &all),
        rule("", &["namespaces"], &["create"]),
    ];
    let look = vec![ours(&of_owners[..6], &READ), rule("project.cattle.io", &apps, &READ)];
    let member = [take_part, shared_in_project(&all)].concat();
    let reader = [look, shared_in_project(&READ)].concat();
    vec![
        external("edit", "Kubernetes edit"),
        external("view", "Kubernetes view"),
        in_project("project-member", "Project Member", "edit", member),
        in_project("read-only", "Read-only", "view", reader),
    ]
}

fn bound(role: ClusterRole, binding: &str, group: &str) -> [Seed; 2] {
    let name = role.metadata.name.clone().unwrap_or_default();
    [
        Seed::cluster_scoped(SeedMode::Keep, role),
        Seed::cluster_scoped(SeedMode::Keep, group_binding(binding, &name, group)),
    ]
}

fn group_binding(name: &str, role: &str, group: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![subject("Group", group)]),
    }
}

/// In order: a role template is refused before those that it inherits are there.
async fn put_project_roles(client: Client) -> Result<bool, ReconcileError> {
    let templates: Api<RoleTemplate> = Api::all(client);
    let mut is_changed = false;
    for role in project_roles() {
        is_changed |= ensure::like(&templates, &role).await?;
    }
    Ok(is_changed)
}

/// What must be there from the start.
pub fn seeds() -> Vec<Seed> {
    let people = ClusterRole {
        metadata: ObjectMeta { name: Some(PEOPLE_ROLE.to_owned()), ..ObjectMeta::default() },
        rules: Some(vec![to_kube(&ours(&["settings", "roletemplates"], &READ))]),
        aggregation_rule: None,
    };
    let admin = group_binding(GROUP_GLOBAL_ADMIN, CLUSTER_ADMIN, GROUP_GLOBAL_ADMIN);
    let mut seeds = vec![
        Seed::cluster_scoped(SeedMode::Keep, cluster_owner()),
        Seed::cluster_scoped(SeedMode::Keep, cluster_member()),
        Seed::cluster_scoped(SeedMode::Keep, admin),
    ];
    seeds.push(Seed::custom("roletemplates of projects".to_owned(), |client| {
        Box::pin(put_project_roles(client))
    }));
    seeds.extend(bound(people, PEOPLE_ROLE, GROUP_PEOPLE));
    seeds
}
