//! Role templates in use: what a role comes with, where it is used, and what follows from its rules
//! beyond the namespaces that it holds in.
//!
//! A downstream cluster has one ClusterRole per role template in use ([`cluster_role_name`]). Roles
//! in a cluster are bound to it cluster-wide, roles in a project in each namespace of the project.
//! What a role in a project also needs cluster-wide is [`promoted`] and the right to create
//! namespaces ([`creates_namespaces`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use api_management::{PolicyRule, Project, ProjectRoleTemplateBinding, RoleTemplate};
use controller::{Key, Reflector, Reflectors, Whole};

/// Prefix of the downstream ClusterRoles of role templates, so that they never have the name of one
/// of the cluster's own.
pub const CLUSTER_ROLE_PREFIX: &str = "drover:cluster:";
/// Verbs that change nothing.
pub const READ: [&str; 3] = ["get", "list", "watch"];

/// API group and plural of cluster-scoped resources that members of projects may read, as far as
/// the rules of their roles say so.
const PROMOTED: &[(&str, &str)] = &[
    ("", "persistentvolumes"),
    ("apiregistration.k8s.io", "apiservices"),
    ("catalog.cattle.io", "clusterrepos"),
    ("storage.k8s.io", "storageclasses"),
];

/// `roles`, and all that they inherit, directly or not. Cycles end. Pure.
///
/// - `inherited_by`: the role templates that one names; none for one that does not exist.
pub fn closure<I>(
    roles: impl IntoIterator<Item = String>,
    inherited_by: impl Fn(&str) -> I,
) -> BTreeSet<String>
where
    I: IntoIterator<Item = String>,
{
    let mut closure = BTreeSet::new();
    let mut open: Vec<String> = roles.into_iter().collect();
    while let Some(role) = open.pop() {
        if !closure.contains(&role) {
            open.extend(inherited_by(&role));
            closure.insert(role);
        }
    }
    closure
}

/// `role` and all that it inherits, each with the shortest path to it from `role`, both included.
/// Cycles end. Pure.
///
/// - `inherited_by`: as for [`closure`].
pub fn paths<I>(role: &str, inherited_by: impl Fn(&str) -> I) -> BTreeMap<String, Vec<String>>
where
    I: IntoIterator<Item = String>,
{
    let mut paths = BTreeMap::from([(role.to_owned(), vec![role.to_owned()])]);
    let mut open = VecDeque::from([role.to_owned()]);
    while let Some(from) = open.pop_front() {
        let path = paths.get(&from).cloned().unwrap_or_default();
        for to in inherited_by(&from) {
            if !paths.contains_key(&to) {
                let longer = path.iter().cloned().chain([to.clone()]).collect();
                paths.insert(to.clone(), longer);
                open.push_back(to);
            }
        }
    }
    paths
}

/// All role templates that were observed, by name.
pub fn by_name(templates: &Reflector<Whole<RoleTemplate>>) -> BTreeMap<String, Arc<RoleTemplate>> {
    templates.all().into_iter().map(|(key, template)| (key.name, template)).collect()
}

/// The role templates that exist among `used` and all that they inherit, by name. Pure.
pub fn with_inherited(
    used: impl IntoIterator<Item = String>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> BTreeMap<&str, &RoleTemplate> {
    let inherited_by = |name: &str| {
        let template = known.get(name);
        template.into_iter().flat_map(|template| template.role_template_names.clone())
    };
    let names: BTreeSet<String> = closure(used, inherited_by);
    let found = names.iter().filter_map(|name| known.get_key_value(name));
    found.map(|(name, template)| (name.as_str(), &**template)).collect()
}

/// Name of the downstream ClusterRole with the rules of a role template. An external one is a
/// ClusterRole that the cluster itself has.
pub fn cluster_role_name(name: &str, template: &RoleTemplate) -> String {
    if template.external { name.to_owned() } else { format!("{CLUSTER_ROLE_PREFIX}{name}") }
}

/// Whether a list of a rule has the text, or everything.
pub fn covers(list: &[String], text: &str) -> bool {
    list.iter().any(|entry| entry == text || entry == "*")
}

/// Whether a member of a project with this role may create namespaces in the project, and change
/// and delete those that are in it.
pub fn creates_namespaces(template: &RoleTemplate) -> bool {
    template.rules.iter().any(|rule| {
        covers(&rule.api_groups, "")
            && covers(&rule.resources, "namespaces")
            && covers(&rule.verbs, "create")
            && rule.resource_names.is_empty()
    })
}

/// The rules of a role in a project that hold in the whole cluster: reads of cluster-scoped
/// resources that all projects share. Pure.
pub fn promoted(template: &RoleTemplate) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for rule in &template.rules {
        let verbs: Vec<String> = READ
            .iter()
            .filter(|verb| covers(&rule.verbs, verb))
            .map(|&verb| verb.to_owned())
            .collect();
        for &(group, plural) in PROMOTED {
            let is_named = covers(&rule.api_groups, group) && covers(&rule.resources, plural);
            if is_named && !verbs.is_empty() {
                rules.push(PolicyRule {
                    api_groups: vec![group.to_owned()],
                    resources: vec![plural.to_owned()],
                    resource_names: rule.resource_names.clone(),
                    non_resource_urls: Vec::new(),
                    verbs: verbs.clone(),
                });
            }
        }
    }
    rules
}

/// The bindings in projects, by project. Cheap to clone.
#[derive(Clone)]
pub struct ProjectBindings {
    pub projects: Arc<Reflector<Whole<Project>>>,
    pub bindings: Arc<Reflector<Whole<ProjectRoleTemplateBinding>>>,
}

impl ProjectBindings {
    /// Must be called inside a tokio runtime.
    pub fn new(reflectors: &Reflectors) -> Self {
        Self { projects: reflectors.get(), bindings: reflectors.get() }
    }

    /// Waits until all projects and bindings were read once.
    pub async fn synced(&self) {
        tokio::join!(self.projects.synced(), self.bindings.synced());
    }

    /// The bindings in a project that is not being deleted.
    pub fn of_project(&self, project: &Key) -> Vec<Arc<ProjectRoleTemplateBinding>> {
        let found = self.projects.get(project);
        if found.is_none_or(|project| project.metadata.deletion_timestamp.is_some()) {
            return Vec::new();
        }
        let id = Some((project.namespace.as_str(), project.name.as_str()));
        let bindings = self.bindings.in_namespace(&project.name).into_iter();
        bindings.map(|(_, binding)| binding).filter(|binding| binding.project() == id).collect()
    }

    /// The role templates that are used in a project, without those that they inherit.
    pub fn roles_of(&self, project: &Key) -> BTreeSet<String> {
        let bindings = self.of_project(project);
        bindings.iter().map(|binding| binding.role_template_name.clone()).collect()
    }

    /// The role templates that are used in any project of a cluster, without those that they
    /// inherit.
    pub fn roles_in_projects_of(&self, cluster: &str) -> BTreeSet<String> {
        let projects = self.projects.in_namespace(cluster);
        projects.iter().flat_map(|(key, _)| self.roles_of(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbac::rule;

    fn template(rules: Vec<PolicyRule>) -> RoleTemplate {
        RoleTemplate { rules, ..RoleTemplate::default() }
    }

    #[test]
    fn only_reads_of_shared_resources_hold_outside_the_namespaces_of_a_project() {
        let everything = promoted(&template(vec![rule("*", &["*"], &["*"])]));
        assert_eq!(everything.len(), PROMOTED.len());
        assert!(everything.iter().all(|rule| rule.verbs == READ));
        assert!(everything.iter().all(|rule| rule.resources != ["*"]));
        let writes = template(vec![rule("", &["persistentvolumes", "nodes"], &["delete"])]);
        assert!(promoted(&writes).is_empty());
        let reads = template(vec![rule("", &["persistentvolumes", "nodes"], &["get", "delete"])]);
        assert_eq!(promoted(&reads), [rule("", &["persistentvolumes"], &["get"])]);
    }

    #[test]
    fn a_role_creates_namespaces_when_its_rules_say_so_for_all_names() {
        assert!(creates_namespaces(&template(vec![rule("", &["namespaces"], &["create"])])));
        assert!(creates_namespaces(&template(vec![rule("*", &["*"], &["*"])])));
        let others = [
            rule("apps", &["namespaces"], &["*"]),
            rule("", &["namespaces"], &["get", "delete"]),
            PolicyRule {
                resource_names: vec!["a".to_owned()],
                ..rule("", &["namespaces"], &["*"])
            },
        ];
        assert!(!creates_namespaces(&template(others.to_vec())));
    }
}
