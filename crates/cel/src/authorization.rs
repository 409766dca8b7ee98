//! The `authorizer` library: expressions that query what a user may do.
//!
//! An expression builds a query step by step (`authorizer.group('apps').resource('deployments')`)
//! and sends it with `check`. The [`Authority`] of the embedding program decides.

use std::fmt;
use std::rc::Rc;

use api_meta::names;

use crate::value::{EvalResult, Value, fail};

/// Decides the queries of expressions. It must not block, because evaluation does not.
pub trait Authority {
    /// Whether `subject` may do what `query` describes. An authority that cannot decide sets
    /// [`AccessDecision::error`].
    fn decide(&self, subject: &AccessSubject, query: &AccessQuery) -> AccessDecision;
}

/// The user whose rights are queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessSubject {
    /// The user who sent the request that is validated.
    Requester,
    ServiceAccount {
        namespace: String,
        name: String,
    },
}

/// The path or resource that is queried, and the verb. Empty text means "none".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessQuery {
    Path { path: String, verb: String },
    Resource { resource: ResourceCheck, verb: String },
}

/// The resource of a query. Empty fields are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceCheck {
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

/// The decision of an authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    pub allowed: bool,
    /// For users; may be empty.
    pub reason: String,
    /// Why the query could not be decided, if so.
    pub error: Option<String>,
}

/// Each step from the authorizer to its decision.
#[derive(Clone, Debug)]
pub enum Authorization<'a> {
    Authorizer(Authorizer<'a>),
    Path(Authorizer<'a>, String),
    Group(Authorizer<'a>, String),
    Resource(Authorizer<'a>, ResourceCheck),
    Decision(AccessDecision),
}

/// The value of `authorizer`: the subject of the queries, and the authority that decides them.
#[derive(Clone)]
pub struct Authorizer<'a> {
    authority: &'a dyn Authority,
    subject: AccessSubject,
}

impl fmt::Debug for Authorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorizer").field(&self.subject).finish()
    }
}

impl<'a> Authorizer<'a> {
    /// An authorizer for the user who sent the request.
    pub fn new(authority: &'a dyn Authority) -> Self {
        Self { authority, subject: AccessSubject::Requester }
    }

    fn decide(&self, query: &AccessQuery) -> Value<'a> {
        value(Authorization::Decision(self.authority.decide(&self.subject, query)))
    }
}

impl<'a> Value<'a> {
    /// The value of the variable `authorizer`.
    pub fn authorizer(authority: &'a dyn Authority) -> Self {
        value(Authorization::Authorizer(Authorizer::new(authority)))
    }

    /// The value of `authorizer.requestResource`: a query about the resource of the request itself.
    pub fn request_resource(authority: &'a dyn Authority, resource: ResourceCheck) -> Self {
        value(Authorization::Resource(Authorizer::new(authority), resource))
    }
}

fn value(step: Authorization<'_>) -> Value<'_> {
    Value::Authorization(Rc::new(step))
}

/// The result of a function of this library; `None` for other functions.
pub(crate) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    let (Value::Authorization(receiver), rest) = args.split_first()? else { return None };
    Some(match (function, &**receiver, rest) {
        ("path", Authorization::Authorizer(_), [Value::Text(path)]) if path.trim().is_empty() => {
            fail("path must not be empty")
        }
        ("path", Authorization::Authorizer(subject), [Value::Text(path)]) => {
            Ok(value(Authorization::Path(subject.clone(), path.to_string())))
        }
        ("group", Authorization::Authorizer(subject), [Value::Text(group)]) => {
            Ok(value(Authorization::Group(subject.clone(), group.to_string())))
        }
        (
            "serviceAccount",
            Authorization::Authorizer(subject),
            [Value::Text(namespace), Value::Text(name)],
        ) => service_account(subject, namespace, name),
        ("resource", Authorization::Group(..), [Value::Text(resource)])
            if resource.trim().is_empty() =>
        {
            fail("resource must not be empty")
        }
        ("resource", Authorization::Group(subject, group), [Value::Text(resource)]) => {
            let (group, resource) = (group.clone(), resource.to_string());
            let check = ResourceCheck { group, resource, ..ResourceCheck::default() };
            Ok(value(Authorization::Resource(subject.clone(), check)))
        }
        ("check", Authorization::Path(subject, path), [Value::Text(verb)]) => {
            Ok(subject.decide(&AccessQuery::Path { path: path.clone(), verb: verb.to_string() }))
        }
        ("check", Authorization::Resource(subject, resource), [Value::Text(verb)]) => {
            let (resource, verb) = (resource.clone(), verb.to_string());
            Ok(subject.decide(&AccessQuery::Resource { resource, verb }))
        }
        (_, Authorization::Resource(subject, resource), [Value::Text(text)]) => {
            let mut resource = resource.clone();
            let field = match function {
                "subresource" => &mut resource.subresource,
                "namespace" => &mut resource.namespace,
                "name" => &mut resource.name,
                "fieldSelector" => &mut resource.field_selector,
                "labelSelector" => &mut resource.label_selector,
                _ => return None,
            };
            *field = text.to_string();
            Ok(value(Authorization::Resource(subject.clone(), resource)))
        }
        ("allowed", Authorization::Decision(decision), []) => Ok(Value::Bool(decision.allowed)),
        ("reason", Authorization::Decision(decision), []) => Ok(Value::text(&*decision.reason)),
        ("errored", Authorization::Decision(decision), []) => {
            Ok(Value::Bool(decision.error.is_some()))
        }
        ("error", Authorization::Decision(decision), []) => {
            Ok(Value::text(decision.error.as_deref().unwrap_or_default()))
        }
        _ => return None,
    })
}

fn service_account<'a>(subject: &Authorizer<'a>, namespace: &str, name: &str) -> EvalResult<'a> {
    if !names::dns1123_subdomain(name).is_empty() {
        return fail("Invalid service account name");
    }
    if !names::dns1123_label(namespace).is_empty() {
        return fail("Invalid service account namespace");
    }
    let subject = Authorizer {
        subject: AccessSubject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
        ..subject.clone()
    };
    Ok(value(Authorization::Authorizer(subject)))
}
