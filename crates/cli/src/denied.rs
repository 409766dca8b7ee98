//! Explains a forbidden request: the roles that would allow it, and the owners of the cluster who
//! can grant them, as far as the caller may see them.

use std::collections::HashSet;

use api_management::user::LOCAL_PRINCIPAL;
use http::Method;
use serde_json::Value;

use crate::api::{Api, encode, id, text};

/// The role that may grant roles in its cluster.
const OWNER: &str = "cluster-owner";
/// Maximum number of owners in a message.
const OWNERS_SHOWN_MAX: usize = 3;
/// Maximum number of roles in a message.
const ROLES_SHOWN_MAX: usize = 3;
const CLUSTER_PATH: &str = "/k8s/clusters/";

/// The verb of a request in Kubernetes' RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verb(&'static str);

impl Verb {
    /// The verb of a request, in the words of RBAC.
    pub fn of(method: &Method, path: &str) -> Self {
        let has_name = RequestTarget::of(path).is_some_and(|target| target.has_name);
        Self(match method.as_str() {
            "GET" if has_name => "get",
            "GET" => "list",
            "DELETE" => "delete",
            "PUT" => "update",
            "PATCH" => "patch",
            // An action of `/v3`.
            _ if path.contains("?action=") => "update",
            _ => "create",
        })
    }
}

/// A request that was refused with 403.
pub struct Denied {
    api: Api,
    verb: Verb,
    path: String,
    /// Id of its cluster.
    cluster: Option<String>,
}

impl std::fmt::Debug for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Denied").field("verb", &self.verb).field("path", &self.path).finish()
    }
}

impl Denied {
    /// A denied request. `api` reads who could grant the right; `body` may name the cluster.
    pub fn new(api: Api, verb: Verb, path: &str, body: Option<&Value>) -> Self {
        Self { api, verb, path: path.to_owned(), cluster: cluster_of(path, body) }
    }

    /// A sentence for the caller: which role allows the request, and who can grant it. Falls back
    /// to a general sentence if the caller may not see the cluster.
    pub async fn explain(&self) -> String {
        let general = "an administrator can do it, or give you a role that allows it; \"drover whoami\" \
                       shows the roles you have";
        let Some(cluster) = &self.cluster else { return general.to_owned() };
        let path = format!("/v3/clusters/{}", encode(cluster));
        let found = self.api.call(Method::GET, &path, None, "the cluster").await;
        let Ok(found) = found else { return general.to_owned() };
        let (templates, owners) = tokio::join!(self.templates(), self.owners(cluster));
        let roles = RequestTarget::of(&self.path)
            .map(|target| roles_that_allow(&templates, self.verb, &target))
            .unwrap_or_default();
        sentence(text(&found, "name"), &roles, &owners, self.user())
    }

    fn user(&self) -> &str {
        let login = self.api.login();
        if login.username.is_empty() { &login.user } else { &login.username }
    }

    async fn templates(&self) -> Vec<Value> {
        self.api.list("roletemplates", &[]).await.unwrap_or_default()
    }

    /// Login names of the owners of the cluster.
    async fn owners(&self, cluster: &str) -> Vec<String> {
        let filter = [("clusterId", cluster), ("roleTemplateId", OWNER)];
        let bindings = self.api.another().list("clusterroletemplatebindings", &filter).await;
        let mut names = Vec::new();
        for binding in bindings.unwrap_or_default().iter().take(OWNERS_SHOWN_MAX) {
            // All users may read the login names of others.
            let principal = format!("{LOCAL_PRINCIPAL}{}", text(binding, "userId"));
            let path = format!("/v3/principals/{}", encode(&principal));
            let found = self.api.another().call(Method::GET, &path, None, "an owner").await;
            let found = found.unwrap_or_default();
            names.extend(Some(text(&found, "loginName").to_owned()).filter(|n| !n.is_empty()));
        }
        names
    }
}

fn sentence(cluster: &str, roles: &[&str], owners: &[String], user: &str) -> String {
    let who = match owners {
        [] => "its owners and administrators".to_owned(),
        owners => format!("its owners ({}) and administrators", owners.join(", ")),
    };
    match roles {
        [] => format!(
            "no role in cluster \"{cluster}\" that you may see allows it; {who} can say which does"
        ),
        [role, ..] => {
            let word = if roles.len() == 1 { "role" } else { "one of the roles" };
            format!(
                "in cluster \"{cluster}\" {word} {} allows it; {who} can give it: drover role grant \
                 {role} --user {user} --cluster {cluster}",
                roles.join(", ")
            )
        }
    }
}

/// The id of the cluster of a request, from its path or body. The id of a project begins with that
/// of its cluster.
fn cluster_of(path: &str, body: Option<&Value>) -> Option<String> {
    let path = path.split('?').next().unwrap_or_default();
    let in_cluster = path.strip_prefix(CLUSTER_PATH).and_then(|rest| rest.split('/').next());
    let own = path.strip_prefix("/v3/clusters/");
    let of_part = path.rsplit('/').next().and_then(|id| id.split_once(':')).map(|(id, _)| id);
    let named = body.and_then(|body| match (text(body, "clusterId"), text(body, "projectId")) {
        ("", project) => project.split_once(':').map(|(cluster, _)| cluster),
        (cluster, _) => Some(cluster),
    });
    let found = in_cluster.or(own).or(named).or(of_part)?;
    Some(found.to_owned()).filter(|id| !id.is_empty())
}

/// The resource that a path addresses.
#[derive(Debug, PartialEq, Eq)]
struct RequestTarget<'a> {
    group: &'a str,
    resource: &'a str,
    has_name: bool,
}

impl<'a> RequestTarget<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        if let Some(rest) = path.strip_prefix("/v3/") {
            let mut parts = rest.split('/');
            let (resource, name) = (parts.next()?, parts.next());
            return Some(Self { group: api_management::GROUP, resource, has_name: name.is_some() });
        }
        let (_, rest) = path.strip_prefix(CLUSTER_PATH)?.split_once('/')?;
        let parts: Vec<&str> = rest.split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, inside @ ..] if !inside.is_empty() => inside,
            rest => rest,
        };
        Some(Self { group, resource: rest.first()?, has_name: rest.len() > 1 })
    }
}

/// Ids of the roles for clusters whose rules cover the request; roles that allow everything only if
/// there are no others.
fn roles_that_allow<'a>(
    templates: &'a [Value],
    verb: Verb,
    target: &RequestTarget<'_>,
) -> Vec<&'a str> {
    let of_clusters = templates.iter().filter(|role| text(role, "context") != "project");
    let mut allowing: Vec<&Value> =
        of_clusters.filter(|role| allows(role, templates, verb, target)).collect();
    let is_everything = |role: &&Value| {
        let all = |field: &str, rule: &Value| has(&rule[field], "*");
        let mut rules = role["rules"].as_array().into_iter().flatten();
        rules.any(|rule| all("verbs", rule) && all("resources", rule))
    };
    if allowing.iter().any(|role| !is_everything(role)) {
        allowing.retain(|role| !is_everything(role));
    }
    allowing.into_iter().map(id).take(ROLES_SHOWN_MAX).collect()
}

/// Whether a role or one that it inherits covers the request.
fn allows(role: &Value, templates: &[Value], verb: Verb, target: &RequestTarget<'_>) -> bool {
    let (mut seen, mut open) = (HashSet::new(), vec![role]);
    while let Some(role) = open.pop() {
        if !seen.insert(id(role)) {
            continue;
        }
        let mut rules = role["rules"].as_array().into_iter().flatten();
        let covered = rules.any(|rule| {
            rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
                && covers(&rule["verbs"], verb.0)
                && covers(&rule["apiGroups"], target.group)
                && covers(&rule["resources"], target.resource)
        });
        if covered {
            return true;
        }
        open.extend(templates.iter().filter(|other| has(&role["roleTemplateIds"], id(other))));
    }
    false
}

fn covers(list: &Value, word: &str) -> bool {
    has(list, "*") || has(list, word)
}

fn has(list: &Value, word: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|one| one == word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_mapped_to_verb_group_and_resource() {
        for (method, path, verb, group, resource) in [
            (Method::GET, "/k8s/clusters/c-1/api/v1/namespaces", "list", "", "namespaces"),
            (Method::DELETE, "/k8s/clusters/c-1/api/v1/namespaces/a", "delete", "", "namespaces"),
            (Method::GET, "/k8s/clusters/c-1/api/v1/namespaces/a/pods?limit=1", "list", "", "pods"),
            (
                Method::GET,
                "/k8s/clusters/c-1/apis/apps/v1/deployments",
                "list",
                "apps",
                "deployments",
            ),
            (Method::PUT, "/v3/settings/a", "update", api_management::GROUP, "settings"),
            (
                Method::POST,
                "/v3/users/u-1?action=setpassword",
                "update",
                api_management::GROUP,
                "users",
            ),
        ] {
            let target = RequestTarget::of(path).unwrap();
            assert_eq!((target.group, target.resource), (group, resource), "{path}");
            assert_eq!(Verb::of(&method, path), Verb(verb), "{method} {path}");
        }
        assert_eq!(RequestTarget::of("/k8s/clusters/c-1"), None);
    }

    #[test]
    fn the_cluster_of_a_request_is_found_in_its_path_or_body() {
        let of = |path: &str, body: Value| cluster_of(path, Some(&body));
        let c_1 = Some("c-1".to_owned());
        assert_eq!(of("/k8s/clusters/c-1/api/v1/pods", json!(null)), c_1);
        assert_eq!(of("/v3/clusters/c-1?action=x", json!({})), c_1);
        assert_eq!(of("/v3/projects", json!({"clusterId": "c-1"})), c_1);
        assert_eq!(of("/v3/projectroletemplatebindings", json!({"projectId": "c-1:p-1"})), c_1);
        assert_eq!(of("/v3/projects/c-1:p-1", json!(null)), c_1);
        assert_eq!(of("/v3/settings/ui-pl", json!({"value": "x"})), None);
    }

    #[test]
    fn a_refusal_names_the_smallest_roles_that_would_allow_it() {
        let rule = |verbs: &[&str], groups: &[&str], resources: &[&str]| json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
        let templates = [
            json!({"id": "cluster-owner", "rules": [rule(&["*"], &["*"], &["*"])]}),
            json!({"id": "pods", "rules": [rule(&["get", "list"], &[""], &["pods"])]}),
            json!({"id": "more", "rules": [], "roleTemplateIds": ["pods", "more"]}),
            json!({"id": "in-projects", "context": "project",
                "rules": [rule(&["*"], &[""], &["pods"])]}),
        ];
        let roles = |verb: &'static str, resource: &'static str| {
            let target = RequestTarget { group: "", resource, has_name: false };
            roles_that_allow(&templates, Verb(verb), &target)
        };
        assert_eq!(roles("list", "pods"), ["pods", "more"]);
        assert_eq!(roles("delete", "pods"), ["cluster-owner"]);
        assert_eq!(roles("list", "secrets"), ["cluster-owner"]);
        let text = sentence("north", &["pods", "more"], &["admin".to_owned()], "maria");
        assert_eq!(
            text,
            "in cluster \"north\" one of the roles pods, more allows it; its owners (admin) and \
             administrators can give it: drover role grant pods --user maria --cluster north"
        );
        assert!(sentence("north", &[], &[], "maria").contains("its owners and administrators"));
    }
}
