//! The product: a whole management plane, its responses to writes, and the requests that it allows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiserver::UserInfo;
use apiserver::attributes::{Attributes, Decision};
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::{Clients, Membership, RoleResolver};
use kube::Client;
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, poll};

use super::planted::{Bug, Planted};
use super::reference::{Actor, OWNER, Reference, RequestAttributes, Resource};
use super::steps::rules_json;

/// Longest wait until the product agrees with the reference.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(4);

pub const USERS: [&str; 5] = ["u-a", "u-b", "u-c", "u-d", "u-e"];
/// A user who may write role templates and global roles, by RBAC of the management API.
pub const ROLE_MANAGER: &str = "u-d";
/// A user in [`OUTSIDE_GROUP`].
pub const OUTSIDER: &str = "u-e";
pub const OUTSIDE_GROUP: &str = "github_team://1";
/// Cluster names that are ambiguous when they are joined with role names by a dash.
pub const CLUSTERS: [&str; 3] = ["c-alpha", "prod2", "prod2-eu"];
/// The only cluster that has an agent.
pub const CONNECTED: &str = "c-alpha";
/// The names of all bindings.
pub const SLOTS: [&str; 5] = ["b0", "b1", "b2", "b3", "b4"];

pub struct Plane {
    pub world: World,
    /// The cluster that the product manages as [`CONNECTED`].
    pub downstream: Option<Arc<KubeApi>>,
    pub bug: Option<Bug>,
}

/// The requests that are compared for each user and cluster.
fn compared_requests(cluster: &str) -> Vec<RequestAttributes<'_>> {
    let request = |verb, resource, name| RequestAttributes { verb, resource, cluster, name };
    vec![
        request("get", Resource::Cluster, cluster),
        request("patch", Resource::Cluster, cluster),
        request("delete", Resource::Cluster, cluster),
        request("create", Resource::Binding, ""),
        request("patch", Resource::Binding, "b1"),
        request("delete", Resource::Binding, "b2"),
        request("list", Resource::Node, ""),
        request("create", Resource::Project, ""),
    ]
}

impl Plane {
    pub async fn start(bug: Option<Bug>) -> Self {
        let api = KubeApi::start(Profile::Management).await;
        let world = match bug {
            None => World::over(api).await,
            Some(bug) => {
                World::with_admission(api, |rules| Arc::new(Planted::new(rules, bug))).await
            }
        };
        let plane = Self { world, downstream: None, bug };
        plane.allow_role_manager().await;
        plane
    }

    async fn allow_role_manager(&self) {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "role-manager"},
            "rules": [{"apiGroups": [api_management::GROUP], "verbs": ["*"],
                "resources": ["roletemplates", "globalroles", "globalrolebindings"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "role-manager"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "role-manager"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                "name": ROLE_MANAGER}],
        });
        self.write(Actor::Root, "POST", &format!("{rbac}/clusterroles"), &role).await.unwrap();
        let path = format!("{rbac}/clusterrolebindings");
        self.write(Actor::Root, "POST", &path, &binding).await.unwrap();
    }

    pub fn outside(user: &str) -> Vec<String> {
        if user == OUTSIDER { vec![OUTSIDE_GROUP.to_owned()] } else { Vec::new() }
    }

    /// The groups of a user in the product.
    pub fn groups(&self, user: &str) -> Vec<String> {
        let groups = Self::outside(user);
        self.world.graph.management_groups(Membership { user, groups: &groups })
    }

    fn identity(&self, user: &str) -> Vec<String> {
        let mut groups = self.groups(user);
        groups.extend(["system:authenticated".to_owned(), GROUP_PEOPLE.to_owned()]);
        groups
    }

    pub fn client(&self, actor: Actor) -> Client {
        match actor {
            Actor::Root => self.world.admin(),
            Actor::User(user) => self.world.api.client_as(user, &self.identity(user)),
        }
    }

    /// One request, whose body is a merge patch or an object.
    pub async fn write(
        &self,
        actor: Actor,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, kind).body(bytes);
        self.client(actor).request(request.expect("a path")).await
    }

    /// Whether RBAC of the management API allows the request.
    fn allows(
        &self,
        user: &str,
        groups: &[String],
        request: &RequestAttributes<'_>,
        namespace: &str,
    ) -> bool {
        let (group, resource) = match request.resource {
            Resource::Cluster => (api_management::GROUP, "clusters"),
            Resource::Binding => (api_management::GROUP, "clusterroletemplatebindings"),
            Resource::Node => (api_management::GROUP, "nodes"),
            Resource::Project => (api_management::GROUP, "projects"),
            Resource::Secret => ("", "secrets"),
            Resource::ProjectBinding => (api_management::GROUP, "projectroletemplatebindings"),
        };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let attributes = Attributes {
            user: UserInfo::new(user, &groups),
            verb: request.verb.to_owned(),
            is_resource: true,
            group: group.to_owned(),
            version: "*".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: request.name.to_owned(),
            ..Attributes::default()
        };
        let decision = self.world.api.authorizer.authorize(&attributes);
        matches!(decision, Decision::Allow { .. })
    }

    /// The decisions of the product, as lines, each with the decision of the reference.
    fn compare(&self, reference: &Reference) -> BTreeMap<String, (bool, bool)> {
        let mut lines = BTreeMap::new();
        for user in USERS {
            let groups = self.identity(user);
            for cluster in &reference.clusters {
                for request in compared_requests(cluster) {
                    let namespace =
                        if request.resource == Resource::Cluster { "" } else { cluster };
                    let allowed = self.allows(user, &groups, &request, namespace);
                    let expected = reference.may(Actor::User(user), &request);
                    lines.insert(format!("{user} {request:?}"), (allowed, expected));
                }
            }
            for (cluster, project) in &reference.projects {
                for (verb, resource, name) in [
                    ("get", Resource::Secret, "s"),
                    ("create", Resource::ProjectBinding, ""),
                    ("delete", Resource::ProjectBinding, "b1"),
                ] {
                    let request = RequestAttributes { verb, resource, cluster, name };
                    let allowed = self.allows(user, &groups, &request, project);
                    let expected = reference.may_in_project(Actor::User(user), project, &request);
                    lines.insert(format!("{user} {project} {request:?}"), (allowed, expected));
                }
                for verb in ["get", "patch", "manage-namespaces"] {
                    let resource = Resource::Project;
                    let request = RequestAttributes { verb, resource, cluster, name: project };
                    let allowed = self.allows(user, &groups, &request, cluster);
                    let actor = Actor::User(user);
                    let expected = reference.may_with_project(actor, verb, cluster, project);
                    lines.insert(format!("{user} {verb} project {project}"), (allowed, expected));
                }
            }
        }
        lines
    }

    /// The first difference between product and reference.
    async fn difference(&self, reference: &Reference, whole: bool) -> Option<String> {
        for user in USERS {
            let (found, expected) = (self.groups(user), reference.groups(user));
            let found = found.into_iter().collect();
            if expected != found {
                return Some(format!("{user} is in {found:?}, and should be in {expected:?}"));
            }
        }
        for (name, template) in &reference.templates {
            let known = self.world.graph.template(name);
            let same = known.is_some_and(|known| {
                let rules = serde_json::to_value(&known.rules).unwrap_or_default();
                let is_known_rule = template.builtin || rules == rules_json(template.rules);
                is_known_rule
                    && known.locked == template.locked
                    && known.role_template_names.iter().eq(&template.inherits)
            });
            let used = !self.world.graph.users_of(name).is_empty();
            if !same || used != reference.is_used(name) {
                return Some(format!("role template {name} is not known as {template:?}"));
            }
        }
        if !whole {
            return None;
        }
        if let Some(difference) = self.namespaces_differ(reference).await {
            return Some(difference);
        }
        let lines = self.compare(reference).into_iter();
        let mut wrong = lines.filter(|(_, (allowed, expected))| allowed != expected);
        wrong.next().map(|(line, (allowed, _))| format!("{line}: allowed is {allowed}"))
    }

    /// Waits until the product allows what the reference allows; of `whole`, RBAC as well.
    ///
    /// # Errors
    /// The difference that remains after the longest wait.
    pub async fn settle(&self, reference: &Reference, whole: bool) -> Result<(), String> {
        poll(LOOK_INTERVAL, SETTLE_TIME_MAX, async || {
            self.difference(reference, whole).await.map_or(Ok(()), Err)
        })
        .await
    }

    /// The rights of users by cluster, to detect gains.
    pub fn snapshot(&self) -> BTreeMap<&'static str, Vec<String>> {
        USERS.into_iter().map(|user| (user, self.groups(user))).collect()
    }

    /// Rights that a user has now and did not have before, and that the actor could neither use nor
    /// grant. `reference`: the state before.
    pub fn gained(
        before: &BTreeMap<&'static str, Vec<String>>,
        after: &BTreeMap<&'static str, Vec<String>>,
        actor: &str,
        reference: &Reference,
    ) -> Option<String> {
        let held = &before[actor];
        for (user, groups) in after {
            for group in groups.iter().filter(|group| !before[user].contains(group)) {
                let owner = group.rsplit_once(':').map(|(cluster, _)| format!("{cluster}:{OWNER}"));
                let could = held.contains(group)
                    || owner.is_some_and(|owner| held.contains(&owner))
                    || held.iter().any(|group| group == "drover:global:admin")
                    || could_give_in_project(held, group, actor, reference);
                if !could {
                    return Some(format!("{actor} gave {user} {group}"));
                }
            }
        }
        None
    }
}

/// Whether a group is one of a project whose roles the actor, who was in the groups `held`, could
/// grant: the actor owned it or its cluster, had the role in its cluster, or has just created it.
fn could_give_in_project(held: &[String], group: &str, actor: &str, reference: &Reference) -> bool {
    // Comes with the group of one of the projects, which is checked.
    if group.starts_with("drover:projects:") {
        return true;
    }
    let parts: Vec<&str> = group.split(':').collect();
    let ["drover", "project", project, role] = parts.as_slice() else { return false };
    let Some((cluster, _)) = reference.projects.iter().find(|(_, name)| name == project) else {
        return true;
    };
    let in_cluster = |role: &str| held.contains(&format!("drover:cluster:{cluster}:{role}"));
    in_cluster(OWNER) || in_cluster(role) || reference.owns_project(actor, project)
}
