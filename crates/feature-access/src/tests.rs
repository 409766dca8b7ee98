//! The role graph and what it makes of roles, without a server; with one: `test-kit`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{
    Cluster, ClusterRoleTemplateBinding, Project, ProjectRoleTemplateBinding, RoleTemplate, keys,
};
use controller::Key;
use feature_kit::Membership;
use feature_kit::access::CLUSTER_ADMIN;
use feature_kit::rbac::{ours, role_ref, rule, subject};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use proptest::prelude::*;

use crate::builtin::role_templates;
use crate::cluster_role_template_binding::{creator, management};
use crate::graph::testing::FakeGraph;
use crate::project_role_template_binding as in_project;
use crate::role_template::downstream::UsedRoles;
use crate::role_template::{downstream, effective, rules};

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
    let binding = |user: &str, role: &str| ClusterRoleBinding {
        metadata: ObjectMeta { name: Some(format!("b-{user}")), ..ObjectMeta::default() },
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![subject("User", user)]),
    };
    graph.admin(binding("u-1", CLUSTER_ADMIN));
    assert!(graph.is_admin(person("u-1")));
    assert!(!graph.is_admin(person("u-2")));
    graph.admin(binding("u-2", "view"));
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

fn shipped(name: &str) -> RoleTemplate {
    role_templates().into_iter().find(|role| role.name_any() == name).unwrap()
}

fn known() -> BTreeMap<String, Arc<RoleTemplate>> {
    let all = [shipped("cluster-owner"), shipped("cluster-member")];
    all.into_iter().map(|template| (template.name_any(), Arc::new(template))).collect()
}

fn names(roles: &[&str]) -> BTreeSet<String> {
    roles.iter().map(|&role| role.to_owned()).collect()
}

fn used(roles: &[&str]) -> UsedRoles {
    UsedRoles { in_cluster: names(roles), ..UsedRoles::default() }
}

fn used_in_projects(roles: &[&str]) -> UsedRoles {
    UsedRoles { in_projects: names(roles), ..UsedRoles::default() }
}

#[test]
fn downstream_each_used_role_is_one_role_and_one_binding_to_its_group() {
    let objects = downstream::desired("c-1", &used(&["cluster-member", "unknown"]), &known());
    let names: Vec<String> = objects.bindings.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["drover:cluster:cluster-member", "drover:cluster:cluster-owner"]);
    for (role, binding) in objects.roles.iter().zip(&objects.bindings) {
        assert_eq!(role.name_any(), binding.role_ref.name);
        assert_eq!(role.labels()[keys::DOWNSTREAM_OWNED], "role");
        assert_eq!(binding.subjects.as_ref().unwrap().len(), 1);
    }
    let subject = &objects.bindings[0].subjects.as_ref().unwrap()[0];
    assert_eq!(subject.name, "drover:cluster:c-1:cluster-member");
}

#[test]
fn an_external_role_is_bound_and_not_made() {
    let mut known = known();
    let external = RoleTemplate { external: true, ..RoleTemplate::default() };
    known.insert("view".to_owned(), Arc::new(external));
    let objects = downstream::desired("c-1", &used(&["view"]), &known);
    assert_eq!(objects.roles.len(), 1, "that of the owner");
    assert_eq!(objects.bindings[1].role_ref.name, "view");
}

/// A role in projects like `project-member`, without what it inherits.
fn deployer() -> RoleTemplate {
    RoleTemplate {
        context: "project".to_owned(),
        rules: vec![
            rule("apps", &["deployments"], &["*"]),
            rule("", &["namespaces"], &["create"]),
            rule("", &["persistentvolumes"], &["get"]),
            ours(&["projectloggings", "notifiers"], &["get"]),
        ],
        ..RoleTemplate::default()
    }
}

fn known_with_deployer() -> BTreeMap<String, Arc<RoleTemplate>> {
    let mut known = known();
    known.insert("deployer".to_owned(), Arc::new(deployer()));
    known
}

#[test]
fn downstream_a_role_in_projects_holds_cluster_wide_only_for_what_projects_share() {
    let objects =
        downstream::desired("c-1", &used_in_projects(&["deployer"]), &known_with_deployer());
    let roles: Vec<String> = objects.roles.iter().map(ResourceExt::name_any).collect();
    let wide = "drover:projects:deployer";
    assert_eq!(roles, ["drover:cluster:cluster-owner", "drover:cluster:deployer", wide]);
    let bindings: Vec<&str> =
        objects.bindings.iter().map(|binding| binding.role_ref.name.as_str()).collect();
    assert_eq!(bindings, ["drover:cluster:cluster-owner", wide], "others in namespaces only");
    let subjects = objects.bindings[1].subjects.as_ref().unwrap();
    assert_eq!(subjects[0].name, "drover:projects:c-1:deployer");
    let rules = objects.roles[2].rules.as_ref().unwrap();
    let found: Vec<_> = rules.iter().map(|rule| (rule.resources.clone(), &rule.verbs)).collect();
    let resources = |name: &str| Some(vec![name.to_owned()]);
    assert_eq!(
        found,
        [
            (resources("persistentvolumes"), &vec!["get".to_owned()]),
            (resources("namespaces"), &vec!["create".to_owned()]),
        ]
    );
}

#[test]
fn a_member_has_no_rights_on_our_kinds_downstream_and_reads_them_here() {
    let member = shipped("cluster-member");
    let below = rules::downstream(&member);
    assert!(below.iter().all(|rule| rule.api_groups != ["management.cattle.io"]));
    let here = rules::cluster_plane(&member);
    assert!(here[0].resources.contains(&"nodes".to_owned()));
    assert!(!here[0].verbs.contains(&"create".to_owned()));
    assert!(!rules::is_owner(&member, "c-1"));
    assert!(rules::is_owner(&shipped("cluster-owner"), "c-1"));
}

fn project() -> Project {
    let mut project = Project::default();
    project.metadata.name = Some("p-1".to_owned());
    project.metadata.namespace = Some("c-1".to_owned());
    project.metadata.uid = Some("uid-1".to_owned());
    project
}

#[test]
fn in_the_namespace_of_a_project_a_role_of_its_cluster_is_what_it_says_of_the_projects_kinds() {
    let made = |roles: &[&str]| in_project::management::desired(&project(), &used(roles), &known());
    let members = made(&["cluster-member", "unknown"]);
    assert!(members.is_empty(), "it says nothing of them: {members:?}");
    let owners = made(&["cluster-owner"]);
    assert_eq!(owners.len(), 1);
    let (role, binding) = &owners[&Key::namespaced("p-1", "cluster-owner")];
    let groups: Vec<_> = role.rules.iter().flatten().map(|rule| &rule.api_groups).collect();
    assert_eq!(groups.len(), 3, "{groups:?}");
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
fn templates_of_catalogs_are_for_members_of_the_project_and_administrative_roles() {
    let mut template = RoleTemplate {
        rules: vec![ours(&["catalogtemplates", "projectcatalogs"], &["get"])],
        ..RoleTemplate::default()
    };
    assert_eq!(rules::project_plane(&template), template.rules);
    let limited = rules::project_plane_of_cluster(&template);
    assert_eq!(limited, [ours(&["projectcatalogs"], &["get"])]);
    template.administrative = true;
    assert_eq!(rules::project_plane_of_cluster(&template), template.rules);
}

#[test]
fn members_of_a_project_see_that_project_and_use_what_is_in_it() {
    let used = used_in_projects(&["deployer"]);
    let objects = in_project::management::desired(&project(), &used, &known_with_deployer());
    let name = "drover:project:p-1:deployer";
    let (on_project, binding) = &objects[&Key::namespaced("c-1", name)];
    let rules = on_project.rules.as_ref().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].resource_names.as_deref(), Some(&["p-1".to_owned()][..]));
    assert_eq!(rules[0].verbs, ["get", "list", "watch", "create-namespaces"]);
    assert_eq!(on_project.owner_references()[0].uid, "uid-1");
    assert_eq!(binding.subjects.as_ref().unwrap()[0].name, name);
    let (inside, _) = &objects[&Key::namespaced("p-1", name)];
    let rules = inside.rules.as_ref().unwrap();
    assert_eq!(rules[0].resources.as_deref(), Some(&["projectloggings".to_owned()][..]));
    assert_eq!((objects.len(), rules.len()), (2, 1));
}

#[test]
fn the_role_with_own_on_projects_makes_an_owner_of_its_project_only() {
    let mut known = known();
    let own = RoleTemplate { rules: vec![ours(&["projects"], &["own"])], ..deployer() };
    known.insert("lead".to_owned(), Arc::new(own));
    let objects = in_project::management::desired(&project(), &used_in_projects(&["lead"]), &known);
    let (role, _) = &objects[&Key::namespaced("c-1", "drover:project:p-1:lead")];
    let rule = &role.rules.as_ref().unwrap()[0];
    assert_eq!(rule.verbs, ["*"]);
    assert_eq!(rule.resource_names.as_deref(), Some(&["p-1".to_owned()][..]));
    assert!(!rules::is_owner(&known["lead"], "c-1"));
}

#[test]
fn members_of_projects_see_their_cluster_and_what_its_projects_share() {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-1".to_owned());
    let used = used_in_projects(&["deployer"]);
    let objects = management::desired(&cluster, &used, &known_with_deployer());
    let rule = &objects.cluster_roles[0].rules.as_ref().unwrap()[0];
    assert_eq!(rule.verbs, ["get"]);
    assert_eq!(rule.resource_names.as_ref().unwrap(), &["c-1"]);
    let group = "drover:projects:c-1:deployer";
    let binding = &objects.cluster_role_bindings[0];
    assert_eq!(binding.subjects.as_ref().unwrap()[0].name, group);
    let rules = objects.roles[0].rules.as_ref().unwrap();
    assert_eq!(rules[0].resources.as_deref(), Some(&["notifiers".to_owned()][..]));
    assert_eq!((objects.roles.len(), rules.len()), (1, 1));
}

#[test]
fn an_external_role_has_the_rules_of_the_role_of_its_name_here() {
    let external = RoleTemplate { external: true, ..RoleTemplate::default() };
    let rules = Some(vec![feature_kit::rbac::to_kube(&rule("", &["secrets"], &["get"]))]);
    let role = k8s_openapi::api::rbac::v1::ClusterRole { rules, ..Default::default() };
    let known = effective::with_rules_of(&external, &role);
    assert_eq!(rules::project_plane(&known), [rule("", &["secrets"], &["get"])]);
}

#[test]
fn who_makes_a_project_gets_its_default_roles_and_otherwise_owns_it() {
    let mut known: BTreeMap<String, Arc<RoleTemplate>> = BTreeMap::new();
    let template = |change: fn(&mut RoleTemplate)| {
        let mut template = deployer();
        change(&mut template);
        Arc::new(template)
    };
    let roles = |known: &BTreeMap<String, Arc<RoleTemplate>>| -> Vec<String> {
        in_project::creator::roles(known).into_iter().map(str::to_owned).collect()
    };
    assert!(roles(&known).is_empty());
    known.insert("project-owner".to_owned(), template(|_| {}));
    assert_eq!(roles(&known), ["project-owner"]);
    known.insert(
        "locked".to_owned(),
        template(|it| {
            (it.locked, it.project_creator_default) = (true, true);
        }),
    );
    assert_eq!(roles(&known), ["project-owner"]);
    known.insert("lead".to_owned(), template(|it| it.project_creator_default = true));
    assert_eq!(roles(&known), ["lead"]);
    let binding = in_project::creator::desired(&project(), "u-1", "project-owner");
    assert_eq!(binding.name_any(), "creator-project-owner");
    assert_eq!(binding.namespace().as_deref(), Some("p-1"));
    assert_eq!((binding.project_name.as_str(), binding.user_name.as_str()), ("c-1:p-1", "u-1"));
}

#[test]
fn a_role_in_a_project_counts_in_this_project_and_its_cluster_and_ends_with_its_binding() {
    let mut graph = FakeGraph::default();
    graph.template("deployer", &["reader"]);
    let given = Arc::new(ProjectRoleTemplateBinding {
        project_name: "c-1:p-1".to_owned(),
        role_template_name: "deployer".to_owned(),
        user_name: "u-1".to_owned(),
        ..ProjectRoleTemplateBinding::default()
    });
    graph.bind_in_project("p-2", &given);
    assert!(graph.groups(person("u-1"), "c-1").is_empty(), "in the namespace of another project");
    graph.bind_in_project("p-1", &given);
    assert_eq!(
        graph.groups(person("u-1"), "c-1"),
        [
            "drover:project:p-1:deployer",
            "drover:project:p-1:reader",
            "drover:projects:c-1:deployer",
            "drover:projects:c-1:reader",
        ]
    );
    assert!(graph.groups(person("u-1"), "c-2").is_empty());
    graph.unbind_in_project("p-1", &given);
    assert!(graph.groups(person("u-1"), "c-1").is_empty() && graph.is_empty());
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
