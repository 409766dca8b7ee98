//! What is to be in a cluster for the roles of one project. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_management::{PolicyRule, ProjectRoleTemplateBinding, RoleTemplate, keys};
use feature_kit::access::project_group;
use feature_kit::rbac::{role_ref, rule, subject, to_kube};
use feature_kit::roles::{cluster_role_name, creates_namespaces, with_inherited};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding, Subject};
use kube::api::ObjectMeta;

/// Prefix of the names of the bindings in namespaces; the role follows.
const BINDING_PREFIX: &str = "drover:project:";
/// Prefix of the names of the roles on the namespaces of a project; the project follows.
const NAMESPACES_PREFIX: &str = "drover:namespaces:";
/// Suffix of the name of the role that changes them. No name of a project has a colon.
const EDIT_SUFFIX: &str = ":edit";
/// What a member who may create namespaces may do with those of the project. Which project they are
/// in is checked in addition (`namespaces/check.rs`).
const EDIT: [&str; 4] = ["get", "update", "patch", "delete"];

/// The objects in a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectRoleObjects {
    pub roles: Vec<ClusterRole>,
    pub cluster_bindings: Vec<ClusterRoleBinding>,
    pub bindings: Vec<RoleBinding>,
}

/// A project, and how it is used.
pub(crate) struct ProjectUse<'a> {
    /// Name of the project.
    pub project: &'a str,
    /// Names of the namespaces that are in it.
    pub namespaces: BTreeSet<String>,
    pub bindings: &'a [Arc<ProjectRoleTemplateBinding>],
}

/// A role that is used in a project.
struct UsedRole<'a> {
    name: &'a str,
    template: &'a RoleTemplate,
    subjects: Vec<Subject>,
}

/// Adds what is to be there for one project.
pub(crate) fn add_project(
    objects: &mut ProjectRoleObjects,
    of: ProjectUse<'_>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) {
    // A role without names of objects would hold for all namespaces.
    if of.namespaces.is_empty() {
        return;
    }
    let used = used_roles(&of, known);
    for namespace in &of.namespaces {
        objects.bindings.extend(used.iter().map(|role| binding(namespace, role)));
    }
    let name = format!("{NAMESPACES_PREFIX}{}", of.project);
    add_role_on_namespaces(objects, name, &of.namespaces, &["get"], used.iter());
    let name = format!("{NAMESPACES_PREFIX}{}{EDIT_SUFFIX}", of.project);
    let creating = used.iter().filter(|role| creates_namespaces(role.template));
    add_role_on_namespaces(objects, name, &of.namespaces, &EDIT, creating);
}

/// The roles that are used in a project, and those that they inherit, with their members: a group,
/// and service accounts.
fn used_roles<'a>(
    of: &ProjectUse<'_>,
    known: &'a BTreeMap<String, Arc<RoleTemplate>>,
) -> Vec<UsedRole<'a>> {
    let mut accounts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for binding in of.bindings {
        for role in with_inherited([binding.role_template_name.clone()], known).into_keys() {
            let account = Some(binding.service_account.as_str()).filter(|it| !it.is_empty());
            accounts.entry(role).or_default().extend(account);
        }
    }
    let used = accounts.into_iter().filter_map(|(name, accounts)| {
        let group = subject("Group", &project_group(of.project, name));
        let accounts = accounts.into_iter().filter_map(service_account);
        let subjects = [group].into_iter().chain(accounts).collect();
        Some(UsedRole { name, template: known.get(name)?, subjects })
    });
    used.collect()
}

/// The subject that `<namespace>:<name>` stands for.
fn service_account(account: &str) -> Option<Subject> {
    let (namespace, name) = account.split_once(':')?;
    Some(Subject {
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
    })
}

fn metadata(name: String) -> ObjectMeta {
    let owned = (keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_PROJECT_ROLE.to_owned());
    ObjectMeta { name: Some(name), labels: Some([owned].into()), ..ObjectMeta::default() }
}

fn binding(namespace: &str, role: &UsedRole<'_>) -> RoleBinding {
    let annotations = [(keys::CLUSTER_ROLE_OWNER.to_owned(), role.name.to_owned())];
    RoleBinding {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            annotations: Some(annotations.into()),
            ..metadata(format!("{BINDING_PREFIX}{}", role.name))
        },
        role_ref: role_ref("ClusterRole", &cluster_role_name(role.name, role.template)),
        subjects: Some(role.subjects.clone()),
    }
}

fn add_role_on_namespaces<'a>(
    objects: &mut ProjectRoleObjects,
    name: String,
    namespaces: &BTreeSet<String>,
    verbs: &[&str],
    roles: impl Iterator<Item = &'a UsedRole<'a>>,
) {
    let mut subjects: Vec<Subject> = Vec::new();
    for subject in roles.flat_map(|role| &role.subjects) {
        // A service account has all roles that its role inherits.
        if !subjects.contains(subject) {
            subjects.push(subject.clone());
        }
    }
    if subjects.is_empty() {
        return;
    }
    let on_namespaces = PolicyRule {
        resource_names: namespaces.iter().cloned().collect(),
        ..rule("", &["namespaces"], verbs)
    };
    let metadata = metadata(name.clone());
    objects.roles.push(ClusterRole {
        metadata: metadata.clone(),
        rules: Some(vec![to_kube(&on_namespaces)]),
        aggregation_rule: None,
    });
    objects.cluster_bindings.push(ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", &name),
        subjects: Some(subjects),
    });
}
