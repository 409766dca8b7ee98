//! The role graph and what it makes of roles, without a server; with one: `test-kit`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{Cluster, ClusterRoleTemplateBinding, RoleTemplate, keys};
use controller::Key;
use feature_kit::Membership;
use feature_kit::access::admin_binding;
use feature_kit::rbac::rule;
use kube::ResourceExt;
use proptest::prelude::*;

use crate::cluster_role_template_binding::{creator, management, projects};
use crate::graph::testing::FakeGraph;
use crate::role_template::{downstream, rules};
use crate::roles::{cluster_member, cluster_owner};

fn binding(cluster: &str, role: &str, user: &str) -> Arc<ClusterRoleTemplateBinding> {
    let [cluster_name, role_template_name, user_name] = [cluster, role, user].map(str::to_owned);
    Arc::new(ClusterRoleTemplateBinding {
        cluster_name,
        role_template_name,
        user_name,
        ..ClusterRoleTemplateBinding::default()
    })
}

fn person(user: &str) -> Membership<'_> {
    Membership { user, groups: &[] }
}

#[test]
fn a_role_counts_in_its_cluster_only_and_ends_with_its_binding() {
    let mut graph = FakeGraph::default();
    let owner = binding("c-1", "cluster-owner", "u-1");
    graph.bind("b", &owner);
    assert_eq!(graph.groups(person("u-1"), "c-1"), ["drover:cluster:c-1:cluster-owner"]);
    assert!(graph.groups(person("u-1"), "c-2").is_empty());
    assert!(graph.groups(person("u-2"), "c-1").is_empty());
    graph.unbind("b", &owner);
    assert!(graph.groups(person("u-1"), "c-1").is_empty());
    assert!(graph.is_empty());
}

#[test]
fn inherited_roles_come_along_and_loops_end() {
    let mut graph = FakeGraph::default();
    graph.template("a", &["b"]);
    graph.template("b", &["c", "a"]);
    graph.bind("x", &binding("c-1", "a", "u-1"));
    let groups = graph.groups(person("u-1"), "c-1");
    assert_eq!(groups.len(), 3);
}

#[test]
fn a_group_of_ours_brought_from_outside_gives_nothing() {
    let mut graph = FakeGraph::default();
    let mut granted = (*binding("c-1", "cluster-owner", "")).clone();
    granted.group_principal_name = "drover:global:admin".to_owned();
    graph.bind("b", &Arc::new(granted));
    let brought = ["drover:global:admin".to_owned()];
    let forger = Membership { user: "u-1", groups: &brought };
    assert!(graph.groups(forger, "c-1").is_empty());
    assert!(!graph.is_admin(forger));
}

#[test]
fn groups_from_an_identity_provider_carry_roles() {
    let mut graph = FakeGraph::default();
    let mut granted = (*binding("c-1", "cluster-member", "")).clone();
    granted.group_principal_name = "github_team://7".to_owned();
    graph.bind("b", &Arc::new(granted));
    let groups = ["github_team://7".to_owned()];
    let member = Membership { user: "u-9", groups: &groups };
    assert_eq!(graph.groups(member, "c-1"), ["drover:cluster:c-1:cluster-member"]);
}

#[test]
fn only_a_labelled_binding_to_cluster_admin_makes_an_administrator() {
    let mut graph = FakeGraph::default();
    graph.admin(admin_binding("u-1"));
    assert!(graph.is_admin(person("u-1")));
    assert!(!graph.is_admin(person("u-2")));
    let mut other = admin_binding("u-2");
    other.role_ref.name = "view".to_owned();
    graph.admin(other);
    assert!(!graph.is_admin(person("u-2")));
}

proptest! {
    /// However bindings come and go, a person has exactly the roles of the bindings that are there.
    #[test]
    fn groups_are_those_of_the_bindings_that_are_there(
        steps in proptest::collection::vec((0..6usize, 0..3u8, 0..3u8, 0..2u8), 0..40),
    ) {
        let mut graph = FakeGraph::default();
        let mut there: BTreeMap<usize, Arc<ClusterRoleTemplateBinding>> = BTreeMap::new();
        for (slot, cluster, role, user) in steps {
            let name = format!("b{slot}");
            if let Some(old) = there.remove(&slot) {
                graph.unbind(&name, &old);
                continue;
            }
            let new = binding(&format!("c-{cluster}"), &format!("r{role}"), &format!("u-{user}"));
            graph.bind(&name, &new);
            there.insert(slot, new);
        }
        for (cluster, user) in (0..3).flat_map(|c| (0..2).map(move |u| (c, u))) {
            let (cluster, user) = (format!("c-{cluster}"), format!("u-{user}"));
            let expected: BTreeSet<String> = there
                .values()
                .filter(|b| b.cluster_name == cluster && b.user_name == user)
                .map(|b| format!("drover:cluster:{cluster}:{}", b.role_template_name))
                .collect();
            let found: BTreeSet<String> =
                graph.groups(person(&user), &cluster).into_iter().collect();
            prop_assert_eq!(found, expected);
        }
    }
}

fn known() -> BTreeMap<String, Arc<RoleTemplate>> {
    let all = [cluster_owner(), cluster_member()];
    all.into_iter().map(|template| (template.name_any(), Arc::new(template))).collect()
}

fn used(roles: &[&str]) -> BTreeSet<String> {
    roles.iter().map(|&role| role.to_owned()).collect()
}

#[test]
fn downstream_each_used_role_is_one_role_and_one_binding_to_its_group() {
    let objects = downstream::desired("c-1", &used(&["cluster-member", "unknown"]), &known());
    let names: Vec<String> = objects.iter().map(|(_, binding)| binding.name_any()).collect();
    assert_eq!(names, ["drover:cluster:cluster-member", "drover:cluster:cluster-owner"]);
    for (role, binding) in &objects {
        let role = role.as_ref().unwrap();
        assert_eq!(role.name_any(), binding.role_ref.name);
        assert_eq!(role.labels()[keys::DOWNSTREAM_OWNED], "role");
        assert_eq!(binding.subjects.as_ref().unwrap().len(), 1);
    }
    let subject = &objects[0].1.subjects.as_ref().unwrap()[0];
    assert_eq!(subject.name, "drover:cluster:c-1:cluster-member");
}

#[test]
fn an_external_role_is_bound_and_not_made() {
    let mut known = known();
    let external = RoleTemplate { external: true, ..RoleTemplate::default() };
    known.insert("view".to_owned(), Arc::new(external));
    let objects = downstream::desired("c-1", &used(&["view"]), &known);
    let (role, binding) = &objects[1];
    assert!(role.is_none());
    assert_eq!(binding.role_ref.name, "view");
}

#[test]
fn a_member_has_no_rights_on_our_kinds_downstream_and_reads_them_here() {
    let member = cluster_member();
    let below = rules::downstream(&member);
    assert!(below.iter().all(|rule| rule.api_groups != ["management.cattle.io"]));
    let here = rules::cluster_plane(&member);
    assert!(here[0].resources.contains(&"nodes".to_owned()));
    assert!(!here[0].verbs.contains(&"create".to_owned()));
    assert!(!rules::is_owner(&member, "c-1"));
    assert!(rules::is_owner(&cluster_owner(), "c-1"));
}

#[test]
fn in_the_namespace_of_a_project_a_role_is_what_it_says_of_secrets() {
    let project = Key::namespaced("c-1", "p-1");
    let made = |used_names: &[&str]| {
        let known = known();
        projects::desired(&project, &used(used_names), &known)
    };
    assert!(made(&["cluster-member", "unknown"]).is_empty(), "it says nothing of them");
    let owners = made(&["cluster-owner"]);
    let (role, binding) = &owners["cluster-owner"];
    let rules = role.rules.as_ref().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(
        (rules[0].resources.as_deref(), rules[0].api_groups.as_deref()),
        (Some(&["secrets".to_owned()][..]), Some(&[String::new()][..]))
    );
    assert_eq!(role.namespace().as_deref(), Some("p-1"));
    assert_eq!(binding.subjects.as_ref().unwrap()[0].name, "drover:cluster:c-1:cluster-owner");
    // What names Secrets in another group, or something else beside them, gives no more than them.
    let template = RoleTemplate {
        rules: vec![
            rule("", &["secrets", "configmaps"], &["get"]),
            rule("apps", &["secrets", "*"], &["get"]),
        ],
        ..RoleTemplate::default()
    };
    assert_eq!(rules::project_plane(&template), [rule("", &["secrets"], &["get"])]);
}

#[test]
fn members_of_a_cluster_see_that_cluster_and_no_other() {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-1".to_owned());
    let objects = management::desired(&cluster, &used(&["cluster-member"]), &known());
    let rule = &objects.cluster_roles[0].rules.as_ref().unwrap()[0];
    assert_eq!(rule.resource_names.as_ref().unwrap(), &["c-1"]);
    assert!(!rule.verbs.contains(&"*".to_owned()));
    assert_eq!(objects.roles[0].namespace().as_deref(), Some("c-1"));
    let owners = management::desired(&cluster, &used(&["cluster-owner"]), &known());
    assert_eq!(owners.cluster_roles[0].rules.as_ref().unwrap()[0].verbs, ["*"]);
    let nobody = management::desired(&cluster, &used(&[]), &known());
    assert!(nobody.cluster_roles.is_empty() && nobody.role_bindings.is_empty());
}

#[test]
fn who_makes_a_cluster_owns_it_and_the_servers_own_have_no_owner() {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-1".to_owned());
    assert!(creator::desired(&cluster).is_none());
    let creator_id = [(keys::CREATOR_ID.to_owned(), "u-1".to_owned())];
    cluster.metadata.annotations = Some(creator_id.into());
    let binding = creator::desired(&cluster).unwrap();
    assert_eq!(binding.user_name, "u-1");
    assert_eq!(binding.role_template_name, "cluster-owner");
    assert_eq!(binding.namespace().as_deref(), Some("c-1"));
}
