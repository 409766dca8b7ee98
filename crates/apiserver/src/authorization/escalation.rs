//! Nobody grants what he does not hold: the checks on writes of roles and bindings.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use authz::PolicyRule;
use authz::cover::{covers, describe};
use authz::text::{quoted, quoted_list};
use serde_json::Value;

use super::RBAC_GROUP;
use super::bindings::rules_of_object;
use super::rbac::{RbacKind, RoleRef, RuleResolver};
use crate::attributes::{Attributes, Authorizer, Decision, GROUP_MASTERS, UserInfo};
use crate::strategy::Write;

/// Decides whether a writer may grant what an object grants.
pub struct EscalationGuard {
    authorizer: Arc<dyn Authorizer>,
    rules: Arc<dyn RuleResolver>,
}

impl EscalationGuard {
    /// `authorizer` is asked for the verbs `escalate` and `bind`, `rules` for what the writer
    /// holds.
    pub fn new(authorizer: Arc<dyn Authorizer>, rules: Arc<dyn RuleResolver>) -> Self {
        Self { authorizer, rules }
    }

    /// Whether a role may be written: the writer holds all its rules, or may `escalate` it.
    ///
    /// # Errors
    /// The 403 answer, which lists what the writer lacks.
    pub fn admit_role(
        &self,
        kind: RbacKind,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if old.is_some_and(|old| grants_nothing_new(old, object)) {
            return Ok(());
        }
        let user = write.user;
        let name = object.name();
        if user.in_group(GROUP_MASTERS) || self.allowed(user, "escalate", kind, write, name) {
            return Ok(());
        }
        let refuse = |text: &str| Status::forbidden(RBAC_GROUP, kind.plural(), name, text);
        let rules = rules_of_object(object)
            .map_err(|error| Status::bad_request(format!("rules do not decode: {error}")))?;
        self.holds(user, write.namespace, &rules).map_err(|text| refuse(&text))?;
        let aggregates = |object: &Value| !object["aggregationRule"].is_null();
        if aggregates(object) || old.is_some_and(aggregates) {
            let everything =
                [PolicyRule::resources(&["*"], &["*"], &["*"]), PolicyRule::paths(&["*"], &["*"])];
            self.holds(user, write.namespace, &everything).map_err(|_| {
                refuse("must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    /// Whether a binding may be written: the writer holds all rules of its role, or may `bind` that
    /// role.
    ///
    /// # Errors
    /// The 403 answer, or 404 when there is no such role.
    pub fn admit_binding(
        &self,
        kind: RbacKind,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if old.is_some_and(|old| grants_nothing_new(old, object)) {
            return Ok(());
        }
        let user = write.user;
        let role = RoleRef::of_binding(object);
        let role_kind = if role.is_cluster() { RbacKind::ClusterRole } else { RbacKind::Role };
        if user.in_group(GROUP_MASTERS) || self.allowed(user, "bind", role_kind, write, &role.name)
        {
            return Ok(());
        }
        let Some(rules) = self.rules.rules_of(&role, write.namespace) else {
            return Err(Status::not_found(RBAC_GROUP, kind.plural(), &role.name));
        };
        self.holds(user, write.namespace, &rules)
            .map_err(|text| Status::forbidden(RBAC_GROUP, kind.plural(), object.name(), &text))
    }

    fn allowed(
        &self,
        user: &UserInfo,
        verb: &str,
        kind: RbacKind,
        write: &Write<'_>,
        name: &str,
    ) -> bool {
        let attributes = Attributes {
            user: user.clone(),
            verb: verb.to_owned(),
            is_resource: true,
            group: RBAC_GROUP.to_owned(),
            version: "*".to_owned(),
            resource: kind.plural().to_owned(),
            namespace: write.namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        matches!(self.authorizer.authorize(&attributes), Decision::Allow { .. })
    }

    fn holds(&self, user: &UserInfo, namespace: &str, wanted: &[PolicyRule]) -> Result<(), String> {
        let held = self.rules.rules_for(user, namespace);
        let Err(missing) = covers(&held.rules, wanted) else { return Ok(()) };
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quoted(&user.name),
            quoted_list(&user.groups),
            describe(&missing),
        );
        if !held.errors.is_empty() {
            text.push_str(&format!("; resolution errors: [{}]", held.errors.join(" ")));
        }
        Err(text)
    }
}

/// Whether an update changes nothing, or only what garbage collection writes. A changed label
/// counts as a change: labels make roles part of others.
fn grants_nothing_new(old: &Value, new: &Value) -> bool {
    fn substance(object: &Value) -> Value {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            object.remove_meta(field);
        }
        object
    }
    substance(old) == substance(new)
}
