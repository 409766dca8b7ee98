//! Random steps, applied to the product and to the reference.

use std::collections::BTreeSet;
use std::time::Duration;

use api_management::User;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use test_kit::poll;
use tokio::task::JoinSet;

use super::plane::{
    CLUSTERS, CONNECTED, OUTSIDE_GROUP, OUTSIDER, Plane, ROLE_MANAGER, SLOTS, USERS,
};
use super::planted::Bug;
use super::reference::{
    Actor, Binding, IN_CLUSTERS, IN_PROJECTS, MEMBER, OWNER, PROJECT_OWNER, Reference,
    RequestAttributes, Resource, Subject, Template, TemplateRules, may_be_named,
};

const API: &str = "/apis/management.cattle.io/v3";
/// Longest wait for a response that follows from the state, while a watch is still behind.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const ANSWER_INTERVAL: Duration = Duration::from_millis(2);
/// Role templates that are created and deleted.
const TEMPLATES: [&str; 5] = ["eu-look", "look", "manage", "narrow", "hub"];
const RULES: [TemplateRules; 8] = [
    TemplateRules::Nothing,
    TemplateRules::Everything,
    TemplateRules::ManageBindings,
    TemplateRules::ManageBindings,
    TemplateRules::ReadNodes,
    TemplateRules::Named("one-object"),
    TemplateRules::Named("prod2"),
    TemplateRules::Named("b1"),
];
/// Role templates for projects, which are also created and deleted.
const PROJECT_TEMPLATES: [&str; 2] = ["team", "lead"];
const PROJECT_RULES: [TemplateRules; 6] = [
    TemplateRules::Nothing,
    TemplateRules::Everything,
    TemplateRules::OwnProject,
    TemplateRules::ManageProjectBindings,
    TemplateRules::ManageProjectBindings,
    TemplateRules::Named("b1"),
];
const LOGINS: [&str; 3] = ["ann", "bob", "cy"];
/// Most projects of one cluster.
const PROJECTS_MAX: usize = 3;
/// Steps between two full comparisons of RBAC, when none of them changed a role.
const WHOLE_EVERY: usize = 25;

pub struct Run {
    pub plane: Plane,
    pub reference: Reference,
    pub random: StdRng,
    /// The steps so far, in order.
    pub log: Vec<String>,
    users_made: usize,
    /// Successful writes, to check that the run does enough.
    pub done: usize,
}

pub fn rules_json(rules: TemplateRules) -> Value {
    let group = api_management::GROUP;
    match rules {
        TemplateRules::Nothing | TemplateRules::Member | TemplateRules::ProjectOwner => json!([]),
        TemplateRules::Everything => {
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
        }
        TemplateRules::ManageBindings => {
            json!([{"apiGroups": [group], "resources": ["clusterroletemplatebindings"], "verbs": ["*"]}])
        }
        TemplateRules::ReadNodes => {
            json!([{"apiGroups": [group], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}])
        }
        TemplateRules::Named(name) => {
            json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": [name]}])
        }
        TemplateRules::OwnProject => json!([
            {"apiGroups": [group], "resources": ["projects"], "verbs": ["own"]},
            {"apiGroups": ["", group], "resources": ["secrets", "projectroletemplatebindings"], "verbs": ["*"]},
        ]),
        TemplateRules::ManageProjectBindings => {
            json!([{"apiGroups": [group], "resources": ["projectroletemplatebindings"], "verbs": ["*"]}])
        }
    }
}

impl Run {
    pub async fn start(seed: u64, bug: Option<Bug>) -> Self {
        let mut reference = Reference::default();
        for (name, rules) in [(OWNER, TemplateRules::Everything), (MEMBER, TemplateRules::Member)] {
            let template = Template {
                rules,
                context: IN_CLUSTERS,
                inherits: BTreeSet::new(),
                locked: false,
                builtin: true,
            };
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
        run.know_project_owner().await;
        for name in [TEMPLATES.as_slice(), &PROJECT_TEMPLATES].concat() {
            let is_of_projects = PROJECT_TEMPLATES.contains(&name);
            let new = Template {
                rules: TemplateRules::ReadNodes,
                context: if is_of_projects { IN_PROJECTS } else { IN_CLUSTERS },
                inherits: BTreeSet::new(),
                locked: false,
                builtin: false,
            };
            run.put_template(Actor::Root, name, new).await.expect("a new role template");
        }
        run
    }

    /// The role of creators of projects, and what it inherits.
    async fn know_project_owner(&mut self) {
        let path = |name: &str| format!("{API}/roletemplates/{name}");
        let mut open = vec![PROJECT_OWNER.to_owned()];
        while let Some(name) = open.pop() {
            let read = self.plane.write(Actor::Root, "GET", &path(&name), &Value::Null).await;
            let stored = read.expect("a built-in role template");
            let inherits: Vec<String> =
                serde_json::from_value(stored["roleTemplateNames"].clone()).unwrap_or_default();
            open.extend(inherits.iter().cloned());
            let rules = match name.as_str() {
                PROJECT_OWNER => TemplateRules::ProjectOwner,
                _ => TemplateRules::Nothing,
            };
            let inherits = inherits.into_iter().collect();
            let context = IN_PROJECTS;
            let template = Template { rules, context, inherits, locked: false, builtin: true };
            self.reference.templates.insert(name, template);
        }
    }

    /// # Errors
    /// The difference between product and reference, and the step after which it appeared.
    pub async fn steps(&mut self, count: usize) -> Result<(), String> {
        for step in 0..count {
            let before = self.plane.snapshot();
            let reference = self.reference.clone();
            let changed = self.step().await?;
            let whole = changed.is_some_and(|change| change.roles) || step % WHOLE_EVERY == 0;
            self.done += usize::from(changed.is_some());
            self.plane.settle(&self.reference, whole).await?;
            if let Some(StepChange { actor: Actor::User(actor), .. }) = changed
                && let Some(gain) =
                    Plane::gained(&before, &self.plane.snapshot(), actor, &reference)
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

    async fn step(&mut self) -> Result<Option<StepChange>, String> {
        match self.random.random_range(0..1000) {
            0..250 => self.bind().await,
            250..420 => self.bind_in_project().await,
            420..560 => self.edit_binding().await,
            560..600 => self.write_namespace().await,
            600..660 => self.delete_binding().await,
            660..700 => self.delete_project_binding().await,
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

    /// Repeats a request until the response is that of the reference. A response that allows more
    /// is final.
    async fn request(
        &mut self,
        actor: Actor,
        method: &str,
        path: &str,
        body: &Value,
        is_expected: bool,
    ) -> Result<Option<Value>, String> {
        self.log.push(format!("{actor:?} {method} {path} {body}: {is_expected}"));
        let plane = &self.plane;
        // An unexpected refusal may come from a watch that is behind.
        let answered = poll(ANSWER_INTERVAL, ANSWER_TIME_MAX, async || {
            match plane.write(actor, method, path, body).await {
                Err(kube::Error::Api(_)) if !is_expected => Ok(Ok(None)),
                Ok(_) if !is_expected => Ok(Err("and did".to_owned())),
                response => response.map(|response| Ok(Some(response))),
            }
        })
        .await;
        let what = format!("{method} {path} {body}");
        match answered {
            Ok(Ok(response)) => Ok(response),
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

    /// Cluster and name of a binding, mostly of an existing one.
    fn target(&mut self) -> (String, String) {
        let there: Vec<_> = self.reference.bindings.keys().cloned().collect();
        let chosen = there.choose(&mut self.random).cloned();
        let any = self.random.random_ratio(1, 4);
        chosen
            .filter(|_| !any)
            .unwrap_or_else(|| (self.one(&CLUSTERS).to_owned(), self.one(&SLOTS).to_owned()))
    }

    async fn bind(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, cluster, name) = (self.actor(), self.one(&CLUSTERS), self.one(&SLOTS));
        let roles = [[OWNER, MEMBER, "team"].as_slice(), &TEMPLATES].concat();
        let (role, subject) = (self.one(&roles), self.subject());
        let is_expected = self.reference.may_bind(actor, cluster, name, role);
        let body = json!({"apiVersion": api_management::API_VERSION,
            "kind": "ClusterRoleTemplateBinding", "metadata": {"name": name},
            "roleTemplateName": role, subject.field: subject.value});
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings");
        if self.request(actor, "POST", &path, &body, is_expected).await?.is_none() {
            return Ok(None);
        }
        let binding = Binding { role: role.to_owned(), subject };
        self.reference.bindings.insert((cluster.to_owned(), name.to_owned()), binding);
        Ok(Some(StepChange { actor, roles: true }))
    }

    async fn bind_in_project(&mut self) -> Result<Option<StepChange>, String> {
        let projects: Vec<(String, String)> = self.reference.projects.iter().cloned().collect();
        let Some((cluster, project)) = projects.choose(&mut self.random).cloned() else {
            return Ok(None);
        };
        let (actor, name) = (self.actor(), self.one(&SLOTS));
        let roles =
            [[PROJECT_OWNER, PROJECT_OWNER, MEMBER].as_slice(), &PROJECT_TEMPLATES].concat();
        let (role, subject) = (self.one(&roles), self.subject());
        // In the namespace of another project than the one it names.
        let other = projects.choose(&mut self.random).cloned().unwrap_or_default();
        let is_misplaced = self.random.random_ratio(1, 8) && other.1 != project;
        let namespace = if is_misplaced { &other.1 } else { &project };
        let is_expected = !is_misplaced
            && self.reference.may_bind_in_project(actor, (&cluster, &project), name, role);
        let body = json!({"apiVersion": api_management::API_VERSION,
            "kind": "ProjectRoleTemplateBinding", "metadata": {"name": name},
            "projectName": format!("{cluster}:{project}"), "roleTemplateName": role,
            subject.field: subject.value});
        let path = format!("{API}/namespaces/{namespace}/projectroletemplatebindings");
        if self.request(actor, "POST", &path, &body, is_expected).await?.is_none() {
            return Ok(None);
        }
        let binding = Binding { role: role.to_owned(), subject };
        self.reference.project_bindings.insert((project, name.to_owned()), binding);
        Ok(Some(StepChange { actor, roles: true }))
    }

    async fn delete_project_binding(&mut self) -> Result<Option<StepChange>, String> {
        let there: Vec<_> = self.reference.project_bindings.keys().cloned().collect();
        let Some(key) = there.choose(&mut self.random).cloned() else { return Ok(None) };
        let (actor, project, name) = (self.actor(), key.0.as_str(), key.1.as_str());
        let of = self.reference.projects.iter().find(|(_, of)| of == project);
        let cluster = of.map(|(cluster, _)| cluster.clone()).unwrap_or_default();
        let resource = Resource::ProjectBinding;
        let request = RequestAttributes { verb: "delete", resource, cluster: &cluster, name };
        let is_expected = self.reference.may_in_project(actor, project, &request);
        let path = format!("{API}/namespaces/{project}/projectroletemplatebindings/{name}");
        let done = self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?;
        if done.is_some() {
            self.reference.project_bindings.remove(&key);
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    async fn edit_binding(&mut self) -> Result<Option<StepChange>, String> {
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
        let request =
            RequestAttributes { verb: "patch", resource: Resource::Binding, cluster, name };
        let is_expected = self.reference.may(actor, &request)
            && self
                .reference
                .bindings
                .get(&key)
                .is_some_and(|binding| says(binding, cluster, &change));
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings/{name}");
        let done = self.request(actor, "PATCH", &path, &change, is_expected).await?;
        Ok(done.map(|_| StepChange { actor, roles: false }))
    }

    async fn delete_binding(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, key) = (self.actor(), self.target());
        let (cluster, name) = (key.0.as_str(), key.1.as_str());
        let request =
            RequestAttributes { verb: "delete", resource: Resource::Binding, cluster, name };
        let is_expected =
            self.reference.may(actor, &request) && self.reference.bindings.contains_key(&key);
        let path = format!("{API}/namespaces/{cluster}/clusterroletemplatebindings/{name}");
        let done = self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?;
        if done.is_some() {
            self.reference.bindings.remove(&key);
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    async fn write_template(&mut self) -> Result<Option<StepChange>, String> {
        let all = [TEMPLATES.as_slice(), &PROJECT_TEMPLATES].concat();
        let (actor, name) = (self.actor(), self.one(&all));
        let is_of_projects = PROJECT_TEMPLATES.contains(&name);
        let old = self.reference.templates.get(name).cloned();
        let mut new = old.clone().unwrap_or(Template {
            rules: TemplateRules::Nothing,
            context: if is_of_projects { IN_PROJECTS } else { IN_CLUSTERS },
            inherits: BTreeSet::new(),
            locked: false,
            builtin: false,
        });
        match self.random.random_range(0..6) {
            0..3 if is_of_projects => new.rules = self.one(&PROJECT_RULES),
            0..3 => new.rules = self.one(&RULES),
            3 | 4 if name == "hub" => new.inherits = BTreeSet::from([self.one(&all).to_owned()]),
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
    ) -> Result<Option<StepChange>, String> {
        let old = self.reference.templates.get(name).cloned();
        let mut body = json!({"context": new.context, "rules": rules_json(new.rules),
            "roleTemplateNames": new.inherits, "locked": new.locked});
        let same = old.as_ref() == Some(&new);
        let is_expected = if same {
            self.reference.manages_roles(actor)
        } else {
            self.reference.may_write_template(actor, name, &new)
        };
        let done = if old.is_some() {
            body["description"] = self.log.len().to_string().into();
            let path = format!("{API}/roletemplates/{name}");
            self.request(actor, "PATCH", &path, &body, is_expected).await?
        } else {
            body["apiVersion"] = api_management::API_VERSION.into();
            body["kind"] = "RoleTemplate".into();
            body["metadata"] = json!({"name": name});
            self.request(actor, "POST", &format!("{API}/roletemplates"), &body, is_expected).await?
        };
        if done.is_some() {
            self.reference.templates.insert(name.to_owned(), new);
        }
        Ok(done.map(|_| StepChange { actor: Actor::Root, roles: true }))
    }

    async fn delete_template(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, name) = (
            self.actor(),
            self.one(&[TEMPLATES.as_slice(), &PROJECT_TEMPLATES, &[MEMBER]].concat()),
        );
        let free = self.reference.templates.get(name).is_some_and(|template| !template.builtin)
            && !self.reference.is_used(name);
        let is_expected = free && self.reference.manages_roles(actor);
        let path = format!("{API}/roletemplates/{name}");
        let done = self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?;
        if done.is_some() {
            self.reference.templates.remove(name);
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    async fn create_cluster(&mut self) -> Result<Option<StepChange>, String> {
        let names = [CLUSTERS.as_slice(), &CLUSTERS, &["p-x7k2p", "u-a", "kube-system", "default"]];
        let (actor, name) = (self.actor(), self.one(&names.concat()));
        self.put_cluster(actor, name).await
    }

    async fn put_cluster(
        &mut self,
        actor: Actor,
        name: &str,
    ) -> Result<Option<StepChange>, String> {
        let is_expected = self.reference.is_admin(actor)
            && may_be_named(Resource::Cluster, name)
            && !self.reference.clusters.contains(name);
        let body = json!({"apiVersion": api_management::API_VERSION, "kind": "Cluster",
            "metadata": {"name": name}, "spec": {}});
        if self
            .request(actor, "POST", &format!("{API}/clusters"), &body, is_expected)
            .await?
            .is_none()
        {
            return Ok(None);
        }
        self.reference.clusters.insert(name.to_owned());
        self.plane.world.token(name).await;
        if name == CONNECTED {
            self.connect().await;
        }
        if let Actor::User(user) = actor {
            // The creator of a cluster owns it.
            let subject = Subject { field: "userName", value: user.to_owned() };
            let binding = Binding { role: OWNER.to_owned(), subject };
            let key = (name.to_owned(), "creator-cluster-owner".to_owned());
            self.reference.bindings.insert(key, binding);
        }
        Ok(Some(StepChange { actor, roles: true }))
    }

    async fn delete_cluster(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, cluster) = (self.actor(), self.one(&CLUSTERS));
        let request = RequestAttributes {
            verb: "delete",
            resource: Resource::Cluster,
            cluster,
            name: cluster,
        };
        let is_expected =
            self.reference.clusters.contains(cluster) && self.reference.may(actor, &request);
        let path = format!("{API}/clusters/{cluster}");
        let done = self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?;
        if done.is_some() {
            self.plane.world.wait_until_removed(cluster).await;
            self.reference.remove_cluster(cluster);
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    async fn create_project(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, cluster) = (self.actor(), self.one(&CLUSTERS));
        let there = self.reference.projects.iter().filter(|(of, _)| of == cluster).count();
        let name = self.one(&["", "", "prod2", "prod2-eu", "u-a", "cattle-fleet", "p-chosen"]);
        if name.is_empty() && there >= PROJECTS_MAX {
            return Ok(None);
        }
        let request =
            RequestAttributes { verb: "create", resource: Resource::Project, cluster, name: "" };
        let is_expected = self.reference.clusters.contains(cluster)
            && self.reference.may(actor, &request)
            && (name.is_empty() || may_be_named(Resource::Project, name));
        let metadata =
            if name.is_empty() { json!({"generateName": "p-"}) } else { json!({"name": name}) };
        let body = json!({"apiVersion": api_management::API_VERSION, "kind": "Project",
            "metadata": metadata, "spec": {"displayName": "x"}});
        let path = format!("{API}/namespaces/{cluster}/projects");
        let done = self.request(actor, "POST", &path, &body, is_expected).await?;
        if let Some(made) = &done {
            let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.reference.projects.insert((cluster.to_owned(), name.clone()));
            if let Actor::User(user) = actor {
                // The creator of a project owns it.
                let subject = Subject { field: "userName", value: user.to_owned() };
                let binding = Binding { role: PROJECT_OWNER.to_owned(), subject };
                let key = (name, format!("creator-{PROJECT_OWNER}"));
                self.reference.project_bindings.insert(key, binding);
            }
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    async fn delete_project(&mut self) -> Result<Option<StepChange>, String> {
        let projects: Vec<(String, String)> = self.reference.projects.iter().cloned().collect();
        let Some((cluster, name)) = projects.choose(&mut self.random).cloned() else {
            return Ok(None);
        };
        let actor = self.actor();
        let is_expected = self.reference.may_with_project(actor, "delete", &cluster, &name);
        let path = format!("{API}/namespaces/{cluster}/projects/{name}");
        let done = self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?;
        if done.is_some() {
            self.reference.remove_project(&cluster, &name);
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    /// Grants a user all rights, or revokes them.
    async fn make_admin(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, user) = (self.actor(), self.one(&USERS[..2]));
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        let there = self.reference.admins.contains(user);
        let is_expected = self.reference.is_admin(actor);
        let done = if there {
            let path = format!("{path}/globaladmin-{user}");
            self.request(actor, "DELETE", &path, &Value::Null, is_expected).await?
        } else {
            let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("globaladmin-{user}"),
                    "labels": {"authz.management.cattle.io/globalrolebinding": "true"}},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                    "name": user}]});
            self.request(actor, "POST", path, &body, is_expected).await?
        };
        if done.is_some() && there {
            self.reference.admins.remove(user);
        } else if done.is_some() {
            self.reference.admins.insert(user.to_owned());
        }
        Ok(done.map(|_| StepChange { actor, roles: true }))
    }

    /// Creates several users with one login name at once, or deletes one of them.
    async fn log_in_names(&mut self) -> Result<Option<StepChange>, String> {
        let login = self.one(&LOGINS);
        let holder = self.reference.logins.iter().find(|(_, name)| *name == login);
        let holder = holder.map(|(user, _)| user.clone());
        if let Some(user) = holder.clone().filter(|_| self.random.random_ratio(1, 2)) {
            let path = format!("{API}/users/{user}");
            self.request(Actor::Root, "DELETE", &path, &Value::Null, true).await?;
            self.reference.logins.remove(&user);
            return Ok(None);
        }
        let mut creates = JoinSet::new();
        for _ in 0..self.random.random_range(1..5) {
            self.users_made += 1;
            let mut user = User { username: login.to_owned(), ..User::default() };
            user.metadata.name = Some(format!("u-login{}", self.users_made));
            let users: Api<User> = Api::all(self.plane.client(Actor::Root));
            creates.spawn(async move { users.create(&PostParams::default(), &user).await });
        }
        self.log.push(format!("{} users called {login} at once", creates.len()));
        let (made, refused): (Vec<_>, Vec<_>) =
            creates.join_all().await.into_iter().partition(Result::is_ok);
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

    /// Global roles, their bindings, and bindings of projects: stored, and granted only by users
    /// who have them.
    async fn write_global(&mut self) -> Result<Option<StepChange>, String> {
        let (actor, user) = (self.actor(), self.one(&USERS));
        let (plural, kind, fields, change) = match self.random.random_range(0..2) {
            0 => (
                "globalroles",
                "GlobalRole",
                json!({"rules": rules_json(TemplateRules::Everything)}),
                json!({"rules": rules_json(TemplateRules::ReadNodes)}),
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
        let is_expected = self.reference.is_admin(actor);
        let path = format!("{API}/{plural}");
        let Some(made) = self.request(actor, "POST", &path, &body, is_expected).await? else {
            return Ok(None);
        };
        let path = format!("{path}/{}", made["metadata"]["name"].as_str().unwrap_or_default());
        let editor = self.actor();
        let is_expected = self.reference.is_admin(editor) && kind == "GlobalRole";
        self.request(editor, "PATCH", &path, &change, is_expected).await?;
        self.request(Actor::Root, "DELETE", &path, &Value::Null, true).await?;
        Ok(None)
    }
}

/// A successful write.
#[derive(Clone, Copy)]
pub struct StepChange {
    pub actor: Actor,
    /// Whether it changes RBAC of the management API.
    pub roles: bool,
}

/// Whether a binding already has the state that the change requests.
fn says(binding: &Binding, cluster: &str, change: &Value) -> bool {
    change.as_object().into_iter().flatten().all(|(field, value)| match field.as_str() {
        "metadata" => true,
        "clusterName" => value == cluster,
        "roleTemplateName" => *value == binding.role,
        field if field == binding.subject.field => *value == binding.subject.value,
        _ => value.is_null(),
    })
}
