//! The authorizer: roles and bindings in memory, one decision at a time.
//!
//! It is told of objects by whoever watches them ([`RbacAuthorizer::replace_all`],
//! [`RbacAuthorizer::put`], [`RbacAuthorizer::remove`]); a change holds from the next decision on.
//! A decision looks up the bindings of the asker's name and groups, so its cost does not grow with
//! the number of bindings of others.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use authz::{Action, PolicyRule, rules_allow};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use super::RBAC_GROUP;
use super::bindings::Policy;
use crate::attributes::{Attributes, Authorizer, Decision, GROUP_MASTERS, UserInfo};

/// The kinds of objects that decisions rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RbacKind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

impl RbacKind {
    pub const ALL: [Self; 4] =
        [Self::ClusterRole, Self::Role, Self::ClusterRoleBinding, Self::RoleBinding];

    pub fn plural(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::ClusterRoleBinding => "clusterrolebindings",
        }
    }
    pub fn kind(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
            Self::RoleBinding => "RoleBinding",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
        }
    }
    pub fn is_namespaced(self) -> bool {
        matches!(self, Self::Role | Self::RoleBinding)
    }
    pub fn is_role(self) -> bool {
        matches!(self, Self::Role | Self::ClusterRole)
    }
}

/// The role that a binding binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    pub name: String,
}

impl RoleRef {
    pub fn of_binding(binding: &Value) -> Self {
        let text = |field: &str| binding["roleRef"][field].as_str().unwrap_or_default().to_owned();
        Self { kind: text("kind"), name: text("name") }
    }
    pub fn is_cluster(&self) -> bool {
        self.kind == "ClusterRole"
    }
    fn not_found(&self) -> String {
        let name = authz::text::quoted(&self.name);
        format!("{}.{RBAC_GROUP} {name} not found", self.kind.to_lowercase())
    }
}

/// What somebody holds, as far as it could be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRules {
    pub rules: Vec<PolicyRule>,
    /// Bindings that point nowhere.
    pub errors: Vec<String>,
}

/// Answers what somebody holds.
pub trait RuleResolver: Send + Sync + 'static {
    /// All rules that hold for the user in the namespace, cluster-wide ones included; only those
    /// when the namespace is empty.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> ResolvedRules;

    /// The rules of one role; `None` when there is no such role.
    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Vec<PolicyRule>>;
}

/// Decides by roles and bindings. Share it in an `Arc`.
#[derive(Default)]
pub struct RbacAuthorizer {
    policy: RwLock<Policy>,
    /// Counts the changes of `policy`.
    changes: watch::Sender<u64>,
}

impl RbacAuthorizer {
    /// Replaces all objects of a kind: the state after a list.
    pub fn replace_all<'v>(&self, kind: RbacKind, objects: impl IntoIterator<Item = &'v Value>) {
        let mut policy = self.policy.write();
        let of_kind = |namespace: &str| namespace.is_empty() != kind.is_namespaced();
        if kind.is_role() {
            policy.clear_roles(of_kind);
        } else {
            policy.clear_bindings(of_kind);
        }
        for object in objects {
            put(&mut policy, kind, object);
        }
        self.changed();
    }

    /// Takes in a new or changed object.
    pub fn put(&self, kind: RbacKind, object: &Value) {
        put(&mut self.policy.write(), kind, object);
        self.changed();
    }

    /// Forgets an object. `namespace` is empty for cluster-scoped kinds.
    pub fn remove(&self, kind: RbacKind, namespace: &str, name: &str) {
        let mut policy = self.policy.write();
        if kind.is_role() {
            policy.remove_role(namespace, name);
        } else {
            policy.remove_binding(namespace, name);
        }
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// An object of a namespaced kind without a namespace would read as cluster-wide, so it is not
/// taken; and conversely.
fn put(policy: &mut Policy, kind: RbacKind, object: &Value) {
    if object.namespace().is_empty() == kind.is_namespaced() {
        tracing::warn!(
            kind = kind.kind(),
            name = object.name(),
            "object of the wrong scope ignored"
        );
        return;
    }
    if kind.is_role() {
        policy.put_role(object);
    } else {
        policy.put_binding(object);
    }
}

impl Authorizer for RbacAuthorizer {
    fn authorize(&self, attributes: &Attributes) -> Decision {
        if attributes.user.in_group(GROUP_MASTERS) {
            return Decision::Allow { reason: String::new() };
        }
        let action = action(attributes);
        let namespace = if attributes.is_resource { attributes.namespace.as_str() } else { "" };
        let policy = self.policy.read();
        let mut missing = Vec::new();
        for grant in policy.grants(&attributes.user, namespace) {
            match policy.role(&grant.binding.role, &grant.binding.namespace) {
                Some(rules) if rules_allow(rules.iter(), &action) => {
                    return Decision::Allow { reason: grant.reason() };
                }
                Some(_) => {}
                None => note(&mut missing, grant.binding.role.not_found()),
            }
        }
        let reason = match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            many => format!("RBAC: [{}]", many.join(", ")),
        };
        Decision::NoOpinion { reason }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl RuleResolver for RbacAuthorizer {
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> ResolvedRules {
        let policy = self.policy.read();
        let mut grants: Vec<_> = policy.grants(user, namespace).collect();
        grants.sort_by_key(|grant| (&grant.binding.namespace, &grant.binding.name));
        grants.dedup_by(|a, b| Arc::ptr_eq(&a.binding, &b.binding));
        let mut resolved = ResolvedRules::default();
        for grant in grants {
            match policy.role(&grant.binding.role, &grant.binding.namespace) {
                Some(rules) => resolved.rules.extend(rules.iter().cloned()),
                None => note(&mut resolved.errors, grant.binding.role.not_found()),
            }
        }
        resolved
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Vec<PolicyRule>> {
        self.policy.read().role(role, namespace).map(|rules| rules.to_vec())
    }
}

fn note(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

fn action(attributes: &Attributes) -> Action<'_> {
    if attributes.is_resource {
        Action::Resource {
            verb: &attributes.verb,
            group: &attributes.group,
            resource: &attributes.resource,
            subresource: &attributes.subresource,
            name: &attributes.name,
        }
    } else {
        Action::Path { verb: &attributes.verb, path: &attributes.path }
    }
}
