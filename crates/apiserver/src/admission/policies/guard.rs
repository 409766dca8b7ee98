//! Who may write a policy or binding with parameters: only users who can read the parameters, since
//! refusals contain their values.

use std::sync::{Arc, Weak};

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use serde_json::Value;

use super::{MUTATING_POLICIES, POLICIES, params};
use crate::admission::webhooks::GROUP;
use crate::attributes::{Attributes, Authorizer, Decision, GROUP_MASTERS, UserInfo};
use crate::fields::str_of;
use crate::registry::Registry;
use crate::strategy::Write;

/// The names of the kinds of validating or mutating policies.
pub(super) struct Kinds {
    pub(super) policy: &'static str,
    pub(super) binding: &'static str,
    plural: &'static str,
}

/// The kinds of validating policies.
pub(super) const VALIDATING: Kinds = Kinds {
    policy: "ValidatingAdmissionPolicy",
    binding: "ValidatingAdmissionPolicyBinding",
    plural: POLICIES,
};
/// The kinds of mutating policies.
pub(super) const MUTATING: Kinds = Kinds {
    policy: "MutatingAdmissionPolicy",
    binding: "MutatingAdmissionPolicyBinding",
    plural: MUTATING_POLICIES,
};

/// Authorizes writes of policies and bindings that refer to parameters.
pub struct PolicyGuard {
    authorizer: Arc<dyn Authorizer>,
    registry: Weak<Registry>,
}

impl PolicyGuard {
    /// Creates the guard. It holds a weak reference to the registry; without the registry, every
    /// parameter counts as unknown.
    pub fn new(authorizer: Arc<dyn Authorizer>, registry: &Arc<Registry>) -> Self {
        Self { authorizer, registry: Arc::downgrade(registry) }
    }

    /// Checks that the writer can read all objects of the policy's `paramKind`. Masters and updates
    /// that leave the kind unchanged pass.
    ///
    /// # Errors
    /// 422 with the field `spec.paramKind`.
    pub(super) fn admit_policy(
        &self,
        kinds: &Kinds,
        write: &Write<'_>,
        policy: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let kind = &policy["spec"]["paramKind"];
        let unchanged = old.is_some_and(|old| old["spec"]["paramKind"] == *kind);
        if kind.is_null() || unchanged || write.user.in_group(GROUP_MASTERS) {
            return Ok(());
        }
        let attributes = Attributes {
            verb: "get".to_owned(),
            name: "*".to_owned(),
            namespace: "*".to_owned(),
            ..self.attributes(write.user, kind).0
        };
        if self.allows(&attributes) {
            return Ok(());
        }
        let text = format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind \
             (kind={}, apiVersion={})",
            format_user(write.user),
            str_of(&kind["kind"]),
            str_of(&kind["apiVersion"]),
        );
        let cause = Cause::forbidden("spec.paramKind", &text);
        Err(Status::invalid(GROUP, kinds.policy, policy.name(), vec![cause]))
    }

    /// Checks that the writer can read the parameters that the binding names. Masters and updates
    /// that leave the reference unchanged pass.
    ///
    /// # Errors
    /// 422 with the field `spec.paramRef`.
    pub(super) fn admit_binding(
        &self,
        kinds: &Kinds,
        write: &Write<'_>,
        binding: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let spec = &binding["spec"];
        let reference = &spec["paramRef"];
        let unchanged = old.is_some_and(|old| {
            old["spec"]["paramRef"] == *reference && old["spec"]["policyName"] == spec["policyName"]
        });
        if reference.is_null() || unchanged || write.user.in_group(GROUP_MASTERS) {
            return Ok(());
        }
        let policy = self.policy(kinds, str_of(&spec["policyName"]));
        let kind = policy.as_ref().map_or(&Value::Null, |policy| &policy["spec"]["paramKind"]);
        let (attributes, resolved) = self.attributes(write.user, kind);
        let name = str_of(&reference["name"]);
        let verb = if name.is_empty() { "list" } else { "get" };
        let attributes = Attributes {
            verb: verb.to_owned(),
            name: name.to_owned(),
            namespace: str_of(&reference["namespace"]).to_owned(),
            ..attributes
        };
        if self.allows(&attributes) {
            return Ok(());
        }
        let user = format_user(write.user);
        let everything = format!(
            "user {user} does not have \"{verb}\" permission for all groups, versions and resources"
        );
        let determine = "to determine minimum required permissions and";
        let text = if policy.is_none() {
            let policy = str_of(&spec["policyName"]);
            format!("unable to get policy {policy} {determine} {everything}")
        } else if !kind.is_null() && !resolved {
            let (api_version, kind) = (str_of(&kind["apiVersion"]), str_of(&kind["kind"]));
            let kind = format!("&{{{api_version} {kind}}}");
            format!("unable to resolve paramKind {kind} {determine} {everything}")
        } else {
            format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by \
                 paramRef"
            )
        };
        let cause = Cause::forbidden("spec.paramRef", &text);
        Err(Status::invalid(GROUP, kinds.binding, binding.name(), vec![cause]))
    }

    fn policy(&self, kinds: &Kinds, name: &str) -> Option<Value> {
        let registry = self.registry.upgrade()?;
        let resource = registry.find(GROUP, kinds.plural)?;
        let key = resource.key("", name)?;
        Some(registry.cache(&resource).ok()?.get(&key)?.value())
    }

    /// The attributes of a request for objects of the kind, and whether its resource is known. An
    /// unknown resource requires the permission on all resources.
    fn attributes(&self, user: &UserInfo, kind: &Value) -> (Attributes, bool) {
        let (api_version, kind_name) = (str_of(&kind["apiVersion"]), str_of(&kind["kind"]));
        let catalog = self.registry.upgrade().map(|registry| registry.catalog());
        let resource = catalog
            .as_ref()
            .and_then(|catalog| params::resource_of_kind(catalog, api_version, kind_name).cloned());
        let (group, version) = match kind.is_null() {
            true => ("*", "*"),
            false => api_meta::object::group_version(api_version),
        };
        let plural = resource.as_ref().map_or("*", |resource| &resource.plural);
        let attributes = Attributes {
            user: user.clone(),
            is_resource: true,
            group: group.to_owned(),
            version: version.to_owned(),
            resource: plural.to_owned(),
            ..Attributes::default()
        };
        (attributes, resource.is_some())
    }

    fn allows(&self, attributes: &Attributes) -> bool {
        matches!(self.authorizer.authorize(attributes), Decision::Allow { .. })
    }
}

/// Formats a user like Go does.
fn format_user(user: &UserInfo) -> String {
    let extra = user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" ")));
    let extra = extra.collect::<Vec<_>>().join(" ");
    let groups = user.groups.join(" ");
    format!("&{{{} {} [{groups}] map[{extra}]}}", user.name, user.uid)
}
