//! The first projects and the rules of projects, without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::{
    Cluster, Condition, PolicyRule, ProjectRoleTemplateBinding, RoleTemplate, keys,
};
use controller::{Attempt, Key, ReconcileError, Truth};
use feature_kit::rbac::rule;
use feature_kit::{Review, ReviewOperation};
use serde_json::json;

use crate::project::admission::check_deletion;
use crate::project::initial_projects::desired;
use crate::project::namespace;
use crate::project::roles;
use crate::project::secrets;
use crate::project::secrets::copy::{self, Observed, Step, step};
use crate::project::secrets::status::{self, CopyStatus, Problem};

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-1".to_owned());
    cluster.metadata.uid = Some("1f0a9c37-5d2e-4b61-8c3f-7a9e0d1b2c4f".to_owned());
    cluster
}

#[test]
fn a_new_cluster_gets_default_and_system_under_names_that_stay() {
    let projects = desired(&cluster());
    let names: Vec<_> = projects.iter().map(|(_, p)| p.metadata.name.clone().unwrap()).collect();
    assert_eq!(projects[0].1.spec.display_name, "Default");
    assert_eq!(projects[1].1.spec.display_name, "System");
    assert!(projects[0].1.is_default() && projects[1].1.is_system());
    assert_ne!(names[0], names[1]);
    let again: Vec<_> =
        desired(&cluster()).into_iter().map(|(_, p)| p.metadata.name.unwrap()).collect();
    assert_eq!(names, again);
}

#[test]
fn a_project_that_was_made_once_is_not_made_again() {
    let mut cluster = cluster();
    cluster.status.conditions = vec![Condition {
        kind: "DefaultProjectCreated".to_owned(),
        status: "True".to_owned(),
        ..Condition::default()
    }];
    let left = desired(&cluster);
    assert_eq!(left.len(), 1);
    assert!(left[0].1.is_system());
}

#[test]
fn people_cannot_delete_the_system_project_but_its_clusters_removal_can() {
    let system = json!({"metadata": {"labels": {keys::SYSTEM_PROJECT: "true"}}});
    let other = json!({"metadata": {}});
    let review = |user: &'static str, old| Review {
        operation: ReviewOperation::Delete,
        user,
        groups: &[],
        namespace: "c-1",
        name: "p-1",
        dry_run: false,
        object: None,
        old: Some(old),
    };
    assert!(check_deletion(&review("u-1", &system)).is_err());
    assert!(check_deletion(&review("u-1", &other)).is_ok());
    let removal = "system:drover:controller:cluster-removal";
    assert!(check_deletion(&review(removal, &system)).is_ok());
}

#[test]
fn the_namespace_of_a_project_says_whose_it_is() {
    let project = Key { namespace: "c-1".to_owned(), name: "p-1".to_owned() };
    let made = namespace::desired(&project, "uid-1");
    assert_eq!(made.metadata.name.as_deref(), Some("p-1"));
    assert_eq!(namespace::project_of(&made.metadata), Some(project));
    assert_eq!(namespace::project_of(&Default::default()), None);
}

fn secret(body: serde_json::Value) -> k8s_openapi::api::core::v1::Secret {
    serde_json::from_value(body).unwrap()
}

#[test]
fn a_copy_has_what_the_original_has_and_says_whose_it_is() {
    let original = secret(json!({
        "metadata": {"name": "x", "namespace": "p-1", "uid": "u", "resourceVersion": "7",
            "labels": {"team": "shop"}, "finalizers": ["shop.io/keep"],
            "annotations": {"field.cattle.io/description": "d", "field.cattle.io/projectId": "c-1:p-1",
                "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        "type": "Opaque", "data": {"k": "dg=="},
    }));
    let made = copy::desired(&original, "c-1:p-1", "apps", None);
    assert_eq!((&made.data, &made.type_), (&original.data, &original.type_));
    assert_eq!(
        json!(made.metadata),
        json!({"name": "x", "namespace": "apps",
            "labels": {"team": "shop", "drover.io/owned": "project-secret"},
            "annotations": {"field.cattle.io/description": "d", "drover.io/copy-of": "c-1:p-1:x",
                "drover.io/copied-version": "u/7", "secret.user.cattle.io/secret": "true"}})
    );
    assert!(copy::is_copy(&made.metadata) && !copy::is_copy(&original.metadata));
    assert_eq!(step(&Observed::of(&original), Some(&Observed::of(&made))), Step::Nothing);
}

#[test]
fn a_copy_is_written_when_it_differs_and_made_anew_when_it_cannot_change() {
    let of = |kind: &str, data: serde_json::Value, version: &str| {
        let metadata = json!({"name": "x", "uid": "u", "resourceVersion": version});
        secret(json!({"metadata": metadata, "type": kind, "data": data}))
    };
    let original = of("Opaque", json!({"k": "dg=="}), "1");
    let copy = Observed::of(&copy::desired(&original, "c-1:p-1", "apps", None));
    let seen = Observed::of(&original);
    assert_eq!(step(&seen, None), Step::Create);
    let after =
        |kind: &str, data, version| step(&Observed::of(&of(kind, data, version)), Some(&copy));
    assert_eq!(after("Opaque", json!({"k": "dg=="}), "1"), Step::Nothing);
    assert_eq!(after("Opaque", json!({"k": "dg=="}), "2"), Step::Replace, "labels may differ");
    // Names and values do not run into one another.
    assert_eq!(after("Opaque", json!({"kv": ""}), "1"), Step::Replace);
    assert_eq!(after("other", json!({"k": "dg=="}), "2"), Step::DeleteAndCreate);
    let fixed = Observed { immutable: true, ..copy.clone() };
    let changed = Observed::of(&of("Opaque", json!({"k": "dw=="}), "2"));
    assert_eq!(step(&changed, Some(&fixed)), Step::DeleteAndCreate);
    let going = Observed { terminating: true, ..copy.clone() };
    assert_eq!(step(&changed, Some(&going)), Step::Nothing);
    let token = of("kubernetes.io/service-account-token", json!({}), "1");
    assert!(seen.is_original() && !Observed::of(&token).is_original());
}

#[test]
fn a_project_speaks_when_all_of_its_namespaces_were_looked_at() {
    let status = CopyStatus::default();
    let problem = |n: u32| Problem { reason: "NameTaken", message: format!("problem {n}") };
    let (both, first, second) =
        (["a1".to_owned(), "a2".to_owned()], ["a1".to_owned()], ["a2".to_owned()]);
    assert_eq!(status.note("a1", Some("p-1"), vec![problem(1)]), (None, vec![problem(1)]));
    assert_eq!(status.problems("p-1", &both), None);
    status.note("a2", Some("p-1"), Vec::new());
    assert_eq!(status.problems("p-1", &both), Some(vec![problem(1)]));
    // What is known is not new.
    let again = status.note("a1", Some("p-1"), vec![problem(1), problem(2)]);
    assert_eq!(again, (Some("p-1".to_owned()), vec![problem(2)]));
    // A namespace that was moved counts in neither before it was looked at.
    assert_eq!(status.problems("p-1", &second), Some(Vec::new()));
    assert_eq!(status.problems("p-2", &first), None);
    let many: Vec<Problem> = (0..8).map(problem).collect();
    let said = status::condition(&many);
    assert!(said.truth == Truth::False && said.message.ends_with("problem 4; and 3 more"));
    assert_eq!(status::condition(&[]).truth, Truth::True);
}

#[test]
fn people_hear_of_what_the_cluster_refuses_and_not_of_what_the_next_try_cures() {
    let answered = |code: u16| -> ReconcileError {
        let status =
            json!({"status": "Failure", "code": code, "message": "exceeded quota", "reason": ""});
        let status = serde_json::from_value(status).unwrap();
        let failed: Result<(), kube::Error> = Err(kube::Error::Api(Box::new(status)));
        failed.attempt(|| "create secret".to_owned()).unwrap_err()
    };
    let problem = secrets::refusal(&answered(403), "x", "apps").unwrap();
    assert_eq!(problem.reason, "CopyRefused");
    assert!(problem.message.contains("\"apps\"") && problem.message.ends_with("exceeded quota"));
    for code in [409, 500, 503] {
        assert_eq!(secrets::refusal(&answered(code), "x", "apps"), None);
    }
    let lost = ReconcileError::other("create secret", "the connection ended");
    assert_eq!(secrets::refusal(&lost, "x", "apps"), None);
}

fn template(rules: Vec<PolicyRule>, inherits: &[&str]) -> Arc<RoleTemplate> {
    Arc::new(RoleTemplate {
        rules,
        role_template_names: inherits.iter().map(|&name| name.to_owned()).collect(),
        ..RoleTemplate::default()
    })
}

fn known_roles() -> BTreeMap<String, Arc<RoleTemplate>> {
    let external = RoleTemplate { external: true, ..RoleTemplate::default() };
    [
        ("deployer", template(vec![rule("", &["namespaces"], &["create"])], &["edit"])),
        ("reader", template(vec![rule("", &["pods"], &["get"])], &[])),
        ("edit", Arc::new(external)),
    ]
    .map(|(name, template)| (name.to_owned(), template))
    .into()
}

fn given(role: &str, user: &str, account: &str) -> Arc<ProjectRoleTemplateBinding> {
    Arc::new(ProjectRoleTemplateBinding {
        role_template_name: role.to_owned(),
        user_name: user.to_owned(),
        service_account: account.to_owned(),
        ..ProjectRoleTemplateBinding::default()
    })
}

fn roles_of_project(
    namespaces: &[&str],
    bindings: &[Arc<ProjectRoleTemplateBinding>],
) -> roles::ProjectRoleObjects {
    let mut objects = roles::ProjectRoleObjects::default();
    let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
    let of = roles::ProjectUse { project: "p-1", namespaces, bindings };
    roles::add_project(&mut objects, of, &known_roles());
    objects
}

#[test]
fn each_used_role_is_bound_once_in_each_namespace_however_many_users_have_it() {
    let one = [given("deployer", "u-1", ""), given("reader", "u-1", "")];
    let objects = roles_of_project(&["a", "b"], &one);
    let bound: Vec<String> = objects
        .bindings
        .iter()
        .map(|it| format!("{}/{}", it.metadata.namespace.clone().unwrap(), it.role_ref.name))
        .collect();
    let expected = [
        "a/drover:cluster:deployer",
        "a/edit",
        "a/drover:cluster:reader",
        "b/drover:cluster:deployer",
        "b/edit",
        "b/drover:cluster:reader",
    ];
    assert_eq!(bound, expected);
    let subjects = objects.bindings[0].subjects.as_ref().unwrap();
    assert_eq!((subjects.len(), subjects[0].name.as_str()), (1, "drover:project:p-1:deployer"));
    let many: Vec<_> =
        (0..20).map(|n| given("deployer", &format!("u-{n}"), "")).chain(one).collect();
    assert_eq!(json!(roles_of_project(&["a", "b"], &many).bindings), json!(objects.bindings));
}

#[test]
fn members_see_the_namespaces_of_their_project_and_those_who_create_them_change_them() {
    let objects =
        roles_of_project(&["a", "b"], &[given("deployer", "u-1", ""), given("reader", "u-2", "")]);
    let [see, edit] = &objects.roles[..] else { panic!("{:?}", objects.roles) };
    let rule =
        |role: &k8s_openapi::api::rbac::v1::ClusterRole| role.rules.clone().unwrap().remove(0);
    assert_eq!(
        (rule(see).verbs, rule(see).resource_names),
        (vec!["get".to_owned()], Some(vec!["a".to_owned(), "b".to_owned()]))
    );
    assert_eq!(rule(edit).verbs, ["get", "update", "patch", "delete"]);
    let groups = |at: usize| -> Vec<String> {
        objects.cluster_bindings[at].subjects.iter().flatten().map(|it| it.name.clone()).collect()
    };
    let group = |role: &str| format!("drover:project:p-1:{role}");
    assert_eq!(groups(0), ["deployer", "edit", "reader"].map(group));
    assert_eq!(groups(1), ["deployer"].map(group));
}

#[test]
fn a_project_without_namespaces_or_members_gives_no_right_on_any_namespace() {
    let objects = roles_of_project(&[], &[given("deployer", "u-1", "")]);
    assert!(
        objects.roles.is_empty()
            && objects.cluster_bindings.is_empty()
            && objects.bindings.is_empty()
    );
    let objects = roles_of_project(&["a"], &[]);
    assert!(
        objects.roles.is_empty()
            && objects.cluster_bindings.is_empty()
            && objects.bindings.is_empty()
    );
    let objects = roles_of_project(&["a"], &[given("unknown", "u-1", "")]);
    assert!(objects.roles.is_empty() && objects.bindings.is_empty());
}

#[test]
fn a_service_account_is_bound_itself() {
    let objects = roles_of_project(&["a"], &[given("deployer", "", "ci:pusher")]);
    for binding in &objects.bindings {
        let subjects = binding.subjects.as_ref().unwrap();
        let account = &subjects[1];
        assert_eq!(
            (subjects.len(), account.kind.as_str(), account.name.as_str()),
            (2, "ServiceAccount", "pusher")
        );
        assert_eq!(account.namespace.as_deref(), Some("ci"));
    }
    assert_eq!(objects.cluster_bindings[0].subjects.as_ref().unwrap().len(), 3, "once");
}
