//! The `authorizer` library: who may do what, asked while an expression is evaluated.
//!
//! An expression builds a question step by step (`authorizer.group('apps').resource('deployments')`)
//! and asks it with `check`. Who answers is the embedding program's [`Authority`].

use std::fmt;
use std::rc::Rc;

use api_meta::names;

use crate::value::{Outcome, Value, fail};

/// Answers what expressions ask. Must not wait: evaluation does not.
pub trait Authority {
    /// Whether `asker` may do what `question` says.
    fn decide(&self, asker: &Asker, question: &Question) -> Verdict;
}

/// On whose behalf is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Whoever sent the request that is judged.
    Requester,
    ServiceAccount {
        namespace: String,
        name: String,
    },
}

/// What is asked. Empty text means "none".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    Path { path: String, verb: String },
    Resource { resource: ResourceCheck, verb: String },
}

/// A resource that is asked about.
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

/// What the authority said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub reason: String,
    /// Why it could not be decided, if so.
    pub error: Option<String>,
}

/// Where a question begins, and each step on the way to its answer.
#[derive(Clone, Debug)]
pub enum Authorization<'a> {
    Authorizer(Authorizer<'a>),
    Path(Authorizer<'a>, String),
    Group(Authorizer<'a>, String),
    Resource(Authorizer<'a>, ResourceCheck),
    Decision(Verdict),
}

/// The value of `authorizer`: somebody to ask about, and who answers.
#[derive(Clone)]
pub struct Authorizer<'a> {
    authority: &'a dyn Authority,
    asker: Asker,
}

impl fmt::Debug for Authorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorizer").field(&self.asker).finish()
    }
}

impl<'a> Authorizer<'a> {
    pub fn new(authority: &'a dyn Authority) -> Self {
        Self { authority, asker: Asker::Requester }
    }

    fn decide(&self, question: &Question) -> Value<'a> {
        value(Authorization::Decision(self.authority.decide(&self.asker, question)))
    }
}

impl<'a> Value<'a> {
    /// `authorizer`.
    pub fn authorizer(authority: &'a dyn Authority) -> Self {
        value(Authorization::Authorizer(Authorizer::new(authority)))
    }

    /// `authorizer.requestResource`: the question about the resource of the request itself.
    pub fn request_resource(authority: &'a dyn Authority, resource: ResourceCheck) -> Self {
        value(Authorization::Resource(Authorizer::new(authority), resource))
    }
}

fn value(step: Authorization<'_>) -> Value<'_> {
    Value::Authorization(Rc::new(step))
}

/// The result of a function of this library; `None` when it is none.
pub(crate) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let (Value::Authorization(receiver), rest) = args.split_first()? else { return None };
    Some(match (function, &**receiver, rest) {
        ("path", Authorization::Authorizer(_), [Value::Text(path)]) if path.trim().is_empty() => {
            fail("path must not be empty")
        }
        ("path", Authorization::Authorizer(asker), [Value::Text(path)]) => {
            Ok(value(Authorization::Path(asker.clone(), path.to_string())))
        }
        ("group", Authorization::Authorizer(asker), [Value::Text(group)]) => {
            Ok(value(Authorization::Group(asker.clone(), group.to_string())))
        }
        (
            "serviceAccount",
            Authorization::Authorizer(asker),
            [Value::Text(namespace), Value::Text(name)],
        ) => service_account(asker, namespace, name),
        ("resource", Authorization::Group(..), [Value::Text(resource)])
            if resource.trim().is_empty() =>
        {
            fail("resource must not be empty")
        }
        ("resource", Authorization::Group(asker, group), [Value::Text(resource)]) => {
            let (group, resource) = (group.clone(), resource.to_string());
            let check = ResourceCheck { group, resource, ..ResourceCheck::default() };
            Ok(value(Authorization::Resource(asker.clone(), check)))
        }
        ("check", Authorization::Path(asker, path), [Value::Text(verb)]) => {
            Ok(asker.decide(&Question::Path { path: path.clone(), verb: verb.to_string() }))
        }
        ("check", Authorization::Resource(asker, resource), [Value::Text(verb)]) => {
            let (resource, verb) = (resource.clone(), verb.to_string());
            Ok(asker.decide(&Question::Resource { resource, verb }))
        }
        (_, Authorization::Resource(asker, resource), [Value::Text(text)]) => {
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
            Ok(value(Authorization::Resource(asker.clone(), resource)))
        }
        ("allowed", Authorization::Decision(verdict), []) => Ok(Value::Bool(verdict.allowed)),
        ("reason", Authorization::Decision(verdict), []) => Ok(Value::text(&*verdict.reason)),
        ("errored", Authorization::Decision(verdict), []) => {
            Ok(Value::Bool(verdict.error.is_some()))
        }
        ("error", Authorization::Decision(verdict), []) => {
            Ok(Value::text(verdict.error.as_deref().unwrap_or_default()))
        }
        _ => return None,
    })
}

fn service_account<'a>(asker: &Authorizer<'a>, namespace: &str, name: &str) -> Outcome<'a> {
    if !names::dns1123_subdomain(name).is_empty() {
        return fail("Invalid service account name");
    }
    if !names::dns1123_label(namespace).is_empty() {
        return fail("Invalid service account namespace");
    }
    let asker = Authorizer {
        asker: Asker::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() },
        ..asker.clone()
    };
    Ok(value(Authorization::Authorizer(asker)))
}
