//! The roles and bindings of one cluster, and which of them allow a request. Pure.
//!
//! Decides as the RBAC authorizer of Kubernetes does: cluster role bindings count everywhere, role
//! bindings in their namespace, and a rule counts if it allows the request alone.

use authz::{PolicyRule, RequestedAction};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject,
};
use kube::ResourceExt;
use serde::Serialize;

use crate::role_template::rules::{of_kube, to_authz};

/// Group that passes every authorization, without a binding.
const MASTERS: &str = "system:masters";
/// Prefix of the user names of service accounts.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The roles and bindings that decide about requests in one namespace, or about cluster-wide ones.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub cluster_roles: Vec<ClusterRole>,
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// Of the namespace of the request; empty for a cluster-wide one.
    pub roles: Vec<Role>,
    pub role_bindings: Vec<RoleBinding>,
}

/// A reference to an object of RBAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RbacObject {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// Who a binding names: kind `User`, `Group` or `ServiceAccount`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// A binding that allows a request, with the rule that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub binding: RbacObject,
    pub subject: Named,
    pub role: RbacObject,
    pub rule: PolicyRule,
}

/// Who sends a request.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    pub user: &'a str,
    pub groups: &'a [String],
}

impl Policy {
    /// Every grant that allows the action to the requester, one per binding and subject. A member
    /// of `system:masters` needs none: see [`is_master`].
    pub fn grants(&self, requester: Requester<'_>, action: &RequestedAction<'_>) -> Vec<Grant> {
        self.all_grants(action).filter(|grant| is_subject(&grant.subject, requester)).collect()
    }

    /// Every grant that allows the action to anybody.
    pub fn all_grants(&self, action: &RequestedAction<'_>) -> impl Iterator<Item = Grant> {
        let everywhere = self.cluster_role_bindings.iter().map(|binding| {
            let named = rbac_object("ClusterRoleBinding", "", binding.name_any());
            (named, &binding.role_ref, &binding.subjects)
        });
        let within = self.role_bindings.iter().map(|binding| {
            let namespace = binding.namespace().unwrap_or_default();
            let named = rbac_object("RoleBinding", &namespace, binding.name_any());
            (named, &binding.role_ref, &binding.subjects)
        });
        // A path is no part of a namespace: role bindings say nothing of it.
        let is_path = matches!(action, RequestedAction::Path { .. });
        let within = within.filter(move |_| !is_path);
        let action = *action;
        everywhere.chain(within).flat_map(move |(binding, role_ref, subjects)| {
            let found = self.rule(role_ref, &binding.namespace, &action);
            let subjects = subjects.iter().flatten().map(named).collect::<Vec<_>>();
            let grants = found.into_iter().flat_map(move |(role, rule)| {
                let binding = binding.clone();
                subjects.clone().into_iter().map(move |subject| Grant {
                    binding: binding.clone(),
                    subject,
                    role: role.clone(),
                    rule: rule.clone(),
                })
            });
            grants.collect::<Vec<_>>()
        })
    }

    /// The role of a binding in `namespace`, and its first rule that allows the action.
    fn rule(
        &self,
        role: &RoleRef,
        namespace: &str,
        action: &RequestedAction<'_>,
    ) -> Option<(RbacObject, PolicyRule)> {
        let (found, rules) = if role.kind == "ClusterRole" {
            let known = self.cluster_roles.iter().find(|known| known.name_any() == role.name)?;
            (rbac_object("ClusterRole", "", role.name.clone()), &known.rules)
        } else {
            let known = self.roles.iter().find(|known| {
                known.name_any() == role.name && known.namespace().as_deref() == Some(namespace)
            })?;
            (rbac_object("Role", namespace, role.name.clone()), &known.rules)
        };
        let mut rules = rules.iter().flatten().map(|rule| to_authz(&of_kube(rule)));
        rules.find(|rule| rule.allows(action)).map(|rule| (found, rule))
    }
}

/// Whether the requester passes every authorization.
pub fn is_master(requester: Requester<'_>) -> bool {
    requester.groups.iter().any(|group| group == MASTERS)
}

/// Whether the subject of a binding is the requester, or one of their groups.
pub fn is_subject(subject: &Named, requester: Requester<'_>) -> bool {
    match subject.kind.as_str() {
        "User" => subject.name == requester.user,
        "Group" => requester.groups.contains(&subject.name),
        "ServiceAccount" => {
            let account = requester.user.strip_prefix(SERVICE_ACCOUNT);
            account.and_then(|account| account.split_once(':'))
                == Some((subject.namespace.as_str(), subject.name.as_str()))
        }
        _ => false,
    }
}

fn rbac_object(kind: &'static str, namespace: &str, name: String) -> RbacObject {
    RbacObject { kind, namespace: namespace.to_owned(), name }
}

fn named(subject: &Subject) -> Named {
    Named {
        kind: subject.kind.clone(),
        namespace: subject.namespace.clone().unwrap_or_default(),
        name: subject.name.clone(),
    }
}
