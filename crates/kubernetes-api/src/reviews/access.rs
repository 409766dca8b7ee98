//! The access reviews, and the list of all permissions of the requester.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_meta::status::{Cause, Status};
use apiserver::attributes::{Attributes, Authorizer, Decision, UserInfo};
use apiserver::authorization::RuleResolver;
use apiserver::resource::{Call, Endpoint};
use authz::PolicyRule;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::with_status;

const GROUP: &str = "authorization.k8s.io";

/// Whose permissions a review may query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewScope {
    /// Any user, in any namespace: `SubjectAccessReview`.
    Anybody,
    /// Any user, in the namespace of the review: `LocalSubjectAccessReview`.
    Namespace,
    /// The requester: `SelfSubjectAccessReview`.
    Requester,
}

/// Whether a user has a permission.
pub struct AccessReview {
    authorizer: Arc<dyn Authorizer>,
    scope: ReviewScope,
}

impl AccessReview {
    /// A review endpoint that queries this authorizer.
    pub fn new(authorizer: Arc<dyn Authorizer>, scope: ReviewScope) -> Self {
        Self { authorizer, scope }
    }

    fn review(&self, call: &Call) -> Result<Value, Status> {
        let spec = &call.body["spec"];
        let causes = self.violations(call);
        if !causes.is_empty() {
            return Err(Status::invalid(GROUP, "", "", causes));
        }
        let user = match self.scope {
            ReviewScope::Requester => call.user.clone(),
            ReviewScope::Anybody | ReviewScope::Namespace => subject(spec)?,
        };
        let status = match self.authorizer.authorize(&attributes(spec, user)) {
            Decision::Allow { reason } => access_status(true, false, &reason),
            Decision::Deny { reason } => access_status(false, true, &reason),
            Decision::NoOpinion { reason } => access_status(false, false, &reason),
        };
        let metadata = match &call.body["metadata"] {
            Value::Object(metadata) => Value::Object(metadata.clone()),
            _ => json!({}),
        };
        let mut review = with_status(&call.body, metadata, Some(spec.clone()), status);
        if self.scope == ReviewScope::Namespace {
            review["metadata"]["namespace"] = json!(call.namespace);
        }
        Ok(review)
    }

    fn violations(&self, call: &Call) -> Vec<Cause> {
        let spec = &call.body["spec"];
        let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        let mut causes = Vec::new();
        match (resource.is_null(), path.is_null()) {
            (false, false) => {
                let text = "cannot be specified in combination with resourceAttributes";
                let shown = json!({"Path": path["path"], "Verb": path["verb"]});
                causes.push(Cause::invalid("spec.nonResourceAttributes", &shown, text));
            }
            (true, true) => {
                let text =
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, text));
            }
            _ => {}
        }
        let groups = spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
        let user = spec["user"].as_str().unwrap_or_default();
        if self.scope != ReviewScope::Requester && user.is_empty() && !groups {
            let text = "at least one of user or group must be specified";
            causes.push(Cause::invalid("spec.user", &json!(""), text));
        }
        if self.scope == ReviewScope::Namespace {
            if !path.is_null() {
                let text = "disallowed on this kind of request";
                let shown = json!({"Path": path["path"], "Verb": path["verb"]});
                causes.push(Cause::invalid("spec.nonResourceAttributes", &shown, text));
            }
            let namespace = resource["namespace"].as_str().unwrap_or_default();
            if !resource.is_null() && namespace != call.namespace {
                let text = "must match metadata.namespace";
                let field = "spec.resourceAttributes.namespace";
                causes.push(Cause::invalid(field, &json!(namespace), text));
            }
        }
        causes
    }
}

impl Endpoint for AccessReview {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(std::future::ready(self.review(&call).map(|review| (201, review))))
    }
}

fn access_status(allowed: bool, denied: bool, reason: &str) -> Value {
    let mut status = json!({"allowed": allowed});
    if denied {
        status["denied"] = json!(true);
    }
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

fn subject(spec: &Value) -> Result<UserInfo, Status> {
    fn list<T: serde::de::DeserializeOwned + Default>(
        spec: &Value,
        field: &str,
    ) -> Result<T, Status> {
        match &spec[field] {
            Value::Null => Ok(T::default()),
            value => serde_json::from_value(value.clone())
                .map_err(|error| Status::bad_request(format!("spec.{field}: {error}"))),
        }
    }
    Ok(UserInfo {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: list(spec, "groups")?,
        extra: list::<BTreeMap<String, Vec<String>>>(spec, "extra")?,
    })
}

fn attributes(spec: &Value, user: UserInfo) -> Attributes {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let path = &spec["nonResourceAttributes"];
    if !path.is_null() {
        let (verb, path) = (text(path, "verb"), text(path, "path"));
        return Attributes { user, verb, path, ..Attributes::default() };
    }
    let resource = &spec["resourceAttributes"];
    Attributes {
        user,
        verb: text(resource, "verb"),
        is_resource: true,
        group: text(resource, "group"),
        version: text(resource, "version"),
        resource: text(resource, "resource"),
        subresource: text(resource, "subresource"),
        namespace: text(resource, "namespace"),
        name: text(resource, "name"),
        path: String::new(),
    }
}

/// All rules of the requester in a namespace.
pub struct RulesReview {
    rules: Arc<dyn RuleResolver>,
}

impl RulesReview {
    /// A review endpoint that queries this resolver.
    pub fn new(rules: Arc<dyn RuleResolver>) -> Self {
        Self { rules }
    }

    fn review(&self, call: &Call) -> Result<Value, Status> {
        let namespace = call.body["spec"]["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let held = self.rules.rules_for(&call.user, namespace);
        let json = |rule: &PolicyRule| serde_json::to_value(rule).expect("lists serialise");
        let (paths, resources): (Vec<_>, Vec<_>) =
            held.rules.iter().partition(|rule| !rule.non_resource_urls.is_empty());
        let mut status = json!({
            "resourceRules": resources.into_iter().map(json).collect::<Vec<_>>(),
            "nonResourceRules": paths.into_iter().map(json).collect::<Vec<_>>(),
            "incomplete": false,
        });
        match held.errors.as_slice() {
            [] => {}
            [one] => status["evaluationError"] = json!(one),
            many => status["evaluationError"] = json!(format!("[{}]", many.join(", "))),
        }
        Ok(with_status(&call.body, json!({}), Some(json!({})), status))
    }
}

impl Endpoint for RulesReview {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(std::future::ready(self.review(&call).map(|review| (201, review))))
    }
}
