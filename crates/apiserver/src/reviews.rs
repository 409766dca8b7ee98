//! Questions about identity and rights: computed on POST, never stored.
//!
//! `TokenReview` and `SelfSubjectReview` tell who somebody is ([`identity`]); the access reviews
//! and `SelfSubjectRulesReview` what he may do ([`access`]).

pub mod access;
pub mod identity;

use std::sync::Arc;

use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::attributes::{Authorizer, UserInfo};
use crate::authentication::TokenAuthenticator;
use crate::authorization::RuleResolver;
use crate::resource::{Backend, Call, Endpoint, NameRule, Resource, Rules};
use crate::strategy::Strategy;

/// What reviews ask.
#[derive(Clone)]
pub struct ReviewSources {
    pub authorizer: Arc<dyn Authorizer>,
    pub rules: Arc<dyn RuleResolver>,
    pub tokens: Arc<dyn TokenAuthenticator>,
    /// What a token is for when a `TokenReview` does not say.
    pub audiences: Vec<String>,
}

/// The resource values of all reviews.
pub fn review_resources(sources: &ReviewSources) -> Vec<Resource> {
    let authorizer = || Arc::clone(&sources.authorizer);
    let tokens = identity::TokenReview::new(sources.tokens.clone(), sources.audiences.clone());
    let access = |scope| Arc::new(access::AccessReview::new(authorizer(), scope));
    use access::Scope;
    vec![
        computed("authentication.k8s.io", "TokenReview", false, Arc::new(tokens)),
        computed("authentication.k8s.io", "SelfSubjectReview", false, Arc::new(identity::WhoAmI)),
        computed("authorization.k8s.io", "SubjectAccessReview", false, access(Scope::Anybody)),
        computed("authorization.k8s.io", "SelfSubjectAccessReview", false, access(Scope::Asker)),
        computed(
            "authorization.k8s.io",
            "LocalSubjectAccessReview",
            true,
            access(Scope::Namespace),
        ),
        computed(
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            false,
            Arc::new(access::RulesReview::new(sources.rules.clone())),
        ),
    ]
}

/// A resource of `v1` that is only ever created, and never stored.
pub fn computed(
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
        rules: Rules {
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

/// Fills or checks the type of a review before it is answered.
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
        for (field, wanted) in [("apiVersion", &self.api_version), ("kind", &self.kind)] {
            let given = call.body[field].as_str().unwrap_or_default();
            if !given.is_empty() && given != wanted {
                let text = format!(
                    "the {field} in the data ({given}) does not match the expected {field} \
                     ({wanted})"
                );
                return Box::pin(std::future::ready(Err(Status::bad_request(text))));
            }
            let Some(body) = call.body.as_object_mut() else {
                let text = format!("the body of the request is not a {}", self.kind);
                return Box::pin(std::future::ready(Err(Status::bad_request(text))));
            };
            body.insert(field.to_owned(), json!(wanted));
        }
        self.endpoint.call(call)
    }
}

/// Reviews have no table form.
struct Unstored;

impl Strategy for Unstored {
    fn cells(&self, _object: &Value, _now: i64) -> Vec<Value> {
        Vec::new()
    }
}

/// An identity as reviews show it; what is empty is left out.
fn user_json(user: &UserInfo) -> Value {
    let mut shown = Map::new();
    let mut tell = |field: &str, value: Value| {
        shown.insert(field.to_owned(), value);
    };
    if !user.name.is_empty() {
        tell("username", json!(user.name));
    }
    if !user.uid.is_empty() {
        tell("uid", json!(user.uid));
    }
    if !user.groups.is_empty() {
        tell("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        tell("extra", json!(user.extra));
    }
    Value::Object(shown)
}

/// The review with an answer: type and metadata as they came, `spec` as given here.
fn answered(body: &Value, metadata: Value, spec: Option<Value>, status: Value) -> Value {
    let mut answer = json!({
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "metadata": if metadata.is_null() { json!({}) } else { metadata },
        "status": status,
    });
    if let Some(spec) = spec {
        answer["spec"] = spec;
    }
    answer
}

#[cfg(test)]
mod tests;
