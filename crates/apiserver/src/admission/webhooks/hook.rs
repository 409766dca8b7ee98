//! One parsed webhook of a configuration, which matches writes.

use std::sync::LazyLock;
use std::time::Duration;

use api_meta::labels::LabelSelector;
use serde_json::Value;

use crate::admission::expressions::Composition;
use crate::admission::match_conditions::MatchConditions;
use crate::admission::rules::{self, Rule};
use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::admission::AdmissionRequest;
use crate::resource::Resource;
use crate::webhook::ClientConfig;

/// The environment of match conditions of webhooks.
pub(super) static SCOPE: LazyLock<Composition> = LazyLock::new(Composition::default);

/// A parsed webhook.
pub(super) struct Hook {
    pub(super) name: String,
    /// How to call the webhook, or why it cannot be called.
    pub(super) client: Result<ClientConfig, String>,
    pub(super) timeout: Duration,
    /// Failed calls are ignored: `failurePolicy: Ignore`.
    pub(super) ignores_failure: bool,
    /// Is called again when a later webhook changed the object: `reinvocationPolicy: IfNeeded`.
    pub(super) is_reinvoked: bool,
    /// Rules also match other versions of the resource: `matchPolicy: Equivalent`.
    pub(super) equivalent: bool,
    /// A call has side effects even in a dry run, so dry runs are refused.
    pub(super) has_side_effects: bool,
    /// The version of AdmissionReview: `v1` or `v1beta1`.
    pub(super) review_version: &'static str,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    pub(super) conditions: MatchConditions,
    rules: Vec<Rule>,
}

impl Hook {
    /// Parses an entry of `webhooks` that was validated and defaulted.
    pub(super) fn read(webhook: &Value) -> Self {
        // A selector that cannot be parsed, which validation rules out, must not exempt anything.
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
            is_reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
            equivalent: webhook["matchPolicy"] != "Exact",
            has_side_effects: !["None", "NoneOnDryRun"].contains(&str_of(&webhook["sideEffects"])),
            review_version: first.unwrap_or("v1"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            conditions: MatchConditions::new(&webhook["matchConditions"], &SCOPE),
            rules: items(&webhook["rules"]).iter().map(Rule::read).collect(),
        }
    }

    /// The resource to which objects are converted for the webhook; `None` when no rule matches.
    pub(super) fn matching_resource<'r>(
        &self,
        request: &AdmissionRequest<'r>,
        catalog: &'r Catalog,
    ) -> Option<&'r Resource> {
        rules::matching_resource(&self.rules, request, catalog, self.equivalent)
    }
}
