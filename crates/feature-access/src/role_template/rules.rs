//! Which rules of a role template hold where. Pure.

use api_management::{GROUP, PolicyRule, RoleTemplate};
use feature_kit::roles::covers;
use k8s_openapi::api::rbac::v1::PolicyRule as KubeRule;

/// Kinds of ours whose objects live in the cluster's namespace of the management cluster: a rule of
/// a cluster role template on these is a right there.
pub const CLUSTER_PLANE: &[&str] = &[
    "catalogtemplates",
    "catalogtemplateversions",
    "clusteralertgroups",
    "clusteralertrules",
    "clustercatalogs",
    "clusterloggings",
    "clustermonitorgraphs",
    "clusterregistrationtokens",
    "clusterroletemplatebindings",
    "clusterscans",
    "etcdbackups",
    "nodepools",
    "nodes",
    "notifiers",
    "podsecuritypolicytemplateprojectbindings",
    "projects",
];

/// API group of what projects have of their own in the management cluster.
const PROJECT_GROUP: &str = "project.cattle.io";

/// API group and plurals of what lies in the namespace of a project in the management cluster: a
/// rule of a role template on these is a right there.
pub const PROJECT_PLANE: &[(&str, &[&str])] = &[
    ("", &["secrets"]),
    (
        GROUP,
        &[
            "catalogtemplates",
            "catalogtemplateversions",
            "projectalertgroups",
            "projectalertrules",
            "projectcatalogs",
            "projectloggings",
            "projectmonitorgraphs",
            "projectroletemplatebindings",
        ],
    ),
    (
        PROJECT_GROUP,
        &[
            "apprevisions",
            "apps",
            "pipelineexecutions",
            "pipelines",
            "pipelinesettings",
            "sourcecodeproviderconfigs",
        ],
    ),
];

/// Kinds of ours in the namespace of a cluster that all of its projects share: a rule of a role in
/// a project on these is a right there.
pub const SHARED_PLANE: &[&str] =
    &["catalogtemplates", "catalogtemplateversions", "clustercatalogs", "notifiers"];

/// Kinds of the project plane that a role in a cluster gives only when it is administrative.
const ADMINISTRATIVE: [&str; 2] = ["catalogtemplates", "catalogtemplateversions"];

/// API groups that are served by the management API only.
const MANAGEMENT_GROUPS: &[&str] = &[GROUP, PROJECT_GROUP];

fn contains(list: &[String], text: &str) -> bool {
    list.iter().any(|entry| entry == text)
}

/// The part of a rule that is about these plurals of an API group.
fn limited(rule: &PolicyRule, group: &str, plurals: &[&str]) -> Option<PolicyRule> {
    if !covers(&rule.api_groups, group) {
        return None;
    }
    let named = plurals.iter().filter(|plural| covers(&rule.resources, plural));
    let resources: Vec<String> = named.map(|&plural| plural.to_owned()).collect();
    (!resources.is_empty()).then(|| PolicyRule {
        api_groups: vec![group.to_owned()],
        resources,
        resource_names: rule.resource_names.clone(),
        non_resource_urls: Vec::new(),
        verbs: rule.verbs.clone(),
    })
}

/// The rules as they hold downstream: without those on kinds that exist only here.
pub fn downstream(template: &RoleTemplate) -> Vec<PolicyRule> {
    let elsewhere = |rule: &PolicyRule| {
        !rule.api_groups.is_empty()
            && rule.api_groups.iter().all(|group| MANAGEMENT_GROUPS.contains(&group.as_str()))
    };
    template.rules.iter().filter(|rule| !elsewhere(rule)).cloned().collect()
}

/// The rules as they hold in the cluster's namespace of the management cluster.
pub fn cluster_plane(template: &RoleTemplate) -> Vec<PolicyRule> {
    template.rules.iter().filter_map(|rule| limited(rule, GROUP, CLUSTER_PLANE)).collect()
}

/// The rules of a role in a project as they hold in the namespace of its cluster in the management
/// cluster.
pub fn shared_plane(template: &RoleTemplate) -> Vec<PolicyRule> {
    template.rules.iter().filter_map(|rule| limited(rule, GROUP, SHARED_PLANE)).collect()
}

/// The rules of a role in a project as they hold in the namespace of the project in the management
/// cluster.
pub fn project_plane(template: &RoleTemplate) -> Vec<PolicyRule> {
    let rules = template.rules.iter().flat_map(|rule| {
        PROJECT_PLANE.iter().filter_map(|(group, plurals)| limited(rule, group, plurals))
    });
    rules.collect()
}

/// The rules of a role in a cluster as they hold in the namespace of each of its projects in the
/// management cluster.
pub fn project_plane_of_cluster(template: &RoleTemplate) -> Vec<PolicyRule> {
    let mut rules = project_plane(template);
    if !template.administrative {
        for rule in &mut rules {
            rule.resources.retain(|plural| !ADMINISTRATIVE.contains(&plural.as_str()));
        }
        rules.retain(|rule| !rule.resources.is_empty());
    }
    rules
}

/// Whether the template makes an owner of the cluster object of this id: a rule says `own`, or
/// allows every verb, and holds for this object. A rule with `resourceNames` holds for those alone.
pub fn is_owner(template: &RoleTemplate, cluster: &str) -> bool {
    owns(template, "clusters", cluster)
}

/// Whether the template makes an owner of the project object of this name; see [`is_owner`].
pub fn is_project_owner(template: &RoleTemplate, project: &str) -> bool {
    owns(template, "projects", project)
}

fn owns(template: &RoleTemplate, plural: &str, name: &str) -> bool {
    template.rules.iter().any(|rule| {
        let is_named = rule.resource_names.is_empty() || contains(&rule.resource_names, name);
        covers(&rule.resources, plural)
            && covers(&rule.api_groups, GROUP)
            && is_named
            && covers(&rule.verbs, "own")
    })
}

/// The rule of a Kubernetes role.
pub fn of_kube(rule: &KubeRule) -> PolicyRule {
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    PolicyRule {
        api_groups: list(&rule.api_groups),
        resources: list(&rule.resources),
        resource_names: list(&rule.resource_names),
        non_resource_urls: list(&rule.non_resource_urls),
        verbs: rule.verbs.clone(),
    }
}

/// The rule in the type with which rights are compared.
pub fn to_authz(rule: &PolicyRule) -> authz::PolicyRule {
    authz::PolicyRule {
        verbs: rule.verbs.clone(),
        api_groups: rule.api_groups.clone(),
        resources: rule.resources.clone(),
        resource_names: rule.resource_names.clone(),
        non_resource_urls: rule.non_resource_urls.clone(),
    }
}
