//! Which rules of a role template hold where. Pure.

use api_management::{GROUP, PolicyRule, RoleTemplate};

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

/// API group and plural of what lies in the namespace of a project in the management cluster and is
/// acted on: a rule of a role template on these is a right there.
pub const PROJECT_PLANE: &[(&str, &str)] = &[("", "secrets")];

/// API groups that are served by the management API only.
const MANAGEMENT_GROUPS: &[&str] = &[GROUP, "project.cattle.io"];

fn contains(list: &[String], text: &str) -> bool {
    list.iter().any(|entry| entry == text)
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
    let mut rules = Vec::new();
    for rule in &template.rules {
        if !contains(&rule.api_groups, GROUP) && !contains(&rule.api_groups, "*") {
            continue;
        }
        let all = contains(&rule.resources, "*");
        let resources = CLUSTER_PLANE.iter().filter(|name| all || contains(&rule.resources, name));
        let resources: Vec<String> = resources.map(|&name| name.to_owned()).collect();
        if !resources.is_empty() {
            rules.push(PolicyRule {
                api_groups: vec![GROUP.to_owned()],
                resources,
                resource_names: rule.resource_names.clone(),
                non_resource_urls: Vec::new(),
                verbs: rule.verbs.clone(),
            });
        }
    }
    rules
}

/// The rules as they hold in the namespace of each project of the cluster in the management
/// cluster.
pub fn project_plane(template: &RoleTemplate) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for rule in &template.rules {
        for &(group, plural) in PROJECT_PLANE {
            let in_group = contains(&rule.api_groups, group) || contains(&rule.api_groups, "*");
            let named = contains(&rule.resources, plural) || contains(&rule.resources, "*");
            if in_group && named {
                rules.push(PolicyRule {
                    api_groups: vec![group.to_owned()],
                    resources: vec![plural.to_owned()],
                    resource_names: rule.resource_names.clone(),
                    non_resource_urls: Vec::new(),
                    verbs: rule.verbs.clone(),
                });
            }
        }
    }
    rules
}

/// Whether the template makes an owner of the cluster object of this id: a rule says `own`, or
/// allows every verb, and holds for this object. A rule with `resourceNames` holds for those alone.
pub fn is_owner(template: &RoleTemplate, cluster: &str) -> bool {
    template.rules.iter().any(|rule| {
        let clusters = contains(&rule.resources, "clusters") || contains(&rule.resources, "*");
        let group = contains(&rule.api_groups, GROUP) || contains(&rule.api_groups, "*");
        let named = rule.resource_names.is_empty() || contains(&rule.resource_names, cluster);
        clusters && group && named && (contains(&rule.verbs, "own") || contains(&rule.verbs, "*"))
    })
}
