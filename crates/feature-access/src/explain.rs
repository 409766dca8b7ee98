//! Why a user may do something, or may not, and who may.
//!
//! A cluster decides by its own roles and bindings, for the groups that the proxy sends with a
//! request. So an explanation has two halves: [`policy`] finds, in the cluster, the bindings and
//! rules that allow a request (pure); the role graph says from which binding in the management API
//! each role group comes. [`why`] joins them for one user, [`who`] for all, [`diff`] compares the
//! graph with what it would be after changes. [`route`] serves them, about oneself to everybody,
//! about others to those who may list the members of the cluster.

pub mod diff;
pub mod policy;
mod route;
mod who;
mod why;

pub use route::{PREFIX, handler, identity};

use serde::{Deserialize, Serialize};

/// A request to explain, as clients send it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Question {
    /// Id of the cluster; `local` is the management API.
    pub cluster: String,
    /// Id of a user; empty: the caller.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    pub verb: String,
    /// API group; empty: the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural of a resource; empty when `path` is set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// Empty: in all namespaces, or of a cluster-scoped resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Empty: of any object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A path that is no resource, such as `/metrics`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl Question {
    /// What is missing or contradictory; `None` when it can be answered.
    pub fn problem(&self) -> Option<&'static str> {
        match self {
            Self { cluster, .. } if cluster.is_empty() => Some("the cluster is missing"),
            Self { verb, .. } if verb.is_empty() => Some("the verb is missing"),
            Self { resource, path, .. } if resource.is_empty() == path.is_empty() => {
                Some("give a resource or a path, one of them")
            }
            Self { path, namespace, name, .. }
                if !path.is_empty() && (!namespace.is_empty() || !name.is_empty()) =>
            {
                Some("a path has neither namespace nor name")
            }
            _ => None,
        }
    }

    /// The request as rules see it.
    pub fn action(&self) -> authz::RequestedAction<'_> {
        match self.path.as_str() {
            "" => authz::RequestedAction::Resource {
                verb: &self.verb,
                group: &self.group,
                resource: &self.resource,
                subresource: &self.subresource,
                name: &self.name,
            },
            path => authz::RequestedAction::Path { verb: &self.verb, path },
        }
    }

    /// The smallest rule that would allow it.
    pub fn rule(&self) -> authz::PolicyRule {
        if !self.path.is_empty() {
            return authz::PolicyRule::paths(&[&self.path], &[&self.verb]);
        }
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let rule = authz::PolicyRule::resources(&[&self.group], &[&resource], &[&self.verb]);
        if self.name.is_empty() { rule } else { rule.with_names(&[&self.name]) }
    }
}

#[cfg(test)]
mod tests;
