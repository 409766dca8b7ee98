//! What the role graph knows, and what follows from it for a person. Pure.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_management::global_role::ADMIN;
use api_management::kind::Kind;
use api_management::role_template::CLUSTER_OWNER;
use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, RoleTemplate,
};
use controller::{Change, Key};
use feature_kit::Membership;
use feature_kit::access::{
    CLUSTER_ADMIN, cluster_group, global_group, global_role_owns, project_group, projects_group,
};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use serde::Serialize;

use super::proposed::Holding;
use super::subject::Subject;
use crate::role_template::{closure, paths};

/// Group that every person is in; bindings to it do not make everybody an administrator.
const EVERYBODY: &str = "system:authenticated";

/// Where a role holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Global,
    Cluster(Arc<str>),
    Project { cluster: Arc<str>, project: Arc<str> },
}

impl Scope {
    /// The cluster that it is in; `None` for the global scope.
    fn cluster(&self) -> Option<&str> {
        match self {
            Self::Global => None,
            Self::Cluster(cluster) | Self::Project { cluster, .. } => Some(cluster),
        }
    }
}

/// One role in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    scope: Scope,
    role: Arc<str>,
}

/// Where a role group of a person comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleSource {
    /// The role group.
    pub group: String,
    /// Kind of the binding.
    pub kind: &'static str,
    /// Namespace of the binding; empty for a global one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the binding.
    pub name: String,
    /// The group, as an identity provider knows it, by which the person has the role; empty when
    /// the binding names the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub through_group: String,
    /// The role that the binding gives, followed by those that lead from it, by inheritance, to the
    /// role of the group.
    pub roles: Vec<String>,
}

/// A binding of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Global(Key),
    Cluster(Key),
    Project(Key),
}

impl Source {
    /// The kind and key of the binding.
    fn parts(&self) -> (&'static str, &Key) {
        match self {
            Self::Global(key) => (GlobalRoleBinding::KIND, key),
            Self::Cluster(key) => (ClusterRoleTemplateBinding::KIND, key),
            Self::Project(key) => (ProjectRoleTemplateBinding::KIND, key),
        }
    }
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct State {
    grants: HashMap<Subject, Vec<(Source, Grant)>>,
    /// Role template to those it inherits, direct ones only.
    inherits: HashMap<String, Vec<String>>,
    templates: HashMap<String, Arc<RoleTemplate>>,
    admins: HashMap<Subject, BTreeSet<Key>>,
}

impl State {
    /// Takes over a change of a global binding.
    pub fn note_global(&mut self, change: &Change<'_, GlobalRoleBinding>) {
        let source = Source::Global(change.key().clone());
        self.forget(&source, change.old().map(|old| Subject::of_global(old)));
        if let Change::Applied { new, .. } = change {
            let grant = Grant { scope: Scope::Global, role: new.global_role_name.as_str().into() };
            self.give(&source, Subject::of_global(new), &grant);
        }
    }

    /// Takes over a change of a binding in a cluster.
    pub fn note_cluster(&mut self, change: &Change<'_, ClusterRoleTemplateBinding>) {
        let source = Source::Cluster(change.key().clone());
        self.forget(&source, change.old().map(|old| Subject::of_cluster(old)));
        // A binding counts in the cluster whose namespace it is in and in no other.
        if let Change::Applied { new, key, .. } = change
            && new.cluster_name == key.namespace
        {
            let scope = Scope::Cluster(new.cluster_name.as_str().into());
            let grant = Grant { scope, role: new.role_template_name.as_str().into() };
            self.give(&source, Subject::of_cluster(new), &grant);
        }
    }

    /// Takes over a change of a binding in a project.
    pub fn note_project(&mut self, change: &Change<'_, ProjectRoleTemplateBinding>) {
        let source = Source::Project(change.key().clone());
        self.forget(&source, change.old().map(|old| Subject::of_project(old)));
        // A binding counts in the project whose namespace it is in and in no other.
        if let Change::Applied { new, key, .. } = change
            && let Some((cluster, project)) = new.project()
            && project == key.namespace
        {
            let scope = Scope::Project { cluster: cluster.into(), project: project.into() };
            let grant = Grant { scope, role: new.role_template_name.as_str().into() };
            self.give(&source, Subject::of_project(new), &grant);
        }
    }

    fn forget(&mut self, source: &Source, subjects: Option<Vec<Subject>>) {
        for subject in subjects.into_iter().flatten() {
            if let Some(grants) = self.grants.get_mut(&subject) {
                grants.retain(|(granted, _)| granted != source);
                if grants.is_empty() {
                    self.grants.remove(&subject);
                }
            }
        }
    }

    fn give(&mut self, source: &Source, subjects: Vec<Subject>, grant: &Grant) {
        for subject in subjects {
            self.grants.entry(subject).or_default().push((source.clone(), grant.clone()));
        }
    }

    /// Takes over a change of a role template.
    pub fn note_template(&mut self, change: &Change<'_, RoleTemplate>) {
        let name = &change.key().name;
        match change {
            Change::Applied { new, .. } => {
                self.inherits.insert(name.clone(), new.role_template_names.clone());
                self.templates.insert(name.clone(), (*new).clone());
            }
            Change::Deleted { .. } => {
                self.inherits.remove(name);
                self.templates.remove(name);
            }
        }
    }

    /// Takes over a change of a labelled ClusterRoleBinding, which can make administrators.
    pub fn note_admin(&mut self, change: &Change<'_, ClusterRoleBinding>) {
        let key = change.key().clone();
        self.admins.retain(|_, bindings| {
            bindings.remove(&key);
            !bindings.is_empty()
        });
        let Change::Applied { new, .. } = change else { return };
        if new.role_ref.kind != "ClusterRole" || new.role_ref.name != CLUSTER_ADMIN {
            return;
        }
        for subject in new.subjects.iter().flatten() {
            let subject = match subject.kind.as_str() {
                "User" => Subject::User(subject.name.as_str().into()),
                "Group" if subject.name != EVERYBODY => {
                    Subject::Group(subject.name.as_str().into())
                }
                _ => continue,
            };
            self.admins.entry(subject).or_default().insert(key.clone());
        }
    }

    /// The role template of this name, if it was observed.
    pub fn template(&self, name: &str) -> Option<Arc<RoleTemplate>> {
        self.templates.get(name).cloned()
    }

    /// Names of the role templates that inherit `role` directly.
    pub fn inheriting<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a str> {
        let all = self.inherits.iter();
        all.filter(move |(_, roles)| roles.iter().any(|it| it == role))
            .map(|(name, _)| name.as_str())
    }

    /// The role template and all that it inherits, directly or not.
    pub fn closure(&self, role: &str) -> BTreeSet<String> {
        closure([role.to_owned()], |role| self.inherits.get(role).into_iter().flatten().cloned())
    }

    /// Whether the person has the global role `admin`, directly or through a group.
    pub fn is_admin(&self, person: Membership<'_>) -> bool {
        Subject::of_person(person).any(|subject| {
            let grants = self.grants.get(&subject).into_iter().flatten();
            let mut global = grants.filter(|(_, grant)| grant.scope == Scope::Global);
            self.admins.contains_key(&subject) || global.any(|(_, grant)| &*grant.role == ADMIN)
        })
    }

    /// The role groups of a person in one cluster.
    pub fn cluster_groups(&self, cluster: &str, person: Membership<'_>) -> BTreeSet<String> {
        let mut groups = self.groups(person, |scope| scope.cluster() == Some(cluster));
        if self.is_admin(person) || self.owns_by_global_role(cluster, person) {
            groups.insert(cluster_group(cluster, CLUSTER_OWNER));
        }
        groups
    }

    /// Whether a global role of the person makes them owner of the cluster.
    fn owns_by_global_role(&self, cluster: &str, person: Membership<'_>) -> bool {
        Subject::of_person(person).any(|subject| {
            let grants = self.grants.get(&subject).into_iter().flatten();
            let mut global = grants.filter(|(_, grant)| grant.scope == Scope::Global);
            global.any(|(_, grant)| global_role_owns(&grant.role, cluster))
        })
    }

    /// The role groups of a person in the management API: those of all scopes.
    pub fn management_groups(&self, person: Membership<'_>) -> BTreeSet<String> {
        let mut groups = self.groups(person, |_| true);
        if self.is_admin(person) {
            groups.insert(global_group(ADMIN));
        }
        groups
    }

    /// Who has which role where, inherited ones included.
    pub fn holdings(&self) -> BTreeSet<Holding> {
        let mut holdings = BTreeSet::new();
        for (subject, grants) in &self.grants {
            for (_, grant) in grants {
                let (cluster, project) = match &grant.scope {
                    Scope::Global => ("", ""),
                    Scope::Cluster(cluster) => (&**cluster, ""),
                    Scope::Project { cluster, project } => (&**cluster, &**project),
                };
                let roles = match grant.scope {
                    Scope::Global => BTreeSet::from([grant.role.to_string()]),
                    Scope::Cluster(_) | Scope::Project { .. } => self.closure(&grant.role),
                };
                holdings.extend(roles.into_iter().map(|role| Holding {
                    role,
                    kind: subject.kind(),
                    name: subject.name().to_owned(),
                    cluster: cluster.to_owned(),
                    project: project.to_owned(),
                }));
            }
        }
        holdings
    }

    /// Where the role groups of a person in a cluster, or in the management API, come from.
    pub fn sources(&self, cluster: Option<&str>, person: Membership<'_>) -> Vec<RoleSource> {
        let mut sources = Vec::new();
        for subject in Subject::of_person(person) {
            let grants = self.grants.get(&subject).into_iter().flatten();
            let selected = |scope: &Scope| match cluster {
                // Some global roles own every cluster.
                Some(cluster) => scope.cluster() == Some(cluster) || *scope == Scope::Global,
                None => true,
            };
            for (source, grant) in grants.filter(|(_, grant)| selected(&grant.scope)) {
                self.add_sources(source, &subject, grant, cluster, &mut sources);
            }
        }
        sources
    }

    fn add_sources(
        &self,
        source: &Source,
        subject: &Subject,
        grant: &Grant,
        cluster: Option<&str>,
        sources: &mut Vec<RoleSource>,
    ) {
        let (kind, key) = source.parts();
        let mut add = |group: String, roles: &[String]| {
            sources.push(RoleSource {
                group,
                kind,
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                through_group: subject.group().to_owned(),
                roles: roles.to_vec(),
            });
        };
        let role = grant.role.to_string();
        let inherited = |name: &str| self.inherits.get(name).into_iter().flatten().cloned();
        match (&grant.scope, cluster) {
            (Scope::Global, None) => add(global_group(&role), &[role]),
            (Scope::Global, Some(cluster)) if global_role_owns(&role, cluster) => {
                add(cluster_group(cluster, CLUSTER_OWNER), &[role]);
            }
            (Scope::Global, Some(_)) => {}
            (Scope::Cluster(cluster), _) => {
                for (name, path) in paths(&role, inherited) {
                    add(cluster_group(cluster, &name), &path);
                }
            }
            (Scope::Project { cluster, project }, _) => {
                for (name, path) in paths(&role, inherited) {
                    add(project_group(project, &name), &path);
                    add(projects_group(cluster, &name), &path);
                }
            }
        }
    }

    fn groups(
        &self,
        person: Membership<'_>,
        is_selected: impl Fn(&Scope) -> bool,
    ) -> BTreeSet<String> {
        let mut groups = BTreeSet::new();
        for subject in Subject::of_person(person) {
            let grants = self.grants.get(&subject).into_iter().flatten();
            for (_, grant) in grants.filter(|(_, grant)| is_selected(&grant.scope)) {
                self.add_groups(grant, &mut groups);
            }
        }
        groups
    }

    fn add_groups(&self, grant: &Grant, groups: &mut BTreeSet<String>) {
        match &grant.scope {
            Scope::Global => {
                groups.insert(global_group(&grant.role));
            }
            Scope::Cluster(cluster) => {
                groups.extend(
                    self.closure(&grant.role).iter().map(|role| cluster_group(cluster, role)),
                );
            }
            Scope::Project { cluster, project } => {
                for role in self.closure(&grant.role) {
                    groups.insert(project_group(project, &role));
                    groups.insert(projects_group(cluster, &role));
                }
            }
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }
}
