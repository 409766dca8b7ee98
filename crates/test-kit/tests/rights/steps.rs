//! Random steps, done by the product and by the reference.

use std::collections::BTreeSet;
use std::time::Duration;

use api_management::User;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use test_kit::reached;
use tokio::task::JoinSet;

use super::plane::{
    CLUSTERS, CONNECTED, OUTSIDE_GROUP, OUTSIDER, Plane, ROLE_MANAGER, SLOTS, USERS,
};
use super::planted::Bug;
use super::reference::{
    Actor, Ask, Binding, MEMBER, OWNER, Reference, Resource, Rules, Subject, Template, may_be_named,
};

const API: &str = "/apis/management.cattle.io/v3";
/// Longest wait for an answer that the state calls for but that a watch has not brought about yet.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const ANSWER_INTERVAL: Duration = Duration::from_millis(2);
/// Role templates that come and go.
const TEMPLATES: [&str; 5] = ["eu-view", "view", "manage", "narrow", "hub"];
const RULES: [Rules; 8] = [
    Rules::Nothing,
    Rules::Everything,
    Rules::ManageBindings,
    Rules::ManageBindings,
    Rules::ReadNodes,
    Rules::Named("one-object"),
    Rules::Named("prod2"),
    Rules::Named("b1"),
];
const LOGINS: [&str; 3] = ["ann", "bob", "cy"];
/// Projects of one cluster, at most.
const PROJECTS_MAX: usize = 3;
/// Steps between two looks at all that RBAC allows, when none of them changed a role.
const WHOLE_EVERY: usize = 25;

pub struct Run {
    pub plane: Plane,
    pub reference: Reference,
    pub random: StdRng,
    /// What was done, the last at the end.
    pub log: Vec<String>,
    users_made: usize,
    /// Writes that were done, to see that much happens.
    pub done: usize,
}

fn rules_json(rules: Rules) -> Value {
    let group = api_management::GROUP;
    match rules {
        Rules::Nothing | Rules::Member => json!([]),
        Rules::Everything => json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
        Rules::ManageBindings => {
            json!([{"apiGroups": [group], "resources": ["clusterroletemplatebindings"], "verbs": ["*"]}])
        }
        Rules::ReadNodes => {
            json!([{"apiGroups": [group], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}])
        }
        Rules::Named(name) => {
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": [name]}])
        }
    }
}

impl Run {
    pub async fn start(seed: u64, bug: Option<Bug>) -> Self {
        let mut reference = Reference::default();
        for (name, rules) in [(OWNER, Rules::Everything), (MEMBER, Rules::Member)] {
            let template =
                Template { rules, inherits: BTreeSet::new(), locked: false, builtin: true };
            reference.templates.insert(name.to_owned(), template);
        }
        reference.role_managers.insert(ROLE_MANAGER.to_owned());
        let outside = BTreeSet::from([OUTSIDE_GROUP.to_owned()]);
        reference.outside.insert(OUTSIDER.to_owned(), outside);
        let random = StdRng::seed_from_u64(seed);
        let plane = Plane::start(bug).await;
        let mut run = Self { plane, reference, random, log: Vec::new(), users_made: 0, done: 0 };
        for name in CLUSTERS {
            run.put_cluster(Actor::Root, name).await.expect("a new cluster");
        }
        for name in TEMPLATES {
            let new = Template {
                rules: Rules::ReadNodes,
                inherits: BTreeSet::new(),
                locked: false,
                builtin: false,
            };
            run.put_template(Actor::Root, name, new).await.expect("a new role template");
        }
        run
    }

    /// # Errors
    /// In what the product differed from the reference, after which step.
    pub async fn steps(&mut self, count: usize) -> Result<(), String> {
        for step in 0..count {
            let before = self.plane.snapshot();
            let changed = self.step().await?;
            let whole = changed.is_some_and(|change| change.roles) || step % WHOLE_EVERY == 0;
            self.done += usize::from(changed.is_some());
            self.plane.settle(&self.reference, whole).await?;
            if let Some(Change { actor: Actor::User(actor), .. }) = changed
                && let Some(gain) = Plane::gained(&before, &self.plane.snapshot(), actor)
            {
                return Err(gain);
            }
        }
        Ok(())
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.random).expect("there is one")
    }

    pub fn actor(&mut self) -> Actor {
        if self.random.random_ratio(2, 5) { Actor::Root } else { Actor::User(self.one(&USERS)) }
    }

    async fn step(&mut self) -> Result<Option<Change>, String> {
        match self.random.random_range(0..1000) {
            0..350 => self.bind().await,
            350..560 => self.edit_binding().await,
            560..600 => self.write_namespace().await,
            600..700 => self.delete_binding().await,
            700..850 => self.write_template().await,
            850..870 => self.delete_template().await,
            870..874 => self.delete_cluster().await,
            874..900 => self.create_cluster().await,
            900..930 => self.create_project().await,
            930..940 => self.delete_project().await,
            940..955 => self.make_admin().await,
            955..975 => self.log_in_names().await,
            _ => self.write_global().await,
        }
    }

    /// Asks until the answer is the one that the reference gives; an answer that allows more than it is final.
    async fn ask(
        &mut self,
        actor: Actor,
        method: &str,
        path: &str,
        body: &Value,
        wanted: bool,
    ) -> Result<Option<Value>, String> {
        self.log.push(format!("{actor:?} {method} {path} {body}: {wanted}"));
        let plane = &self.plane;
        // A refusal that should not be may be that of a watch which is behind.
        let answered = reached(ANSWER_INTERVAL, ANSWER_TIME_MAX, async || {
            match plane.write(actor, method, path, body).await {
                Err(kube::Error::Api(_)) if !wanted => Ok(Ok(None)),
                Ok(_) if !wanted => Ok(Err("and did".to_owned())),
                answer => answer.map(|answer| Ok(Some(answer))),
            }
        })
        .await;
        let what = format!("{method} {path} {body}");
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(done)) => Err(format!("{actor:?} may not {what}, {done}")),
            Err(error) => Err(format!("{actor:?} may {what}, and got {error}")),
        }
    }

    fn subject(&mut self) -> Subject {
        let user = self.one(&USERS);
        let (field, value) = match self.random.random_range(0..6) {
            0..3 => ("userName", user.to_owned()),
            3 => ("userPrincipalName", format!("local://{user}")),
            4 => ("userPrincipalName", "github_user://7".to_owned()),
            _ => (self.one(&["groupName", "groupPrincipalName"]), OUTSIDE_GROUP.to_owned()),
        };
        Subject { field, value }
    }

    /// Cluster and name of a binding, mostly of one that is there.
    fn target(&mut self) -> (String, String) {
        let there: Vec<_> = self.reference.bindings.keys().cloned().collect();
        let chosen = there.choose(&mut self.random).cloned();
        let any = self.random.random_ratio(1, 4);
        chosen
            .filter(|_| !any)
            .unwrap_or_else(|| (self.one(&CLUSTERS).to_owned(), self.one(&SLOTS).to_owned()))
    }

    async fn bind(&mut self) -> Result<Option<Change>, String> {
        let (actor, cluster, name) = (self.actor(), self.one(&CLUSTERS), self.one(&SLOTS));
        let roles = [[OWNER, MEMBER].as_slice(), &TEMPLATES].concat();
        let (role, subject) = (self.one(&roles), self.subject());
        let wanted = self.reference.may_bind(actor, cluster, name, role);
        let body = json!({"apiVersion": api_management::API_VERSION,
            "kind": "ClusterRoleTemplateBinding", "metadata": {"name": name},
            "roleTemplateName": role, subject.field: subject.value});
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings");
        if self.ask(actor, "POST", &path, &body, wanted).await?.is_none() {
            return Ok(None);
        }
        let binding = Binding { role: role.to_owned(), subject };
        self.reference.bindings.insert((cluster.to_owned(), name.to_owned()), binding);
        Ok(Some(Change { actor, roles: true }))
    }

    async fn edit_binding(&mut self) -> Result<Option<Change>, String> {
        let (actor, (cluster, name)) = (self.actor(), self.target());
        let (cluster, name) = (cluster.as_str(), name.as_str());
        let user = self.one(&USERS);
        let change = match self.random.random_range(0..9) {
            0 => json!({"userName": user}),
            1 | 2 => json!({"userPrincipalName": format!("local://{user}")}),
            3 => json!({"groupName": OUTSIDE_GROUP}),
            4 => json!({"groupPrincipalName": OUTSIDE_GROUP}),
            5 => json!({"roleTemplateName": self.one(&[OWNER, MEMBER, "manage"])}),
            6 => json!({"clusterName": self.one(&CLUSTERS)}),
            7 => json!({"userName": null, "userPrincipalName": null, "groupName": "everybody"}),
            _ => json!({"metadata": {"labels": {"round": self.log.len().to_string()}}}),
        };
        let key = (cluster.to_owned(), name.to_owned());
        let ask = Ask { verb: "patch", resource: Resource::Binding, cluster, name };
        let wanted = self.reference.may(actor, &ask)
            && self
                .reference
                .bindings
                .get(&key)
                .is_some_and(|binding| says(binding, cluster, &change));
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings/{name}");
        let done = self.ask(actor, "PATCH", &path, &change, wanted).await?;
        Ok(done.map(|_| Change { actor, roles: false }))
    }

    async fn delete_binding(&mut self) -> Result<Option<Change>, String> {
        let (actor, key) = (self.actor(), self.target());
        let (cluster, name) = (key.0.as_str(), key.1.as_str());
        let ask = Ask { verb: "delete", resource: Resource::Binding, cluster, name };
        let wanted = self.reference.may(actor, &ask) && self.reference.bindings.contains_key(&key);
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings/{name}");
        let done = self.ask(actor, "DELETE", &path, &Value::Null, wanted).await?;
        if done.is_some() {
            self.reference.bindings.remove(&key);
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    async fn write_template(&mut self) -> Result<Option<Change>, String> {
        let (actor, name) = (self.actor(), self.one(&TEMPLATES));
        let old = self.reference.templates.get(name).cloned();
        let mut new = old.clone().unwrap_or(Template {
            rules: Rules::Nothing,
            inherits: BTreeSet::new(),
            locked: false,
            builtin: false,
        });
        match self.random.random_range(0..6) {
            0..3 => new.rules = self.one(&RULES),
            3 | 4 if name == "hub" => {
                new.inherits = BTreeSet::from([self.one(&TEMPLATES).to_owned()]);
            }
            3 => new.locked = !new.locked,
            _ => new.inherits = BTreeSet::new(),
        }
        self.put_template(actor, name, new).await
    }

    async fn put_template(
        &mut self,
        actor: Actor,
        name: &str,
        new: Template,
    ) -> Result<Option<Change>, String> {
        let old = self.reference.templates.get(name).cloned();
        let mut body = json!({"context": "cluster", "rules": rules_json(new.rules),
            "roleTemplateNames": new.inherits, "locked": new.locked});
        let same = old.as_ref() == Some(&new);
        let wanted = if same {
            self.reference.manages_roles(actor)
        } else {
            self.reference.may_write_template(actor, name, &new)
        };
        let done = if old.is_some() {
            body["description"] = self.log.len().to_string().into();
            let path = format!("{API}/roletemplates/{name}");
            self.ask(actor, "PATCH", &path, &body, wanted).await?
        } else {
            body["apiVersion"] = api_management::API_VERSION.into();
            body["kind"] = "RoleTemplate".into();
            body["metadata"] = json!({"name": name});
            self.ask(actor, "POST", &format!("{API}/roletemplates"), &body, wanted).await?
        };
        if done.is_some() {
            self.reference.templates.insert(name.to_owned(), new);
        }
        Ok(done.map(|_| Change { actor: Actor::Root, roles: true }))
    }

    async fn delete_template(&mut self) -> Result<Option<Change>, String> {
        let (actor, name) = (self.actor(), self.one(&[TEMPLATES.as_slice(), &[MEMBER]].concat()));
        let free = self.reference.templates.get(name).is_some_and(|template| !template.builtin)
            && !self.reference.is_used(name);
        let wanted = free && self.reference.manages_roles(actor);
        let path = format!("{API}/roletemplates/{name}");
        let done = self.ask(actor, "DELETE", &path, &Value::Null, wanted).await?;
        if done.is_some() {
            self.reference.templates.remove(name);
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    async fn create_cluster(&mut self) -> Result<Option<Change>, String> {
        let names = [CLUSTERS.as_slice(), &CLUSTERS, &["p-x7k2p", "u-a", "kube-system", "default"]];
        let (actor, name) = (self.actor(), self.one(&names.concat()));
        self.put_cluster(actor, name).await
    }

    async fn put_cluster(&mut self, actor: Actor, name: &str) -> Result<Option<Change>, String> {
        let wanted = self.reference.is_admin(actor)
            && may_be_named(Resource::Cluster, name)
            && !self.reference.clusters.contains(name);
        let body = json!({"apiVersion": api_management::API_VERSION, "kind": "Cluster",
            "metadata": {"name": name}, "spec": {}});
        if self.ask(actor, "POST", &format!("{API}/clusters"), &body, wanted).await?.is_none() {
            return Ok(None);
        }
        self.reference.clusters.insert(name.to_owned());
        self.plane.world.token(name).await;
        if name == CONNECTED {
            self.connect().await;
        }
        if let Actor::User(user) = actor {
            // Who makes a cluster owns it.
            let subject = Subject { field: "userName", value: user.to_owned() };
            let binding = Binding { role: OWNER.to_owned(), subject };
            let key = (name.to_owned(), "creator-cluster-owner".to_owned());
            self.reference.bindings.insert(key, binding);
        }
        Ok(Some(Change { actor, roles: true }))
    }

    async fn delete_cluster(&mut self) -> Result<Option<Change>, String> {
        let (actor, cluster) = (self.actor(), self.one(&CLUSTERS));
        let ask = Ask { verb: "delete", resource: Resource::Cluster, cluster, name: cluster };
        let wanted = self.reference.clusters.contains(cluster) && self.reference.may(actor, &ask);
        let path = format!("{API}/clusters/{cluster}");
        let done = self.ask(actor, "DELETE", &path, &Value::Null, wanted).await?;
        if done.is_some() {
            self.plane.world.gone(cluster).await;
            self.reference.remove_cluster(cluster);
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    async fn create_project(&mut self) -> Result<Option<Change>, String> {
        let (actor, cluster) = (self.actor(), self.one(&CLUSTERS));
        let there = self.reference.projects.iter().filter(|(of, _)| of == cluster).count();
        let name = self.one(&["", "", "prod2", "prod2-eu", "u-a", "cattle-fleet", "p-chosen"]);
        if name.is_empty() && there >= PROJECTS_MAX {
            return Ok(None);
        }
        let ask = Ask { verb: "create", resource: Resource::Project, cluster, name: "" };
        let wanted = self.reference.clusters.contains(cluster)
            && self.reference.may(actor, &ask)
            && (name.is_empty() || may_be_named(Resource::Project, name));
        let metadata =
            if name.is_empty() { json!({"generateName": "p-"}) } else { json!({"name": name}) };
        let body = json!({"apiVersion": api_management::API_VERSION, "kind": "Project",
            "metadata": metadata, "spec": {"displayName": "x"}});
        let path = format!("{API}/namespaces/{cluster}/projects");
        let done = self.ask(actor, "POST", &path, &body, wanted).await?;
        if let Some(made) = &done {
            let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.reference.projects.insert((cluster.to_owned(), name));
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    async fn delete_project(&mut self) -> Result<Option<Change>, String> {
        let projects: Vec<(String, String)> = self.reference.projects.iter().cloned().collect();
        let Some((cluster, name)) = projects.choose(&mut self.random).cloned() else {
            return Ok(None);
        };
        let actor = self.actor();
        let ask =
            Ask { verb: "delete", resource: Resource::Project, cluster: &cluster, name: &name };
        let wanted = self.reference.may(actor, &ask);
        let path = format!("{API}/namespaces/{cluster}/projects/{name}");
        let done = self.ask(actor, "DELETE", &path, &Value::Null, wanted).await?;
        if done.is_some() {
            self.reference.remove_project(&cluster, &name);
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    /// Gives a user everything, or takes it.
    async fn make_admin(&mut self) -> Result<Option<Change>, String> {
        let (actor, user) = (self.actor(), self.one(&USERS[..2]));
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        let there = self.reference.admins.contains(user);
        let wanted = self.reference.is_admin(actor);
        let done = if there {
            let path = format!("{path}/globaladmin-{user}");
            self.ask(actor, "DELETE", &path, &Value::Null, wanted).await?
        } else {
            let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("globaladmin-{user}"),
                    "labels": {"authz.management.cattle.io/globalrolebinding": "true"}},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                    "name": user}]});
            self.ask(actor, "POST", path, &body, wanted).await?
        };
        if done.is_some() && there {
            self.reference.admins.remove(user);
        } else if done.is_some() {
            self.reference.admins.insert(user.to_owned());
        }
        Ok(done.map(|_| Change { actor, roles: true }))
    }

    /// Several users of one login name at once, or one of them deleted.
    async fn log_in_names(&mut self) -> Result<Option<Change>, String> {
        let login = self.one(&LOGINS);
        let holder = self.reference.logins.iter().find(|(_, name)| *name == login);
        let holder = holder.map(|(user, _)| user.clone());
        if let Some(user) = holder.clone().filter(|_| self.random.random_ratio(1, 2)) {
            let path = format!("{API}/users/{user}");
            self.ask(Actor::Root, "DELETE", &path, &Value::Null, true).await?;
            self.reference.logins.remove(&user);
            return Ok(None);
        }
        let mut asked = JoinSet::new();
        for _ in 0..self.random.random_range(1..5) {
            self.users_made += 1;
            let mut user = User { username: login.to_owned(), ..User::default() };
            user.metadata.name = Some(format!("u-login{}", self.users_made));
            let users: Api<User> = Api::all(self.plane.client(Actor::Root));
            asked.spawn(async move { users.create(&PostParams::default(), &user).await });
        }
        self.log.push(format!("{} users called {login} at once", asked.len()));
        let (made, refused): (Vec<_>, Vec<_>) =
            asked.join_all().await.into_iter().partition(Result::is_ok);
        let made: Vec<User> = made.into_iter().filter_map(Result::ok).collect();
        if made.len() != usize::from(holder.is_none()) {
            return Err(format!(
                "{} users of login name {login}; before: {holder:?}; refused: {refused:?}",
                made.len()
            ));
        }
        for user in made {
            self.reference.logins.insert(user.name_any(), login.to_owned());
        }
        Ok(None)
    }

    /// Global roles, their bindings, and bindings of projects: stored, and given by nobody who does not have them.
    async fn write_global(&mut self) -> Result<Option<Change>, String> {
        let (actor, user) = (self.actor(), self.one(&USERS));
        let (plural, kind, fields, change) = match self.random.random_range(0..2) {
            0 => (
                "globalroles",
                "GlobalRole",
                json!({"rules": rules_json(Rules::Everything)}),
                json!({"rules": rules_json(Rules::ReadNodes)}),
            ),
            _ => (
                "globalrolebindings",
                "GlobalRoleBinding",
                json!({"globalRoleName": "admin", "userName": user}),
                json!({"groupPrincipalName": OUTSIDE_GROUP}),
            ),
        };
        let mut body = json!({"apiVersion": api_management::API_VERSION, "kind": kind,
            "metadata": {"name": format!("g{}", self.log.len())}});
        for (field, value) in fields.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let wanted = self.reference.is_admin(actor);
        let path = format!("{API}/{plural}");
        let Some(made) = self.ask(actor, "POST", &path, &body, wanted).await? else {
            return Ok(None);
        };
        let path = format!("{path}/{}", made["metadata"]["name"].as_str().unwrap_or_default());
        let editor = self.actor();
        let wanted = self.reference.is_admin(editor) && kind == "GlobalRole";
        self.ask(editor, "PATCH", &path, &change, wanted).await?;
        self.ask(Actor::Root, "DELETE", &path, &Value::Null, true).await?;
        Ok(None)
    }
}

/// A write that was done.
#[derive(Clone, Copy)]
pub struct Change {
    pub actor: Actor,
    /// RBAC of the management API follows it.
    pub roles: bool,
}

/// Whether a binding says already what the change is to make it say.
fn says(binding: &Binding, cluster: &str, change: &Value) -> bool {
    change.as_object().into_iter().flatten().all(|(field, value)| match field.as_str() {
        "metadata" => true,
        "clusterName" => value == cluster,
        "roleTemplateName" => *value == binding.role,
        field if field == binding.subject.field => *value == binding.subject.value,
        _ => value.is_null(),
    })
}
