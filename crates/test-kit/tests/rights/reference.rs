//! Who may do what, written down once more from what the documentation promises. Shares no code with the product.

use std::collections::{BTreeMap, BTreeSet};

pub const OWNER: &str = "cluster-owner";
pub const MEMBER: &str = "cluster-member";

/// What the rules of a role template say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Nothing,
    Everything,
    /// As the built-in role of members.
    Member,
    /// Everything about bindings.
    ManageBindings,
    ReadNodes,
    /// Everything about objects of this name.
    Named(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The cluster's own object.
    Cluster,
    Binding,
    Node,
    Project,
    /// In the namespace of a project.
    Secret,
}

/// A request about something in a cluster. The name is empty where a request has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask<'a> {
    pub verb: &'a str,
    pub resource: Resource,
    pub cluster: &'a str,
    pub name: &'a str,
}

const READ: [&str; 3] = ["get", "list", "watch"];

impl Rules {
    /// Whether the rules themselves allow the request.
    fn allow(self, ask: &Ask<'_>) -> bool {
        let reads = READ.contains(&ask.verb);
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Member => match ask.resource {
                Resource::Binding | Resource::Node => reads,
                Resource::Project => ask.verb == "create",
                Resource::Cluster | Resource::Secret => false,
            },
            Self::ManageBindings => ask.resource == Resource::Binding,
            Self::ReadNodes => ask.resource == Resource::Node && reads,
            Self::Named(name) => ask.name == name,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub rules: Rules,
    pub inherits: BTreeSet<String>,
    pub locked: bool,
    pub builtin: bool,
}

/// Whom a binding names, by the field that names them.
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

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The server's own administrator, who is no user.
    Root,
    User(&'static str),
}

/// All that decides.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    pub templates: BTreeMap<String, Template>,
    pub clusters: BTreeSet<String>,
    /// By cluster and name.
    pub bindings: BTreeMap<(String, String), Binding>,
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
    /// The role and all it inherits.
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

    pub fn is_admin(&self, actor: Actor) -> bool {
        match actor {
            Actor::Root => true,
            Actor::User(user) => self.admins.contains(user),
        }
    }

    pub fn may(&self, actor: Actor, ask: &Ask<'_>) -> bool {
        if self.is_admin(actor) {
            return true;
        }
        let Actor::User(user) = actor else { return false };
        let roles = self.roles(user, ask.cluster);
        // Whoever has a role in a cluster sees the cluster.
        let sees =
            ask.resource == Resource::Cluster && READ.contains(&ask.verb) && !roles.is_empty();
        let known = roles.iter().filter_map(|role| self.templates.get(role));
        sees || known.into_iter().any(|template| template.rules.allow(ask))
    }

    /// Who owns the cluster, or has the role there, may give it.
    pub fn may_give(&self, actor: Actor, cluster: &str, role: &str) -> bool {
        let Actor::User(user) = actor else { return true };
        let roles = self.roles(user, cluster);
        self.is_admin(actor) || roles.contains(OWNER) || roles.contains(role)
    }

    /// Whether a binding may be created.
    pub fn may_bind(&self, actor: Actor, cluster: &str, name: &str, role: &str) -> bool {
        let ask = Ask { verb: "create", resource: Resource::Binding, cluster, name: "" };
        self.clusters.contains(cluster)
            && !self.bindings.contains_key(&(cluster.to_owned(), name.to_owned()))
            && self.templates.get(role).is_some_and(|template| !template.locked)
            && self.may(actor, &ask)
            && self.may_give(actor, cluster, role)
    }

    /// Whether a role template may come to be like this.
    pub fn may_write_template(&self, actor: Actor, name: &str, new: &Template) -> bool {
        let inherits =
            |role: &String| self.templates.contains_key(role) && !self.closure(role).contains(name);
        self.is_admin(actor) && new.inherits.iter().all(inherits)
    }

    /// Whether the actor may change what only describes a role template, or delete one that is not in use.
    pub fn manages_roles(&self, actor: Actor) -> bool {
        let manager = matches!(actor, Actor::User(user) if self.role_managers.contains(user));
        manager || self.is_admin(actor)
    }

    /// Whether the actor may put namespaces into a project of the cluster and take them out.
    fn may_manage(&self, actor: Actor, cluster: &str, project: &str) -> bool {
        let verb = "manage-namespaces";
        self.may(actor, &Ask { verb, resource: Resource::Project, cluster, name: project })
    }

    /// Whether the actor may move a namespace of the cluster, who may write the namespace itself.
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
        for of in self.namespaces.values_mut() {
            of.take_if(|of| of == project);
        }
    }

    pub fn is_used(&self, role: &str) -> bool {
        self.bindings.values().any(|binding| binding.role == role)
            || self.templates.values().any(|template| template.inherits.contains(role))
    }

    /// Names of the groups by which the product knows the rights of a user.
    pub fn groups(&self, user: &str) -> BTreeSet<String> {
        let mut groups = BTreeSet::new();
        for cluster in &self.clusters {
            let roles = self.roles(user, cluster);
            groups.extend(roles.iter().map(|role| format!("drover:cluster:{cluster}:{role}")));
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

/// Names that new clusters and projects may have.
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
