//! The RBAC authorizer: decides from roles and bindings in memory.
//!
//! [`crate::authorization::follow`] passes it the stored objects ([`RbacAuthorizer::replace_all`],
//! [`RbacAuthorizer::put`], [`RbacAuthorizer::remove`]). A change takes effect with the next
//! decision. A decision looks up the bindings of the user's name and groups, so its cost does not
//! grow with the bindings of others.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use authz::{PolicyRule, RequestedAction, rules_allow};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use super::RBAC_GROUP;
use super::bindings::RbacPolicy;
use crate::attributes::{Attributes, Authorizer, Decision, GROUP_MASTERS, UserInfo};

/// The kinds of objects that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RbacKind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

impl RbacKind {
    /// All kinds, roles before bindings.
    pub const ALL: [Self; 4] =
        [Self::ClusterRole, Self::Role, Self::ClusterRoleBinding, Self::RoleBinding];

    /// The plural, as in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::ClusterRoleBinding => "clusterrolebindings",
        }
    }
    /// The kind, as in objects.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
            Self::RoleBinding => "RoleBinding",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
        }
    }
    /// Whether objects of the kind have a namespace.
    pub fn is_namespaced(self) -> bool {
        matches!(self, Self::Role | Self::RoleBinding)
    }
    /// Whether it is a kind of roles, not of bindings.
    pub fn is_role(self) -> bool {
        matches!(self, Self::Role | Self::ClusterRole)
    }
}

/// The reference of a binding to its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name of the role.
    pub name: String,
}

impl RoleRef {
    /// The role of a binding. Absent fields are empty.
    pub fn of_binding(binding: &Value) -> Self {
        let text = |field: &str| binding["roleRef"][field].as_str().unwrap_or_default().to_owned();
        Self { kind: text("kind"), name: text("name") }
    }
    /// Whether the role is a ClusterRole.
    pub fn is_cluster(&self) -> bool {
        self.kind == "ClusterRole"
    }
    fn not_found(&self) -> String {
        let name = authz::text::quoted(&self.name);
        format!("{}.{RBAC_GROUP} {name} not found", self.kind.to_lowercase())
    }
}

/// The rules of a user, as far as they can be resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRules {
    /// The rules of all resolved bindings, in the order of the bindings.
    pub rules: Vec<PolicyRule>,
    /// The errors of bindings whose role does not exist.
    pub errors: Vec<String>,
}

/// Resolves the rules of users and roles.
pub trait RuleResolver: Send + Sync + 'static {
    /// All rules of the user in the namespace, including cluster-wide ones; only the latter when
    /// the namespace is empty.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> ResolvedRules;

    /// The rules of a role that a binding in `namespace` refers to; `None` when it does not exist.
    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Vec<PolicyRule>>;
}

/// Decides by roles and bindings. Share it in an `Arc`. Without objects it only allows masters.
#[derive(Default)]
pub struct RbacAuthorizer {
    policy: RwLock<RbacPolicy>,
    /// Counts the changes of `policy`.
    changes: watch::Sender<u64>,
}

impl RbacAuthorizer {
    /// Replaces all objects of a kind by the result of a list.
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
        self.increment_generation();
    }

    /// Adds or replaces an object. Ignores an object of the wrong scope.
    pub fn put(&self, kind: RbacKind, object: &Value) {
        put(&mut self.policy.write(), kind, object);
        self.increment_generation();
    }

    /// Removes an object. `namespace` is empty for cluster-scoped kinds.
    pub fn remove(&self, kind: RbacKind, namespace: &str, name: &str) {
        let mut policy = self.policy.write();
        if kind.is_role() {
            policy.remove_role(namespace, name);
        } else {
            policy.remove_binding(namespace, name);
        }
        self.increment_generation();
    }

    fn increment_generation(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Adds an object. An object of a namespaced kind without a namespace would be taken as
/// cluster-wide, so it is ignored; and conversely.
fn put(policy: &mut RbacPolicy, kind: RbacKind, object: &Value) {
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
                None => add_distinct(&mut missing, grant.binding.role.not_found()),
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
                None => add_distinct(&mut resolved.errors, grant.binding.role.not_found()),
            }
        }
        resolved
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Vec<PolicyRule>> {
        self.policy.read().role(role, namespace).map(|rules| rules.to_vec())
    }
}

fn add_distinct(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

fn action(attributes: &Attributes) -> RequestedAction<'_> {
    if attributes.is_resource {
        RequestedAction::Resource {
            verb: &attributes.verb,
            group: &attributes.group,
            resource: &attributes.resource,
            subresource: &attributes.subresource,
            name: &attributes.name,
        }
    } else {
        RequestedAction::Path { verb: &attributes.verb, path: &attributes.path }
    }
}
