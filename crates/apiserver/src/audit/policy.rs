//! Which requests are recorded, and in which detail: a Policy of `audit.k8s.io/v1`. Pure.

use serde::Deserialize;

use crate::attributes::UserInfo;
use crate::request::RequestInfo;

/// The detail in which a request is recorded. Each level includes those before it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    /// Nothing.
    None,
    /// The caller, the request, and the status of the response.
    Metadata,
    /// Also the request body.
    Request,
    /// Also the response body.
    RequestResponse,
}

impl AuditLevel {
    /// The name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// The stage of a request at which an event is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Stage {
    /// The request has arrived.
    RequestReceived,
    /// The response headers were sent. Only of long-running requests.
    ResponseStarted,
    /// The response was sent.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    /// The name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// An audit policy: the first matching rule decides about a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AuditPolicy {
    api_version: String,
    kind: String,
    #[serde(default)]
    #[expect(dead_code, reason = "allowed, and without meaning")]
    metadata: serde_json::Value,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rule {
    level: AuditLevel,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// The decision of the policy about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditDecision {
    /// [`AuditLevel::None`] excludes the request.
    pub level: AuditLevel,
    /// The stages at which no event is written.
    pub omit_stages: Vec<Stage>,
    /// Whether `managedFields` are removed from recorded bodies.
    pub omit_managed_fields: bool,
}

/// The group and the resource, with its subresource, of objects that are not recorded above
/// [`AuditLevel::Metadata`] unless a rule names them.
pub type Sensitive = (&'static str, &'static str);

/// The sensitive resources of Kubernetes, which contain credentials.
pub const SENSITIVE: &[Sensitive] = &[
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts/token"),
    ("authentication.k8s.io", "tokenreviews"),
];

impl Default for AuditPolicy {
    /// Records metadata of everything except health checks, without the stage `RequestReceived`.
    fn default() -> Self {
        let text = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [\
                    {level: None, nonResourceURLs: [/healthz*, /livez*, /readyz*]}, {level: Metadata}]}";
        Self::parse(text).expect("the policy is written here")
    }
}

impl AuditPolicy {
    /// Parses a policy in YAML or JSON.
    ///
    /// # Errors
    /// The problem, with the index of the rule; the caller does not start.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if (policy.api_version.as_str(), policy.kind.as_str()) != ("audit.k8s.io/v1", "Policy") {
            return Err(format!(
                "a Policy of audit.k8s.io/v1 is expected, got a {} of {}",
                policy.kind, policy.api_version
            ));
        }
        if policy.rules.is_empty() {
            return Err("the policy has no rules, so nothing would be recorded".to_owned());
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            rule.check().map_err(|problem| format!("rules[{index}]: {problem}"))?;
        }
        Ok(policy)
    }

    /// Decides what is recorded of a request; `user` is `None` when it is unknown. Resources in
    /// `sensitive` are recorded at most at the level of metadata, unless the matching rule names
    /// them.
    pub fn decide(
        &self,
        user: Option<&UserInfo>,
        info: &RequestInfo,
        sensitive: &[Sensitive],
    ) -> AuditDecision {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(user, info)) else {
            let (omit_stages, omit_managed_fields) = (Vec::new(), false);
            return AuditDecision { level: AuditLevel::None, omit_stages, omit_managed_fields };
        };
        let mut level = rule.level;
        if level > AuditLevel::Metadata && is_sensitive(info, sensitive) && !rule.names(info) {
            level = AuditLevel::Metadata;
        }
        let mut omit_stages = self.omit_stages.clone();
        omit_stages.extend(&rule.omit_stages);
        let omit_managed_fields = rule.omit_managed_fields.unwrap_or(self.omit_managed_fields);
        AuditDecision { level, omit_stages, omit_managed_fields }
    }
}

fn resource_path(info: &RequestInfo) -> String {
    match info.subresource.as_str() {
        "" => info.resource.clone(),
        subresource => format!("{}/{subresource}", info.resource),
    }
}

fn is_sensitive(info: &RequestInfo, sensitive: &[Sensitive]) -> bool {
    let resource_path = resource_path(info);
    info.is_resource
        && sensitive.iter().any(|(group, resource)| {
            *group == info.group && (*resource == resource_path || *resource == info.resource)
        })
}

fn contains(list: &[String], text: &str) -> bool {
    list.iter().any(|item| item == text)
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if of_resources && !self.non_resource_urls.is_empty() {
            return Err(
                "a rule is about resources or about nonResourceURLs, not both; make two".to_owned()
            );
        }
        for url in &self.non_resource_urls {
            let plain = url.strip_suffix('*').unwrap_or(url);
            if url != "*" && (!url.starts_with('/') || plain.contains('*')) {
                return Err(format!(
                    "nonResourceURLs: {url:?} must begin with a slash, with * at its end only"
                ));
            }
        }
        for resource in &self.resources {
            if resource.group.contains('/') {
                let group = &resource.group;
                return Err(format!("resources: group {group:?} must come without a version"));
            }
            if resource.resources.is_empty() && !resource.resource_names.is_empty() {
                return Err("resources: resourceNames need resources".to_owned());
            }
        }
        Ok(())
    }

    fn matches(&self, user: Option<&UserInfo>, info: &RequestInfo) -> bool {
        let has_name = |user: &UserInfo| contains(&self.users, &user.name);
        if !self.users.is_empty() && !user.is_some_and(has_name) {
            return false;
        }
        let has_group =
            |user: &UserInfo| user.groups.iter().any(|g| contains(&self.user_groups, g));
        if !self.user_groups.is_empty() && !user.is_some_and(has_group) {
            return false;
        }
        if !self.verbs.is_empty() && !contains(&self.verbs, info.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.is_resource && self.matches_resource(info);
        }
        if !self.non_resource_urls.is_empty() {
            return !info.is_resource && self.matches_path(&info.path);
        }
        true
    }

    fn matches_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => url == path,
        })
    }

    fn matches_resource(&self, info: &RequestInfo) -> bool {
        if !self.namespaces.is_empty() && !contains(&self.namespaces, &info.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|of| of.matches(info))
    }

    /// Whether the rule names the request's resource, without a wildcard.
    fn names(&self, info: &RequestInfo) -> bool {
        let resource_path = resource_path(info);
        let has_name =
            |of: &GroupResources| of.group == info.group && contains(&of.resources, &resource_path);
        self.resources.iter().any(has_name)
    }
}

impl GroupResources {
    fn matches(&self, info: &RequestInfo) -> bool {
        if self.group != info.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.resource_names.is_empty() && !contains(&self.resource_names, &info.name) {
            return false;
        }
        let resource_path = resource_path(info);
        self.resources.iter().any(|pattern| {
            let of_any = pattern.strip_prefix("*/").is_some_and(|sub| sub == info.subresource);
            let any_of = pattern.strip_suffix("/*").is_some_and(|of| of == info.resource);
            pattern == "*"
                || *pattern == resource_path
                || (of_any && !info.subresource.is_empty())
                || any_of
        })
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:kube-scheduler"]
  verbs: [watch]
- level: None
  userGroups: [quiet]
- level: Request
  resources: [{group: "", resources: [secrets]}]
  namespaces: [open]
- level: RequestResponse
  omitStages: [ResponseStarted]
  omitManagedFields: false
  resources:
  - {group: apps}
  - {group: "", resources: ["pods/*", "*/status"]}
  - {group: "", resources: [services], resourceNames: [one]}
- level: None
  nonResourceURLs: ["/healthz*", "/version"]
- level: RequestResponse
"#;

    fn level(user: &UserInfo, method: &Method, path: &str) -> AuditLevel {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let info = RequestInfo::parse(method, path, &Query::parse(Some(query)));
        AuditPolicy::parse(POLICY).unwrap().decide(Some(user), &info, SENSITIVE).level
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let alice = UserInfo::new("alice", &["dev"]);
        let quiet = UserInfo::new("bob", &["dev", "quiet"]);
        let scheduler = UserInfo::new("system:kube-scheduler", &[]);
        let pods = "/api/v1/namespaces/x/pods";
        for (user, path, expected) in [
            (&scheduler, "/api/v1/pods?watch=1", AuditLevel::None),
            (&scheduler, "/api/v1/pods", AuditLevel::RequestResponse),
            (&quiet, pods, AuditLevel::None),
            (&alice, "/apis/apps/v1/deployments", AuditLevel::RequestResponse),
            (&alice, "/healthz/ping", AuditLevel::None),
            (&alice, "/version", AuditLevel::None),
            (&alice, "/versions", AuditLevel::RequestResponse),
            (&alice, "/api/v1/namespaces/open/secrets/a", AuditLevel::Request),
            // Only matched by the catch-all rule, which is not enough for a Secret.
            (&alice, "/api/v1/namespaces/x/secrets/a", AuditLevel::Metadata),
            (&alice, "/api/v1/namespaces/x/configmaps", AuditLevel::Metadata),
            (&alice, "/api/v1/namespaces/x/services/one", AuditLevel::RequestResponse),
        ] {
            assert_eq!(level(user, &Method::GET, path), expected, "{} {path}", user.name);
        }
        let token = "/api/v1/namespaces/x/serviceaccounts/a/token";
        assert_eq!(level(&alice, &Method::POST, token), AuditLevel::Metadata);
        let review = "/apis/authentication.k8s.io/v1/tokenreviews";
        assert_eq!(level(&alice, &Method::POST, review), AuditLevel::Metadata);
    }

    #[test]
    fn stages_add_up_and_managed_fields_follow_the_rule() {
        let policy = AuditPolicy::parse(POLICY).unwrap();
        let decide = |path: &str| {
            let info = RequestInfo::parse(&Method::GET, path, &Query::default());
            policy.decide(Some(&UserInfo::new("alice", &[])), &info, &[])
        };
        let apps = decide("/apis/apps/v1/deployments");
        assert_eq!(apps.omit_stages, [Stage::RequestReceived, Stage::ResponseStarted]);
        assert!(!apps.omit_managed_fields);
        let other = decide("/api/v1/nodes");
        assert_eq!(other.omit_stages, [Stage::RequestReceived]);
        assert!(other.omit_managed_fields);
    }

    #[test]
    fn a_contradictory_policy_is_refused_with_the_reason() {
        let policy = |rules: &str| {
            AuditPolicy::parse(&format!(
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}"
            ))
        };
        for (rules, expected) in [
            ("[]", "no rules"),
            ("[{level: Loud}]", "Loud"),
            ("[{level: None, verb: [get]}]", "verb"),
            (
                "[{level: None, namespaces: [a], nonResourceURLs: [/a]}]",
                "rules[0]: a rule is about",
            ),
            ("[{level: None}, {level: None, nonResourceURLs: [a]}]", "rules[1]: nonResourceURLs"),
            ("[{level: None, resources: [{group: apps/v1}]}]", "without a version"),
        ] {
            let problem = policy(rules).unwrap_err();
            assert!(problem.contains(expected), "{rules}: {problem}");
        }
        let other = "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]";
        assert!(AuditPolicy::parse(other).unwrap_err().contains("audit.k8s.io/v1 is expected"));
        let info = RequestInfo::parse(&Method::GET, "/api/v1/nodes", &Query::default());
        let decision = AuditPolicy::default().decide(None, &info, SENSITIVE);
        assert_eq!(decision.level, AuditLevel::Metadata);
    }
}
