//! One webhook of a configuration, ready to be matched and called.

use std::sync::LazyLock;
use std::time::Duration;

use api_meta::labels::LabelSelector;
use serde_json::Value;

use crate::admission::expressions::Composition;
use crate::admission::match_conditions::MatchConditions;
use crate::admission::rules::{self, Rule};
use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::admission::Request;
use crate::resource::Resource;
use crate::webhook::ClientConfig;

/// What conditions of webhooks know.
pub(super) static SCOPE: LazyLock<Composition> = LazyLock::new(Composition::default);

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
            conditions: MatchConditions::new(&webhook["matchConditions"], &SCOPE),
            rules: items(&webhook["rules"]).iter().map(Rule::read).collect(),
        }
    }

    /// The resource that the webhook wants the write to be shown as, if it wants to be asked.
    pub(super) fn wanted<'r>(
        &self,
        request: &Request<'r>,
        catalog: &'r Catalog,
    ) -> Option<&'r Resource> {
        rules::named_by(&self.rules, request, catalog, self.equivalent)
    }
}
