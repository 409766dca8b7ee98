//! Reviews of identity and permissions: computed on POST, never stored.
//!
//! `TokenReview` and `SelfSubjectReview` return an identity ([`identity`]); the access reviews and
//! `SelfSubjectRulesReview` return permissions ([`access`]).

mod access;
mod identity;

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::attributes::{Authorizer, UserInfo};
use apiserver::authentication::TokenAuthenticator;
use apiserver::authorization::RuleResolver;
use apiserver::resource::{Backend, Call, Endpoint, NameRule, Resource, ResourceRules};
use apiserver::strategy::Strategy;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

/// What reviews are computed from.
#[derive(Clone)]
pub struct ReviewSources {
    /// Evaluates access reviews.
    pub authorizer: Arc<dyn Authorizer>,
    /// Lists the rules for `SelfSubjectRulesReview`.
    pub rules: Arc<dyn RuleResolver>,
    /// Authenticates the tokens of `TokenReview`.
    pub tokens: Arc<dyn TokenAuthenticator>,
    /// The audiences of a `TokenReview` that names none.
    pub audiences: Vec<String>,
}

/// The resources of all reviews.
pub fn review_resources(sources: &ReviewSources) -> Vec<Resource> {
    let authorizer = || Arc::clone(&sources.authorizer);
    let tokens = identity::TokenReview::new(sources.tokens.clone(), sources.audiences.clone());
    let access = |scope| Arc::new(access::AccessReview::new(authorizer(), scope));
    use access::ReviewScope;
    vec![
        computed_resource("authentication.k8s.io", "TokenReview", false, Arc::new(tokens)),
        computed_resource(
            "authentication.k8s.io",
            "SelfSubjectReview",
            false,
            Arc::new(identity::WhoAmI),
        ),
        computed_resource(
            "authorization.k8s.io",
            "SubjectAccessReview",
            false,
            access(ReviewScope::Anybody),
        ),
        computed_resource(
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            false,
            access(ReviewScope::Requester),
        ),
        computed_resource(
            "authorization.k8s.io",
            "LocalSubjectAccessReview",
            true,
            access(ReviewScope::Namespace),
        ),
        computed_resource(
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            false,
            Arc::new(access::RulesReview::new(sources.rules.clone())),
        ),
    ]
}

/// A resource in version `v1` that can only be created, and is never stored.
pub(crate) fn computed_resource(
    group: &str,
    kind: &str,
    namespaced: bool,
    endpoint: Arc<dyn Endpoint>,
) -> Resource {
    let singular = kind.to_lowercase();
    Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: format!("{singular}s"),
        singular,
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        namespaced,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: vec!["create"],
        subresources: Vec::new(),
        backend: Backend::Computed(Arc::new(Typed {
            api_version: if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") },
            kind: kind.to_owned(),
            endpoint,
        })),
        strategy: Arc::new(Unstored),
        columns: Vec::new(),
        rules: ResourceRules {
            generation: false,
            create_on_update: false,
            unconditional_update: false,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::Dns1123Subdomain,
        selectable_fields: Vec::new(),
        custom: false,
    }
}

/// Completes or validates the type of a body before the endpoint is called.
struct Typed {
    api_version: String,
    kind: String,
    endpoint: Arc<dyn Endpoint>,
}

impl Endpoint for Typed {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        if call.body.is_null() {
            call.body = json!({});
        }
        for (field, expected) in [("apiVersion", &self.api_version), ("kind", &self.kind)] {
            let given = call.body[field].as_str().unwrap_or_default();
            if !given.is_empty() && given != expected {
                let text = format!(
                    "the {field} in the data ({given}) does not match the expected {field} \
                     ({expected})"
                );
                return Box::pin(std::future::ready(Err(Status::bad_request(text))));
            }
            let Some(body) = call.body.as_object_mut() else {
                let text = format!("the body of the request is not a {}", self.kind);
                return Box::pin(std::future::ready(Err(Status::bad_request(text))));
            };
            body.insert(field.to_owned(), json!(expected));
        }
        self.endpoint.call(call)
    }
}

/// Reviews have no Table representation.
struct Unstored;

impl Strategy for Unstored {
    fn cells(&self, _object: &Value, _now: i64) -> Vec<Value> {
        Vec::new()
    }
}

/// An identity as reviews return it; empty fields are omitted.
fn user_json(user: &UserInfo) -> Value {
    let mut fields = Map::new();
    let mut insert = |field: &str, value: Value| {
        fields.insert(field.to_owned(), value);
    };
    if !user.name.is_empty() {
        insert("username", json!(user.name));
    }
    if !user.uid.is_empty() {
        insert("uid", json!(user.uid));
    }
    if !user.groups.is_empty() {
        insert("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        insert("extra", json!(user.extra));
    }
    Value::Object(fields)
}

/// A review with its status: type and metadata as they were sent, `spec` as given here.
fn with_status(body: &Value, metadata: Value, spec: Option<Value>, status: Value) -> Value {
    let mut review = json!({
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": if metadata.is_null() { json!({}) } else { metadata },
        "status": status,
    });
    if let Some(spec) = spec {
        review["spec"] = spec;
    }
    review
}

#[cfg(test)]
mod tests;
