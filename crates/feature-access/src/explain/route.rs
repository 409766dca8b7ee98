//! `POST /drover.io/v1/access/why` and `…/who`: a [`Question`] as JSON, the explanation as JSON;
//! `…/diff`: [`Changes`] as JSON, the differences as JSON.
//!
//! About oneself everybody may know. About others, and who owns a cluster, may know who may list
//! the bindings of the cluster; what changes would do, may know who may list all bindings, and of
//! bindings in clusters and projects, who may list those there. The route checks that by doing so
//! as the caller.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, Token, User, ids,
};
use api_meta::status::Status;
use controller::error::is_code;
use controller::{Reflector, Whole};
use feature_kit::access::{GROUP_PEOPLE, ROLE_GROUP_PREFIX};
use feature_kit::rbac::rule;
use feature_kit::route::{self, Caller};
use feature_kit::view::api_versions;
use feature_kit::{
    ControllerIdentity, Handler, ManagementContext, Membership, Request, Response, RoleResolver,
};
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::ListParams;
use kube::{Api, Client};
use rest_view::{Descriptor, Registry};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Question;
use super::diff::{self, Changes, Differences, Proposal};
use super::policy::{Policy, Requester};
use super::who::{self, Candidate};
use super::why;
use crate::graph::{ProposedChange, RoleGraph};

/// Begins the paths of the route.
pub const PREFIX: &str = "/drover.io/v1/access/";
/// Group of every caller with a valid credential.
const AUTHENTICATED: &str = "system:authenticated";

/// The identity that reads roles and bindings of the management API itself.
pub fn identity() -> ControllerIdentity {
    let kinds = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
    ControllerIdentity::new(
        "access-explanation",
        vec![rule("rbac.authorization.k8s.io", &kinds, &["get", "list"])],
    )
}

/// The handler of all paths below [`PREFIX`].
///
/// - `views`: of the types that grant rights.
pub fn handler(
    context: &ManagementContext,
    graph: &Arc<RoleGraph>,
    views: Vec<Descriptor>,
) -> Arc<dyn Handler> {
    let reflectors = &context.scope.reflectors;
    Arc::new(AccessRoute {
        registry: Registry::new(api_versions(), views.clone()),
        views,
        context: context.clone(),
        graph: graph.clone(),
        users: reflectors.get(),
        tokens: reflectors.get(),
        own: context.clients.controller(&identity()),
    })
}

struct AccessRoute {
    context: ManagementContext,
    graph: Arc<RoleGraph>,
    users: Arc<Reflector<Whole<User>>>,
    tokens: Arc<Reflector<Whole<Token>>>,
    /// Acts as [`identity()`].
    own: Client,
    /// Of the types that grant rights.
    views: Vec<Descriptor>,
    registry: Registry,
}

impl AccessRoute {
    async fn serve(&self, request: Request) -> Result<Value, Status> {
        let path = request.parts.uri.path();
        let action = path.strip_prefix(PREFIX).unwrap_or_default();
        if !["why", "who", "diff"].contains(&action) {
            return Err(Status::unknown_resource());
        }
        if request.parts.method != Method::POST {
            return Err(Status::method_not_allowed());
        }
        let caller = request.caller.unwrap_or_default();
        let answer = match action {
            "why" => self.why(&caller, question(&request.body)?).await.map(serde_json::to_value),
            "who" => self.who(&caller, question(&request.body)?).await.map(serde_json::to_value),
            _ => self.diff(&caller, read(&request.body)?).await.map(serde_json::to_value),
        };
        answer?.map_err(|error| Status::internal(&error))
    }

    async fn diff(&self, caller: &Caller, changes: Changes) -> Result<Differences, Status> {
        let client = self.context.clients.client_as(&caller.user_id, &caller.groups);
        if changes.apply.len() + changes.delete.len() > diff::OBJECTS_MAX {
            let text = format!("at most {} objects in one request", diff::OBJECTS_MAX);
            return Err(Status::bad_request(text));
        }
        let applied = changes.apply.iter().map(|input| (input, false));
        let deleted = changes.delete.iter().map(|input| (input, true));
        if changes.apply.iter().chain(&changes.delete).any(|input| input.contains_key("id")) {
            // What is stored is read as the caller, and its place may differ from the new one.
            require_all_bindings(&client).await?;
        }
        let (mut proposed, mut rules) = (Vec::new(), Vec::new());
        for (place, (input, deletes)) in applied.chain(deleted).enumerate() {
            let proposal = self.proposal(&client, input, deletes, place).await?;
            proposed.extend(proposal.change);
            rules.extend(proposal.rules);
        }
        match places(&proposed).filter(|_| rules.is_empty()) {
            Some(places) => {
                for place in places {
                    require_bindings_of(&client, &place).await?;
                }
            }
            None => require_all_bindings(&client).await?,
        }
        let (before, after) = self.graph.compare(&proposed);
        Ok(diff::differences(&before, &after, rules, |group| self.users_of(group)))
    }

    /// How many users have logged in with the group and still have a token of that login.
    fn users_of(&self, group: &str) -> usize {
        let tokens = self.tokens.all().into_iter().map(|(_, token)| token);
        let of_group =
            tokens.filter(|token| token.group_principals.iter().any(|known| known == group));
        of_group.map(|token| token.user_id.clone()).collect::<BTreeSet<_>>().len()
    }

    async fn proposal(
        &self,
        client: &Client,
        input: &Map<String, Value>,
        deletes: bool,
        place: usize,
    ) -> Result<Proposal, Status> {
        let kind = input.get("type").and_then(Value::as_str).unwrap_or_default();
        let wrong = |why: String| {
            Status::bad_request(format!("object {} of type \"{kind}\": {why}", place + 1))
        };
        let Some(view) = self.views.iter().find(|view| view.id == kind) else {
            return Err(wrong("the type grants no rights".to_owned()));
        };
        let id = input.get("id").and_then(Value::as_str);
        let stored = match id {
            Some(id) => Some(
                stored(client, kind, id)
                    .await?
                    .ok_or_else(|| wrong(format!("there is no object with the id \"{id}\"")))?,
            ),
            None => None,
        };
        diff::proposal(&self.registry, view, input, stored.as_ref(), deletes, place).map_err(wrong)
    }

    async fn why(&self, caller: &Caller, question: Question) -> Result<why::Explanation, Status> {
        let cluster = question.cluster.clone();
        let is_own = question.user.is_empty() || question.user == caller.user_id;
        let may_see = self.may_see_members(caller, &cluster).await?;
        if !is_own && !may_see {
            return Err(hidden(&cluster));
        }
        let user = if is_own { caller.user_id.clone() } else { question.user.clone() };
        let outside =
            if is_own { from_outside(&caller.groups) } else { self.groups_of(&user, &cluster)? };
        let person = Membership { user: &user, groups: &outside };
        let groups = self.all_groups(&cluster, person);
        if is_own && !may_see && self.graph.cluster_groups(&cluster, person).is_empty() {
            return Err(hidden(&cluster));
        }
        let policy = self.policy(&question).await?;
        let scope = (cluster != ids::LOCAL_CLUSTER).then_some(cluster.as_str());
        let sources = self.graph.sources(scope, person);
        let granters = if may_see { self.owners(&cluster) } else { Vec::new() };
        let requester = Requester { user: &user, groups: &groups };
        let question = Question { user: user.clone(), ..question };
        Ok(why::explain(question, requester, &policy, &sources, granters))
    }

    async fn who(&self, caller: &Caller, question: Question) -> Result<who::Allowed, Status> {
        if !self.may_see_members(caller, &question.cluster).await? {
            return Err(hidden(&question.cluster));
        }
        let policy = self.policy(&question).await?;
        let cluster = question.cluster.clone();
        let enabled = self.users.all().into_iter().filter(|(_, user)| user.is_enabled());
        let candidates = enabled.filter_map(|(key, user)| {
            let outside = outside_groups();
            let person = Membership { user: &key.name, groups: &outside };
            // Whoever has no role in a cluster does not reach it.
            let has_role = !self.graph.cluster_groups(&cluster, person).is_empty();
            has_role.then(|| Candidate {
                groups: self.all_groups(&cluster, person),
                user: key.name.clone(),
                username: user.username.clone(),
                display_name: user.display_name.clone(),
            })
        });
        let is_role_group = |group: &str| group.starts_with(ROLE_GROUP_PREFIX);
        Ok(who::allowed(question, &policy, candidates, is_role_group))
    }

    /// The groups of a user, as the cluster sees them.
    fn all_groups(&self, cluster: &str, person: Membership<'_>) -> Vec<String> {
        let roles = match cluster {
            ids::LOCAL_CLUSTER => self.graph.management_groups(person),
            cluster => self.graph.cluster_groups(cluster, person),
        };
        person.groups.iter().cloned().chain(roles).collect()
    }

    fn groups_of(&self, user: &str, cluster: &str) -> Result<Vec<String>, Status> {
        match self.users.named(user) {
            Some(known) if known.is_enabled() => Ok(outside_groups()),
            Some(_) => Err(Status::bad_request(format!(
                "user \"{user}\" is deactivated and may do nothing in cluster \"{cluster}\" or anywhere"
            ))),
            None => Err(Status::not_found(api_management::GROUP, "users", user)),
        }
    }

    async fn may_see_members(&self, caller: &Caller, cluster: &str) -> Result<bool, Status> {
        let client = self.context.clients.client_as(&caller.user_id, &caller.groups);
        let bindings: Api<ClusterRoleTemplateBinding> = Api::namespaced(client, cluster);
        match bindings.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(true),
            Err(error) if is_code(&error, 403) => Ok(false),
            Err(error) => Err(Status::internal(&error)),
        }
    }

    /// Ids of the users who own a cluster by a binding of their own.
    fn owners(&self, cluster: &str) -> Vec<String> {
        let enabled = self.users.all().into_iter().filter(|(_, user)| user.is_enabled());
        let owner = feature_kit::access::cluster_group(cluster, CLUSTER_OWNER);
        let owns = |user: &str| {
            let person = Membership { user, groups: &[] };
            self.graph.cluster_groups(cluster, person).contains(&owner)
        };
        enabled.map(|(key, _)| key.name).filter(|user| owns(user)).collect()
    }

    /// Reads the roles and bindings that decide about the request.
    async fn policy(&self, question: &Question) -> Result<Policy, Status> {
        let cluster = question.cluster.as_str();
        let client = match cluster {
            ids::LOCAL_CLUSTER => self.own.clone(),
            cluster => self.context.connections.client(cluster).ok_or_else(|| {
                Status::unavailable(format!(
                    "cluster \"{cluster}\" is not connected, so its roles and bindings cannot be read; see: drover \
                     cluster get {cluster}"
                ))
            })?,
        };
        let unreadable = |error: kube::Error| {
            let text =
                format!("cannot read the roles and bindings of cluster \"{cluster}\": {error}");
            Status::unavailable(text)
        };
        let all = ListParams::default();
        let (cluster_roles, cluster_role_bindings) =
            (Api::all(client.clone()), Api::all(client.clone()));
        let (cluster_roles, cluster_role_bindings) =
            tokio::try_join!(cluster_roles.list(&all), cluster_role_bindings.list(&all))
                .map_err(unreadable)?;
        let mut policy = Policy {
            cluster_roles: cluster_roles.items,
            cluster_role_bindings: cluster_role_bindings.items,
            ..Policy::default()
        };
        if !question.namespace.is_empty() {
            let roles: Api<Role> = Api::namespaced(client.clone(), &question.namespace);
            let role_bindings = Api::namespaced(client, &question.namespace);
            let (roles, role_bindings) =
                tokio::try_join!(roles.list(&all), role_bindings.list(&all)).map_err(unreadable)?;
            (policy.roles, policy.role_bindings) = (roles.items, role_bindings.items);
        }
        Ok(policy)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("the body cannot be read: {error}")))
}

fn question(body: &[u8]) -> Result<Question, Status> {
    let question: Question = read(body)?;
    match question.problem() {
        Some(problem) => Err(Status::bad_request(problem)),
        None => Ok(question),
    }
}

/// Where a change of bindings has its effect.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BindingPlace {
    /// Id of the cluster.
    Cluster(String),
    /// The namespace of the project's bindings.
    Project(String),
}

/// The clusters and projects that new bindings are for; `None` when a change reaches further, or
/// claims to be for another place than the one that it is in.
fn places(proposed: &[ProposedChange]) -> Option<BTreeSet<BindingPlace>> {
    let of = |change: &ProposedChange| match change {
        ProposedChange::Cluster(key, Some(binding)) => (binding.cluster_name == key.namespace)
            .then(|| BindingPlace::Cluster(key.namespace.clone())),
        ProposedChange::Project(key, Some(binding)) => {
            let (_, project) = binding.project_name.split_once(':')?;
            (project == key.namespace).then(|| BindingPlace::Project(key.namespace.clone()))
        }
        _ => None,
    };
    proposed.iter().map(of).collect()
}

/// Checks that the client may list the bindings of one place.
async fn require_bindings_of(client: &Client, place: &BindingPlace) -> Result<(), Status> {
    let one = ListParams::default().limit(1);
    let (plural, name, listed) = match place {
        BindingPlace::Cluster(namespace) => {
            let api: Api<ClusterRoleTemplateBinding> = Api::namespaced(client.clone(), namespace);
            let listed = api.list_metadata(&one).await.map(drop);
            ("clusterroletemplatebindings", namespace, listed)
        }
        BindingPlace::Project(namespace) => {
            let api: Api<ProjectRoleTemplateBinding> = Api::namespaced(client.clone(), namespace);
            let listed = api.list_metadata(&one).await.map(drop);
            ("projectroletemplatebindings", namespace, listed)
        }
    };
    listed.map_err(|error| match is_code(&error, 403) {
        true => {
            let text = "what a change would do is shown to those who may list the members there";
            Status::forbidden(api_management::GROUP, plural, name, text)
        }
        false => Status::internal(&error),
    })
}

/// Checks that the client may list the bindings of all levels.
async fn require_all_bindings(client: &Client) -> Result<(), Status> {
    let one = ListParams::default().limit(1);
    let (global, clusters, projects) = (
        Api::<GlobalRoleBinding>::all(client.clone()),
        Api::<ClusterRoleTemplateBinding>::all(client.clone()),
        Api::<ProjectRoleTemplateBinding>::all(client.clone()),
    );
    let listed = tokio::try_join!(
        global.list_metadata(&one),
        clusters.list_metadata(&one),
        projects.list_metadata(&one)
    );
    match listed {
        Ok(_) => Ok(()),
        Err(error) if is_code(&error, 403) => {
            let text = "what a change would do to others is shown to those who may list all role bindings, such as \
                administrators";
            Err(Status::forbidden(api_management::GROUP, "clusterroletemplatebindings", "", text))
        }
        Err(error) => Err(Status::internal(&error)),
    }
}

/// The object of a type that grants rights, by its id under `/v3`; `None` when there is none.
async fn stored(client: &Client, kind: &str, id: &str) -> Result<Option<Value>, Status> {
    let plural = format!("{}s", kind.to_lowercase());
    let path = match id.split_once(':') {
        Some((namespace, name)) => format!("namespaces/{namespace}/{plural}/{name}"),
        None => format!("{plural}/{id}"),
    };
    let path = format!("/apis/{}/{path}", api_management::API_VERSION);
    let request = http::Request::get(&path).body(Vec::new());
    let request = request.map_err(|_| Status::bad_request(format!("\"{id}\" is no id")))?;
    match client.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_code(&error, 404) => Ok(None),
        Err(error) => Err(Status::internal(&error)),
    }
}

/// The groups of every user who is logged in.
fn outside_groups() -> Vec<String> {
    vec![GROUP_PEOPLE.to_owned(), AUTHENTICATED.to_owned()]
}

/// Without the role groups, which are resolved anew for the cluster.
fn from_outside(groups: &[String]) -> Vec<String> {
    groups.iter().filter(|group| !group.starts_with(ROLE_GROUP_PREFIX)).cloned().collect()
}

/// The refusal, which is the same whether there is such a cluster or not.
fn hidden(cluster: &str) -> Status {
    let text = "you may not see the members of this cluster, or there is no such cluster; you can explain what you \
        yourself may do in a cluster where you have a role, and its owners can explain it for others";
    Status::forbidden(api_management::GROUP, "clusters", cluster, text)
}

impl Handler for AccessRoute {
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            match self.serve(request).await {
                Ok(answer) => route::json(StatusCode::OK, &answer),
                Err(status) => {
                    let code = StatusCode::from_u16(status.code).unwrap_or_default();
                    route::json(code, &status.to_json())
                }
            }
        })
    }
}
