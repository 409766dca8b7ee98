//! What policies of both kinds have in common, and the bindings that activate them.

use std::sync::Arc;

use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use serde_json::Value;

use crate::admission::expressions::{Composition, Facts};
use crate::admission::match_conditions::MatchConditions;
use crate::admission::rules::{self, Objects, Rule};
use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::Registry;
use crate::registry::admission::AdmissionRequest;
use crate::resource::Resource;

/// A policy with its bindings.
pub(super) struct BoundPolicy<R> {
    pub(super) rules: Arc<R>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// The common fields of policies.
pub(super) struct PolicyTerms {
    pub(super) name: String,
    /// Errors are ignored: `failurePolicy: Ignore`.
    pub(super) ignores_failure: bool,
    constraints: MatchResources,
    /// The API version and the kind of the parameters.
    pub(super) param_kind: Option<(String, String)>,
    /// The environment of the expressions, with the variables.
    pub(super) scope: Composition,
    conditions: MatchConditions,
}

/// A parsed binding.
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    /// The additional match of the binding; `None` matches everything that the policy matches.
    resources: Option<MatchResources>,
    /// `paramRef` as JSON.
    pub(super) param_ref: Value,
    /// What a failed validation does; empty for mutating policies.
    pub(super) actions: Vec<ValidationAction>,
}

/// What a failed validation does to the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValidationAction {
    Deny,
    Warn,
    Audit,
}

impl ValidationAction {
    /// The name in `validationActions`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// Which writes a policy or binding matches.
pub(super) struct MatchResources {
    namespaces: LabelSelector,
    objects: LabelSelector,
    equivalent: bool,
    /// The rules, of which one must match; empty matches every resource.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
}

impl MatchResources {
    fn read(resources: &Value) -> Self {
        // An absent selector, or one that cannot be parsed, which validation rules out, must not
        // exempt anything.
        let selector = |field: &str| match &resources[field] {
            Value::Null => LabelSelector::default(),
            selector => LabelSelector::from_object(selector).unwrap_or_default(),
        };
        let rules = |field: &str| items(&resources[field]).iter().map(Rule::read).collect();
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            equivalent: resources["matchPolicy"] != "Exact",
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
        }
    }

    /// The resource that a rule matched, if the write matches.
    ///
    /// # Errors
    /// The namespace of the write cannot be read.
    async fn matched_resource<'r>(
        &self,
        registry: &Registry,
        catalog: &'r Catalog,
        request: &AdmissionRequest<'r>,
        objects: Objects<'_>,
    ) -> Result<Option<&'r Resource>, Status> {
        let matching = |rules| rules::matching_resource(rules, request, catalog, self.equivalent);
        if !rules::selects(&self.objects, objects) || matching(&self.excluded).is_some() {
            return Ok(None);
        }
        let matched = match self.rules.is_empty() {
            true => Some(request.resource),
            false => matching(&self.rules),
        };
        let Some(matched) = matched else { return Ok(None) };
        let is_selected =
            rules::in_namespaces(&self.namespaces, registry, request, objects).await?;
        Ok(is_selected.then_some(matched))
    }
}

impl Binding {
    /// Parses a binding that passed validation.
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let action = |text: &Value| match str_of(text) {
            "Warn" => ValidationAction::Warn,
            "Audit" => ValidationAction::Audit,
            _ => ValidationAction::Deny,
        };
        Self {
            name: str_of(&object["metadata"]["name"]).to_owned(),
            policy: str_of(&spec["policyName"]).to_owned(),
            resources: spec.get("matchResources").map(MatchResources::read),
            param_ref: spec["paramRef"].clone(),
            actions: items(&spec["validationActions"]).iter().map(action).collect(),
        }
    }

    /// Whether the binding matches the write.
    ///
    /// # Errors
    /// The namespace of the write cannot be read.
    pub(super) async fn matches(
        &self,
        registry: &Registry,
        catalog: &Catalog,
        request: &AdmissionRequest<'_>,
        objects: Objects<'_>,
    ) -> Result<bool, Status> {
        match &self.resources {
            None => Ok(true),
            Some(resources) => {
                Ok(resources.matched_resource(registry, catalog, request, objects).await?.is_some())
            }
        }
    }
}

impl PolicyTerms {
    /// Parses and compiles the common fields of a policy. A variable that does not compile is
    /// logged.
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let param_kind = spec
            .get("paramKind")
            .map(|kind| (str_of(&kind["apiVersion"]).to_owned(), str_of(&kind["kind"]).to_owned()));
        let mut scope = Composition::new(param_kind.is_some());
        for variable in items(&spec["variables"]) {
            let (name, source) = (str_of(&variable["name"]), str_of(&variable["expression"]));
            if let Err(problem) = scope.add_variable(name, source) {
                tracing::warn!(name, problem, "a variable of an admission policy does not compile");
            }
        }
        Self {
            name: str_of(&object["metadata"]["name"]).to_owned(),
            ignores_failure: spec["failurePolicy"] == "Ignore",
            constraints: MatchResources::read(&spec["matchConstraints"]),
            param_kind,
            conditions: MatchConditions::new(&spec["matchConditions"], &scope),
            scope,
        }
    }

    /// The resource that a rule of the policy matched, if the write matches.
    ///
    /// # Errors
    /// The namespace of the write cannot be read.
    pub(super) async fn matched_resource<'r>(
        &self,
        registry: &Registry,
        catalog: &'r Catalog,
        request: &AdmissionRequest<'r>,
        objects: Objects<'_>,
    ) -> Result<Option<&'r Resource>, Status> {
        self.constraints.matched_resource(registry, catalog, request, objects).await
    }

    /// Whether the match conditions of the policy are true.
    ///
    /// # Errors
    /// A condition failed and the failure policy is `Fail`: the write is refused.
    pub(super) fn conditions_match(&self, facts: Facts<'_>) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        // Conditions have no `namespaceObject`.
        let facts = Facts { namespace: &Value::Null, ..facts };
        match self.conditions.all_match(&self.scope.over(facts)) {
            Err(_) if self.ignores_failure => Ok(false),
            held => held,
        }
    }
}
