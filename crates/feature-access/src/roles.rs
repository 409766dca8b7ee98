//! The roles we ship, as data.

use api_management::role_template::{CLUSTER_MEMBER, CLUSTER_OWNER, CONTEXT_CLUSTER};
use api_management::{PolicyRule, RoleTemplate, keys};
use feature_kit::access::{CLUSTER_ADMIN, GROUP_GLOBAL_ADMIN, GROUP_PEOPLE};
use feature_kit::rbac::{ours, role_ref, rule, subject, to_kube};
use feature_kit::{Seed, SeedMode};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;

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
    seeds.extend(bound(people, PEOPLE_ROLE, GROUP_PEOPLE));
    seeds
}
