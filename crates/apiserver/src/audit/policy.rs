//! Which requests are recorded, and how much of them: a Policy of `audit.k8s.io/v1`. Pure.

use serde::Deserialize;

use crate::attributes::UserInfo;
use crate::request::RequestInfo;

/// How much of a request is recorded. Each holds what those before hold.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    None,
    /// Who asked for what, and the answer's status.
    Metadata,
    /// Also the body of the request.
    Request,
    /// Also the body of the answer.
    RequestResponse,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }
}

/// When in the life of a request an event is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Stage {
    RequestReceived,
    /// Of watches only: the head of the answer was sent.
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Policy {
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
    level: Level,
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

/// What the policy says of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    pub omit_stages: Vec<Stage>,
    pub omit_managed_fields: bool,
}

/// Resources that are not recorded above [`Level::Metadata`] unless a rule names them.
pub type Sensitive = (&'static str, &'static str);

/// Those of Kubernetes: what they hold opens doors.
pub const SENSITIVE: &[Sensitive] = &[
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts/token"),
    ("authentication.k8s.io", "tokenreviews"),
];

impl Default for Policy {
    /// Metadata of everything but health checks, without the stage that says nothing yet.
    fn default() -> Self {
        let text = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [\
                    {level: None, nonResourceURLs: [/healthz*, /livez*, /readyz*]}, {level: Metadata}]}";
        Self::parse(text).expect("the policy is written here")
    }
}

impl Policy {
    /// Reads YAML or JSON.
    ///
    /// # Errors
    /// What is wrong with it, with the rule in which it is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if (policy.api_version.as_str(), policy.kind.as_str()) != ("audit.k8s.io/v1", "Policy") {
            return Err(format!(
                "a Policy of audit.k8s.io/v1 is expected, and this is a {} of {}",
                policy.kind, policy.api_version
            ));
        }
        if policy.rules.is_empty() {
            return Err("it has no rules, so nothing would be recorded".to_owned());
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            rule.check().map_err(|problem| format!("rules[{index}]: {problem}"))?;
        }
        Ok(policy)
    }

    /// What is recorded of a request; `user` is absent when it is not known. Never more than
    /// metadata of the `sensitive`, unless the rule that decides names them.
    pub fn verdict(
        &self,
        user: Option<&UserInfo>,
        info: &RequestInfo,
        sensitive: &[Sensitive],
    ) -> Verdict {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(user, info)) else {
            let (omit_stages, omit_managed_fields) = (Vec::new(), false);
            return Verdict { level: Level::None, omit_stages, omit_managed_fields };
        };
        let mut level = rule.level;
        if level > Level::Metadata && is_sensitive(info, sensitive) && !rule.names(info) {
            level = Level::Metadata;
        }
        let mut omit_stages = self.omit_stages.clone();
        omit_stages.extend(&rule.omit_stages);
        let omit_managed_fields = rule.omit_managed_fields.unwrap_or(self.omit_managed_fields);
        Verdict { level, omit_stages, omit_managed_fields }
    }
}

fn combined(info: &RequestInfo) -> String {
    match info.subresource.as_str() {
        "" => info.resource.clone(),
        subresource => format!("{}/{subresource}", info.resource),
    }
}

fn is_sensitive(info: &RequestInfo, sensitive: &[Sensitive]) -> bool {
    let combined = combined(info);
    info.is_resource
        && sensitive.iter().any(|(group, resource)| {
            *group == info.group && (*resource == combined || *resource == info.resource)
        })
}

fn holds(list: &[String], text: &str) -> bool {
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
        let named = |user: &UserInfo| holds(&self.users, &user.name);
        if !self.users.is_empty() && !user.is_some_and(named) {
            return false;
        }
        let grouped = |user: &UserInfo| user.groups.iter().any(|g| holds(&self.user_groups, g));
        if !self.user_groups.is_empty() && !user.is_some_and(grouped) {
            return false;
        }
        if !self.verbs.is_empty() && !holds(&self.verbs, info.verb) {
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
        if !self.namespaces.is_empty() && !holds(&self.namespaces, &info.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|of| of.matches(info))
    }

    /// Whether the request's resource stands in the rule by its name.
    fn names(&self, info: &RequestInfo) -> bool {
        let combined = combined(info);
        let named = |of: &GroupResources| of.group == info.group && holds(&of.resources, &combined);
        self.resources.iter().any(named)
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
        if !self.resource_names.is_empty() && !holds(&self.resource_names, &info.name) {
            return false;
        }
        let combined = combined(info);
        self.resources.iter().any(|pattern| {
            let of_any = pattern.strip_prefix("*/").is_some_and(|sub| sub == info.subresource);
            let any_of = pattern.strip_suffix("/*").is_some_and(|of| of == info.resource);
            pattern == "*"
                || *pattern == combined
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

    fn level(user: &UserInfo, method: &Method, path: &str) -> Level {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let info = RequestInfo::parse(method, path, &Query::parse(Some(query)));
        Policy::parse(POLICY).unwrap().verdict(Some(user), &info, SENSITIVE).level
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let alice = UserInfo::new("alice", &["dev"]);
        let quiet = UserInfo::new("bob", &["dev", "quiet"]);
        let scheduler = UserInfo::new("system:kube-scheduler", &[]);
        let pods = "/api/v1/namespaces/x/pods";
        for (user, path, expected) in [
            (&scheduler, "/api/v1/pods?watch=1", Level::None),
            (&scheduler, "/api/v1/pods", Level::RequestResponse),
            (&quiet, pods, Level::None),
            (&alice, "/apis/apps/v1/deployments", Level::RequestResponse),
            (&alice, "/healthz/ping", Level::None),
            (&alice, "/version", Level::None),
            (&alice, "/versions", Level::RequestResponse),
            (&alice, "/api/v1/namespaces/open/secrets/a", Level::Request),
            // Only by the rule for everything, and that is not enough for a Secret.
            (&alice, "/api/v1/namespaces/x/secrets/a", Level::Metadata),
            (&alice, "/api/v1/namespaces/x/configmaps", Level::Metadata),
            (&alice, "/api/v1/namespaces/x/services/one", Level::RequestResponse),
        ] {
            assert_eq!(level(user, &Method::GET, path), expected, "{} {path}", user.name);
        }
        let token = "/api/v1/namespaces/x/serviceaccounts/a/token";
        assert_eq!(level(&alice, &Method::POST, token), Level::Metadata);
        let review = "/apis/authentication.k8s.io/v1/tokenreviews";
        assert_eq!(level(&alice, &Method::POST, review), Level::Metadata);
    }

    #[test]
    fn stages_add_up_and_managed_fields_follow_the_rule() {
        let policy = Policy::parse(POLICY).unwrap();
        let verdict = |path: &str| {
            let info = RequestInfo::parse(&Method::GET, path, &Query::default());
            policy.verdict(Some(&UserInfo::new("alice", &[])), &info, &[])
        };
        let apps = verdict("/apis/apps/v1/deployments");
        assert_eq!(apps.omit_stages, [Stage::RequestReceived, Stage::ResponseStarted]);
        assert!(!apps.omit_managed_fields);
        let other = verdict("/api/v1/nodes");
        assert_eq!(other.omit_stages, [Stage::RequestReceived]);
        assert!(other.omit_managed_fields);
    }

    #[test]
    fn a_policy_that_cannot_be_meant_is_refused_with_its_reason() {
        let policy = |rules: &str| {
            Policy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}"))
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
        assert!(Policy::parse(other).unwrap_err().contains("audit.k8s.io/v1 is expected"));
        let info = RequestInfo::parse(&Method::GET, "/api/v1/nodes", &Query::default());
        let verdict = Policy::default().verdict(None, &info, SENSITIVE);
        assert_eq!(verdict.level, Level::Metadata);
    }
}
