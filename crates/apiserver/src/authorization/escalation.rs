//! Privilege escalation: users grant only permissions that they hold. Checks writes of roles and
//! bindings.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use authz::PolicyRule;
use authz::cover::{covers, describe};
use authz::text::{quoted, quoted_list};
use serde_json::Value;

use super::RBAC_GROUP;
use super::bindings::parse_rules;
use super::rbac::{RbacKind, RoleRef, RuleResolver};
use crate::attributes::{Attributes, Authorizer, Decision, GROUP_MASTERS, UserInfo};
use crate::strategy::Write;

/// Decides whether a writer may grant the permissions of an object.
pub struct EscalationGuard {
    authorizer: Arc<dyn Authorizer>,
    rules: Arc<dyn RuleResolver>,
}

impl EscalationGuard {
    /// Creates the guard. `authorizer` decides about the verbs `escalate` and `bind`; `rules`
    /// resolves the permissions of the writer.
    pub fn new(authorizer: Arc<dyn Authorizer>, rules: Arc<dyn RuleResolver>) -> Self {
        Self { authorizer, rules }
    }

    /// Checks that the writer of a role holds all its rules, or may `escalate` it. Updates that
    /// grant nothing new pass.
    ///
    /// # Errors
    /// 403 with the permissions that the writer lacks; 400 for rules that do not decode.
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
        if user.in_group(GROUP_MASTERS) || self.is_allowed(user, "escalate", kind, write, name) {
            return Ok(());
        }
        let refuse = |text: &str| Status::forbidden(RBAC_GROUP, kind.plural(), name, text);
        let rules = parse_rules(object)
            .map_err(|error| Status::bad_request(format!("rules do not decode: {error}")))?;
        self.check_held(user, write.namespace, &rules).map_err(|text| refuse(&text))?;
        let aggregates = |object: &Value| !object["aggregationRule"].is_null();
        if aggregates(object) || old.is_some_and(aggregates) {
            let everything =
                [PolicyRule::resources(&["*"], &["*"], &["*"]), PolicyRule::paths(&["*"], &["*"])];
            self.check_held(user, write.namespace, &everything).map_err(|_| {
                refuse("must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    /// Checks that the writer of a binding holds all rules of its role, or may `bind` that role.
    /// Updates that grant nothing new pass.
    ///
    /// # Errors
    /// 403 with the permissions that the writer lacks, or 404 when the role does not exist.
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
        if user.in_group(GROUP_MASTERS)
            || self.is_allowed(user, "bind", role_kind, write, &role.name)
        {
            return Ok(());
        }
        let Some(rules) = self.rules.rules_of(&role, write.namespace) else {
            return Err(Status::not_found(RBAC_GROUP, kind.plural(), &role.name));
        };
        self.check_held(user, write.namespace, &rules)
            .map_err(|text| Status::forbidden(RBAC_GROUP, kind.plural(), object.name(), &text))
    }

    fn is_allowed(
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

    fn check_held(
        &self,
        user: &UserInfo,
        namespace: &str,
        granted: &[PolicyRule],
    ) -> Result<(), String> {
        let held = self.rules.rules_for(user, namespace);
        let Err(missing) = covers(&held.rules, granted) else { return Ok(()) };
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

/// Whether an update changes nothing, or only what the garbage collector writes. A changed label is
/// a change: labels add roles to aggregated ones.
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
