//! What policies of both kinds say, and the bindings that put them in force.

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
use crate::registry::admission::Request;
use crate::resource::Resource;

/// A policy with its bindings.
pub(super) struct Policy<R> {
    pub(super) rules: Arc<R>,
    pub(super) bindings: Vec<Arc<Binding>>,
}

/// What policies say whatever they do.
pub(super) struct Terms {
    pub(super) name: String,
    /// An error lets the write pass.
    pub(super) ignores_failure: bool,
    constraints: MatchResources,
    /// API version and kind of the parameters.
    pub(super) param_kind: Option<(String, String)>,
    /// With the variables.
    pub(super) scope: Composition,
    conditions: MatchConditions,
}

/// What a binding says.
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    /// `None` matches all that the policy matches.
    resources: Option<MatchResources>,
    /// `paramRef` as it is written.
    pub(super) param_ref: Value,
    /// Of a validating policy.
    pub(super) actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Warn,
    Audit,
}

impl Action {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

/// Which writes a policy or binding is about.
pub(super) struct MatchResources {
    namespaces: LabelSelector,
    objects: LabelSelector,
    equivalent: bool,
    /// Empty for all.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
}

impl MatchResources {
    fn read(resources: &Value) -> Self {
        // One that is not there or cannot be read, which validation rules out, must not exempt anything.
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

    /// The resource that the write is to be looked at as, if it matches.
    ///
    /// # Errors
    /// Its namespace cannot be read.
    async fn matched<'r>(
        &self,
        registry: &Registry,
        catalog: &'r Catalog,
        request: &Request<'r>,
        objects: Objects<'_>,
    ) -> Result<Option<&'r Resource>, Status> {
        let named = |rules| rules::named_by(rules, request, catalog, self.equivalent);
        if !rules::selects(&self.objects, objects) || named(&self.excluded).is_some() {
            return Ok(None);
        }
        let seen = match self.rules.is_empty() {
            true => Some(request.resource),
            false => named(&self.rules),
        };
        let Some(seen) = seen else { return Ok(None) };
        let inside = rules::in_namespaces(&self.namespaces, registry, request, objects).await?;
        Ok(inside.then_some(seen))
    }
}

impl Binding {
    pub(super) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let action = |text: &Value| match str_of(text) {
            "Warn" => Action::Warn,
            "Audit" => Action::Audit,
            _ => Action::Deny,
        };
        Self {
            name: str_of(&object["metadata"]["name"]).to_owned(),
            policy: str_of(&spec["policyName"]).to_owned(),
            resources: spec.get("matchResources").map(MatchResources::read),
            param_ref: spec["paramRef"].clone(),
            actions: items(&spec["validationActions"]).iter().map(action).collect(),
        }
    }

    /// Whether it is about the write.
    ///
    /// # Errors
    /// The namespace of the write cannot be read.
    pub(super) async fn matches(
        &self,
        registry: &Registry,
        catalog: &Catalog,
        request: &Request<'_>,
        objects: Objects<'_>,
    ) -> Result<bool, Status> {
        match &self.resources {
            None => Ok(true),
            Some(resources) => {
                Ok(resources.matched(registry, catalog, request, objects).await?.is_some())
            }
        }
    }
}

impl Terms {
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

    /// The resource that the write is to be looked at as, if the policy is about it.
    ///
    /// # Errors
    /// The namespace of the write cannot be read.
    pub(super) async fn matched<'r>(
        &self,
        registry: &Registry,
        catalog: &'r Catalog,
        request: &Request<'r>,
        objects: Objects<'_>,
    ) -> Result<Option<&'r Resource>, Status> {
        self.constraints.matched(registry, catalog, request, objects).await
    }

    /// Whether the conditions let the policy be asked.
    ///
    /// # Errors
    /// It cannot be told, and that refuses the write.
    pub(super) fn apply(&self, facts: Facts<'_>) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        // Conditions do not see the namespace.
        let facts = Facts { namespace: &Value::Null, ..facts };
        match self.conditions.hold(&self.scope.over(facts)) {
            Err(_) if self.ignores_failure => Ok(false),
            held => held,
        }
    }
}
