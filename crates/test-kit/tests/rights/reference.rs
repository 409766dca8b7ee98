//! A second implementation of the rights, from the documentation. It shares no code with the
//! product.

use std::collections::{BTreeMap, BTreeSet};

pub const OWNER: &str = "cluster-owner";
pub const MEMBER: &str = "cluster-member";
pub const PROJECT_OWNER: &str = "project-owner";
/// `context` of a role template.
pub const IN_CLUSTERS: &str = "cluster";
pub const IN_PROJECTS: &str = "project";

/// The rules of a role template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateRules {
    Nothing,
    Everything,
    /// The built-in role of members.
    Member,
    /// All verbs on bindings.
    ManageBindings,
    ReadNodes,
    /// All verbs on objects of this name.
    Named(&'static str),
    /// Owns a project, and all verbs on what belongs to it.
    OwnProject,
    /// The built-in role of owners: the same, and it uses what all projects of a cluster share.
    ProjectOwner,
    /// All verbs on bindings of projects.
    ManageProjectBindings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The cluster's own object.
    Cluster,
    Binding,
    Node,
    Project,
    /// A Secret in the namespace of a project.
    Secret,
    /// A binding in the namespace of a project.
    ProjectBinding,
}

/// A request about an object in a cluster. The name is empty where a request has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestAttributes<'a> {
    pub verb: &'a str,
    pub resource: Resource,
    pub cluster: &'a str,
    pub name: &'a str,
}

const READ: [&str; 3] = ["get", "list", "watch"];

impl TemplateRules {
    /// Whether the rules themselves allow the request.
    fn allow(self, request: &RequestAttributes<'_>) -> bool {
        let reads = READ.contains(&request.verb);
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Member => match request.resource {
                Resource::Binding | Resource::Node => reads,
                Resource::Project => request.verb == "create",
                Resource::Cluster | Resource::Secret | Resource::ProjectBinding => false,
            },
            Self::ManageBindings => request.resource == Resource::Binding,
            Self::ReadNodes => request.resource == Resource::Node && reads,
            Self::Named(name) => request.name == name,
            Self::OwnProject | Self::ProjectOwner => {
                matches!(request.resource, Resource::Secret | Resource::ProjectBinding)
            }
            Self::ManageProjectBindings => request.resource == Resource::ProjectBinding,
        }
    }

    /// Whether they make an owner of the project in which they are given.
    fn own_project(self) -> bool {
        matches!(self, Self::Everything | Self::OwnProject | Self::ProjectOwner)
    }

    /// Whether they give, in a project, rights outside of it; those of names only for these, and
    /// those of the built-in owner only for what projects share.
    fn beyond_project(self) -> Option<Option<&'static str>> {
        match self {
            Self::Everything => Some(None),
            Self::Named(name) => Some(Some(name)),
            Self::ProjectOwner => Some(Some("what projects share")),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub rules: TemplateRules,
    pub context: &'static str,
    pub inherits: BTreeSet<String>,
    pub locked: bool,
    pub builtin: bool,
}

/// The subject of a binding, and the field that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub field: &'static str,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub role: String,
    pub subject: Subject,
}

/// The user of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The server's own administrator, which is no user object.
    Root,
    User(&'static str),
}

/// The whole state that rights depend on.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub templates: BTreeMap<String, Template>,
    pub clusters: BTreeSet<String>,
    /// By cluster and name.
    pub bindings: BTreeMap<(String, String), Binding>,
    /// By project and name.
    pub project_bindings: BTreeMap<(String, String), Binding>,
    /// Cluster and name.
    pub projects: BTreeSet<(String, String)>,
    /// The project of each namespace of the connected cluster.
    pub namespaces: BTreeMap<&'static str, Option<String>>,
    pub admins: BTreeSet<String>,
    /// Groups that identity providers put users into.
    pub outside: BTreeMap<String, BTreeSet<String>>,
    /// May write role templates, global roles and their bindings, by RBAC of the management API.
    pub role_managers: BTreeSet<String>,
    /// Login name by user.
    pub logins: BTreeMap<String, String>,
}

impl Reference {
    /// The role and all inherited roles.
    pub fn closure(&self, role: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([role.to_owned()]);
        loop {
            let inherited = found.iter().filter_map(|role| self.templates.get(role));
            let mut next: BTreeSet<String> =
                inherited.flat_map(|template| template.inherits.clone()).collect();
            next.extend(found.iter().cloned());
            if next == found {
                return found;
            }
            found = next;
        }
    }

    fn names(&self, subject: &Subject, user: &str) -> bool {
        match subject.field {
            "userName" => subject.value == user,
            "userPrincipalName" => subject.value == format!("local://{user}"),
            _ => self.outside.get(user).is_some_and(|groups| groups.contains(&subject.value)),
        }
    }

    pub fn roles(&self, user: &str, cluster: &str) -> BTreeSet<String> {
        let own = self
            .bindings
            .iter()
            .filter(|((of, _), binding)| of == cluster && self.names(&binding.subject, user));
        own.flat_map(|(_, binding)| self.closure(&binding.role)).collect()
    }

    /// The roles of a user in one project.
    pub fn project_roles(&self, user: &str, project: &str) -> BTreeSet<String> {
        let own = self
            .project_bindings
            .iter()
            .filter(|((of, _), binding)| of == project && self.names(&binding.subject, user));
        own.flat_map(|(_, binding)| self.closure(&binding.role)).collect()
    }

    fn rules<'a>(
        &'a self,
        roles: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = TemplateRules> + 'a {
        roles.iter().filter_map(|role| self.templates.get(role)).map(|template| template.rules)
    }

    /// Whether the user owns the project by a role in it.
    pub fn owns_project(&self, user: &str, project: &str) -> bool {
        self.rules(&self.project_roles(user, project)).any(TemplateRules::own_project)
    }

    /// Whether the actor may do this with an object in the namespace of a project.
    pub fn may_in_project(
        &self,
        actor: Actor,
        project: &str,
        request: &RequestAttributes<'_>,
    ) -> bool {
        let Actor::User(user) = actor else { return true };
        let roles = self.project_roles(user, project);
        let mut rules = self.rules(&roles);
        self.may(actor, request) || rules.any(|rules| rules.allow(request))
    }

    /// Whether the actor may do this with the project object.
    pub fn may_with_project(&self, actor: Actor, verb: &str, cluster: &str, project: &str) -> bool {
        let resource = Resource::Project;
        let request = RequestAttributes { verb, resource, cluster, name: project };
        let Actor::User(user) = actor else { return true };
        let sees = READ.contains(&verb) && !self.project_roles(user, project).is_empty();
        self.may(actor, &request) || sees || self.owns_project(user, project)
    }

    /// Whether the user may grant the role in the project: the user has it there or in the cluster,
    /// or owns one of them. An owner of the project grants only what holds in the project, and
    /// rights outside of it that the owner has.
    pub fn may_give_in_project(
        &self,
        actor: Actor,
        cluster: &str,
        project: &str,
        role: &str,
    ) -> bool {
        let Actor::User(user) = actor else { return true };
        let roles = self.project_roles(user, project);
        if self.may_give(actor, cluster, role) || roles.contains(role) {
            return true;
        }
        let held: Vec<_> = self.rules(&roles).filter_map(TemplateRules::beyond_project).collect();
        let given = self.closure(role);
        let mut given = self.rules(&given).filter_map(TemplateRules::beyond_project);
        self.owns_project(user, project)
            && given.all(|one| held.contains(&None) || held.contains(&one))
    }

    /// Whether a binding may be created in a project.
    pub fn may_bind_in_project(
        &self,
        actor: Actor,
        (cluster, project): (&str, &str),
        name: &str,
        role: &str,
    ) -> bool {
        let resource = Resource::ProjectBinding;
        let request = RequestAttributes { verb: "create", resource, cluster, name: "" };
        let is_bindable = |template: &Template| !template.locked && template.context == IN_PROJECTS;
        self.projects.contains(&(cluster.to_owned(), project.to_owned()))
            && !self.project_bindings.contains_key(&(project.to_owned(), name.to_owned()))
            && self.templates.get(role).is_some_and(is_bindable)
            && self.may_in_project(actor, project, &request)
            && self.may_give_in_project(actor, cluster, project, role)
    }

    /// Whether the user has a role in any project of the cluster.
    fn is_member_of_projects(&self, user: &str, cluster: &str) -> bool {
        let mut own = self.projects.iter().filter(|(of, _)| of == cluster);
        own.any(|(_, project)| !self.project_roles(user, project).is_empty())
    }

    pub fn is_admin(&self, actor: Actor) -> bool {
        match actor {
            Actor::Root => true,
            Actor::User(user) => self.admins.contains(user),
        }
    }

    pub fn may(&self, actor: Actor, request: &RequestAttributes<'_>) -> bool {
        if self.is_admin(actor) {
            return true;
        }
        let Actor::User(user) = actor else { return false };
        let roles = self.roles(user, request.cluster);
        // Every user with a role in a cluster can read the cluster.
        let sees = request.resource == Resource::Cluster
            && READ.contains(&request.verb)
            && !roles.is_empty()
            || request.resource == Resource::Cluster
                && request.verb == "get"
                && self.is_member_of_projects(user, request.cluster);
        let known = roles.iter().filter_map(|role| self.templates.get(role));
        sees || known.into_iter().any(|template| template.rules.allow(request))
    }

    /// Whether the user may grant the role: the user owns the cluster, or has the role there.
    pub fn may_give(&self, actor: Actor, cluster: &str, role: &str) -> bool {
        let Actor::User(user) = actor else { return true };
        let roles = self.roles(user, cluster);
        self.is_admin(actor) || roles.contains(OWNER) || roles.contains(role)
    }

    /// Whether a binding may be created.
    pub fn may_bind(&self, actor: Actor, cluster: &str, name: &str, role: &str) -> bool {
        let request =
            RequestAttributes { verb: "create", resource: Resource::Binding, cluster, name: "" };
        self.clusters.contains(cluster)
            && !self.bindings.contains_key(&(cluster.to_owned(), name.to_owned()))
            && self
                .templates
                .get(role)
                .is_some_and(|template| !template.locked && template.context == IN_CLUSTERS)
            && self.may(actor, &request)
            && self.may_give(actor, cluster, role)
    }

    /// Whether a role template may be changed to this state.
    pub fn may_write_template(&self, actor: Actor, name: &str, new: &Template) -> bool {
        let inherits =
            |role: &String| self.templates.contains_key(role) && !self.closure(role).contains(name);
        self.is_admin(actor) && new.inherits.iter().all(inherits)
    }

    /// Whether the actor may change descriptive fields of a role template, or delete an unused one.
    pub fn manages_roles(&self, actor: Actor) -> bool {
        let manager = matches!(actor, Actor::User(user) if self.role_managers.contains(user));
        manager || self.is_admin(actor)
    }

    /// Whether the actor may put namespaces into a project of the cluster and take them out.
    fn may_manage(&self, actor: Actor, cluster: &str, project: &str) -> bool {
        self.may_with_project(actor, "manage-namespaces", cluster, project)
    }

    /// Whether the actor, who may write the namespace itself, may move it to another project.
    pub fn may_move(&self, actor: Actor, cluster: &str, namespace: &str, to: Option<&str>) -> bool {
        let from = self.namespaces[namespace].as_deref();
        let is_there =
            |project: &str| self.projects.contains(&(cluster.to_owned(), project.to_owned()));
        from == to
            || from.is_none_or(|project| self.may_manage(actor, cluster, project))
                && to.is_none_or(|project| {
                    is_there(project) && self.may_manage(actor, cluster, project)
                })
    }

    pub fn remove_project(&mut self, cluster: &str, project: &str) {
        self.projects.remove(&(cluster.to_owned(), project.to_owned()));
        self.project_bindings.retain(|(of, _), _| of != project);
        for of in self.namespaces.values_mut() {
            of.take_if(|of| of == project);
        }
    }

    pub fn is_used(&self, role: &str) -> bool {
        let mut bindings = self.bindings.values().chain(self.project_bindings.values());
        bindings.any(|binding| binding.role == role)
            || self.templates.values().any(|template| template.inherits.contains(role))
    }

    /// Names of the groups that carry a user's rights in the product.
    pub fn groups(&self, user: &str) -> BTreeSet<String> {
        let mut groups = BTreeSet::new();
        for cluster in &self.clusters {
            let roles = self.roles(user, cluster);
            groups.extend(roles.iter().map(|role| format!("drover:cluster:{cluster}:{role}")));
        }
        for (cluster, project) in &self.projects {
            for role in self.project_roles(user, project) {
                groups.insert(format!("drover:project:{project}:{role}"));
                groups.insert(format!("drover:projects:{cluster}:{role}"));
            }
        }
        if self.admins.contains(user) {
            groups.insert("drover:global:admin".to_owned());
        }
        groups
    }

    pub fn remove_cluster(&mut self, cluster: &str) {
        self.clusters.remove(cluster);
        self.bindings.retain(|(of, _), _| of != cluster);
        let gone: Vec<_> = self.projects.iter().filter(|(of, _)| of == cluster).cloned().collect();
        for (cluster, project) in gone {
            self.remove_project(&cluster, &project);
        }
    }
}

/// Whether a new cluster or project may have this name.
pub fn may_be_named(resource: Resource, name: &str) -> bool {
    let taken = ["p-", "u-", "user-", "cattle-", "drover-", "kube-"];
    match resource {
        Resource::Cluster => {
            name != "default" && !taken.iter().any(|start| name.starts_with(start))
        }
        _ => {
            let generated = |text: &str| {
                text.len() == 5 && text.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
            };
            name.strip_prefix("p-").is_some_and(generated)
        }
    }
}
