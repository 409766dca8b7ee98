//! One webhook of a configuration, ready to be matched and called.

use std::time::Duration;

use api_meta::labels::LabelSelector;
use serde_json::Value;

use crate::admission::match_conditions::MatchConditions;
use crate::admission::request::Request;
use crate::builtin::fields::{items, str_of};
use crate::resource::Resource;
use crate::webhook::ClientConfig;

pub(super) struct Hook {
    pub(super) name: String,
    /// Why it cannot be called, when it cannot.
    pub(super) client: Result<ClientConfig, String>,
    pub(super) timeout: Duration,
    /// A call that fails is passed over.
    pub(super) ignores_failure: bool,
    /// Asked again when a later webhook changed the object.
    pub(super) reinvoked: bool,
    /// Asked also when a rule names another version of the resource.
    pub(super) equivalent: bool,
    /// A dry run would leave traces.
    pub(super) has_side_effects: bool,
    /// The version of AdmissionReview: `v1` or `v1beta1`.
    pub(super) review_version: &'static str,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    pub(super) conditions: MatchConditions,
    rules: Vec<Rule>,
}

struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
}

impl Hook {
    /// Reads an entry of `webhooks` as it was validated and defaulted.
    pub(super) fn read(webhook: &Value) -> Self {
        // A selector that cannot be read, which validation rules out, must not exempt anything.
        let selector = |field: &str| {
            LabelSelector::from_object(&webhook[field]).unwrap_or_else(|_| LabelSelector::default())
        };
        let versions = items(&webhook["admissionReviewVersions"]);
        let known = ["v1", "v1beta1"];
        let first = versions.iter().find_map(|one| known.into_iter().find(|known| one == known));
        Self {
            name: str_of(&webhook["name"]).to_owned(),
            client: ClientConfig::read(&webhook["clientConfig"]),
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
            ignores_failure: webhook["failurePolicy"] == "Ignore",
            reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
            equivalent: webhook["matchPolicy"] != "Exact",
            has_side_effects: !["None", "NoneOnDryRun"].contains(&str_of(&webhook["sideEffects"])),
            review_version: first.unwrap_or("v1"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: MatchConditions::new(&webhook["matchConditions"]),
            rules: items(&webhook["rules"]).iter().map(Rule::read).collect(),
        }
    }

    /// Whether a rule names the write as if it were one of `version`.
    pub(super) fn names(&self, request: &Request<'_>, version: &str) -> bool {
        self.rules.iter().any(|rule| rule.names(request, version))
    }

    /// The version in which a webhook wants the object, of those that are served: the request's own
    /// if a rule names it, else the first that a rule names.
    pub(super) fn wanted_version<'v>(
        &self,
        request: &Request<'_>,
        served: &[&'v str],
        own: &'v str,
    ) -> Option<&'v str> {
        if self.names(request, own) {
            return Some(own);
        }
        if !self.equivalent {
            return None;
        }
        let others = || served.iter().copied().filter(|version| *version != own);
        self.rules.iter().find_map(|rule| others().find(|version| rule.names(request, version)))
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            items(&rule[field]).iter().map(|text| str_of(text).to_owned()).collect()
        };
        let split = |text: String| match text.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (text, String::new()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: match str_of(&rule["scope"]) {
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::All,
            },
        }
    }

    fn names(&self, request: &Request<'_>, version: &str) -> bool {
        let resource = request.resource;
        self.covers_scope(resource)
            && any_is(&self.operations, request.operation.as_str())
            && any_is(&self.groups, &resource.group)
            && any_is(&self.versions, version)
            && self.resources.iter().any(|(plural, subresource)| {
                is(plural, &resource.plural) && is(subresource, request.subresource)
            })
    }

    fn covers_scope(&self, resource: &Resource) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !resource.namespaced,
            Scope::Namespaced => resource.namespaced,
        }
    }
}

fn is(pattern: &str, text: &str) -> bool {
    pattern == "*" || pattern == text
}

fn any_is(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| is(pattern, text))
}
