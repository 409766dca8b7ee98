//! Roles and bindings for the authorizer: parsed once, bindings indexed by subject.

use std::collections::HashMap;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use authz::PolicyRule;
use authz::text::quoted;
use serde_json::Value;

use super::rbac::RoleRef;
use crate::attributes::UserInfo;

/// Prefix of the user names of service accounts.
pub(super) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The rules of one role.
pub(super) type RoleRules = Arc<[PolicyRule]>;

/// A parsed binding.
pub(super) struct Binding {
    /// Empty for a ClusterRoleBinding.
    pub namespace: String,
    pub name: String,
    pub role: RoleRef,
    subjects: Vec<BindingSubject>,
}

struct BindingSubject {
    /// The subject in reasons: `User "u"`, `ServiceAccount "name/namespace"`.
    text: String,
    key: SubjectKey,
}

enum SubjectKey {
    User(String),
    Group(String),
}

/// A binding with one of its subjects.
#[derive(Clone)]
pub(super) struct Grant {
    pub binding: Arc<Binding>,
    subject: usize,
}

#[derive(Default)]
struct BySubject {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// Values by namespace and name. The namespace of cluster-scoped objects is empty.
type ByName<T> = HashMap<String, HashMap<String, T>>;

/// All roles and bindings.
///
/// Invariant: `by_subject` holds exactly one grant for each subject of each binding in `bindings`.
#[derive(Default)]
pub(super) struct RbacPolicy {
    roles: ByName<RoleRules>,
    bindings: ByName<Arc<Binding>>,
    by_subject: HashMap<String, BySubject>,
}

impl RbacPolicy {
    /// Adds or replaces a role. Rules that do not decode count as none.
    pub fn put_role(&mut self, object: &Value) {
        let rules = parse_rules(object).unwrap_or_else(|error| {
            tracing::warn!(role = object.name(), %error, "stored role does not decode");
            Vec::new()
        });
        let by_name = self.roles.entry(object.namespace().to_owned()).or_default();
        by_name.insert(object.name().to_owned(), rules.into());
    }

    /// Removes a role; `namespace` is empty for a ClusterRole.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        remove(&mut self.roles, namespace, name);
    }

    /// Adds or replaces a binding.
    pub fn put_binding(&mut self, object: &Value) {
        let binding = Arc::new(Binding::parse(object));
        self.remove_binding(&binding.namespace, &binding.name);
        let index = self.by_subject.entry(binding.namespace.clone()).or_default();
        for (subject, key) in binding.subjects.iter().map(|s| &s.key).enumerate() {
            let grant = Grant { binding: Arc::clone(&binding), subject };
            let grants = match key {
                SubjectKey::User(name) => index.users.entry(name.clone()),
                SubjectKey::Group(name) => index.groups.entry(name.clone()),
            };
            grants.or_default().push(grant);
        }
        let by_name = self.bindings.entry(binding.namespace.clone()).or_default();
        by_name.insert(binding.name.clone(), binding);
    }

    /// Removes a binding; `namespace` is empty for a ClusterRoleBinding.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(removed) = remove(&mut self.bindings, namespace, name) else { return };
        let Some(index) = self.by_subject.get_mut(namespace) else { return };
        for subject in &removed.subjects {
            let (grants, key) = match &subject.key {
                SubjectKey::User(key) => (&mut index.users, key),
                SubjectKey::Group(key) => (&mut index.groups, key),
            };
            if let Some(list) = grants.get_mut(key) {
                list.retain(|grant| !Arc::ptr_eq(&grant.binding, &removed));
                if list.is_empty() {
                    grants.remove(key);
                }
            }
        }
        if index.users.is_empty() && index.groups.is_empty() {
            self.by_subject.remove(namespace);
        }
    }

    /// Removes the roles in namespaces for which `of` returns true.
    pub fn clear_roles(&mut self, of: impl Fn(&str) -> bool) {
        self.roles.retain(|namespace, _| !of(namespace));
    }

    /// Removes the bindings in namespaces for which `of` returns true.
    pub fn clear_bindings(&mut self, of: impl Fn(&str) -> bool) {
        self.bindings.retain(|namespace, _| !of(namespace));
        self.by_subject.retain(|namespace, _| !of(namespace));
    }

    /// The rules of a role that a binding in `namespace` refers to; `None` when it does not exist.
    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<&RoleRules> {
        let scope = if role.is_cluster() { "" } else { namespace };
        self.roles.get(scope)?.get(&role.name)
    }

    /// The bindings of this user: cluster-wide ones, then those of the namespace, if there is one.
    pub fn grants<'s>(
        &'s self,
        user: &'s UserInfo,
        namespace: &'s str,
    ) -> impl Iterator<Item = &'s Grant> {
        let scopes = std::iter::once("").chain((!namespace.is_empty()).then_some(namespace));
        scopes.filter_map(|scope| self.by_subject.get(scope)).flat_map(|index| {
            let by_groups = user.groups.iter().filter_map(|group| index.groups.get(group));
            index.users.get(&user.name).into_iter().chain(by_groups).flatten()
        })
    }
}

impl Binding {
    fn parse(object: &Value) -> Self {
        let namespace = object.namespace().to_owned();
        let subjects = object["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            name: object.name().to_owned(),
            role: RoleRef::of_binding(object),
            subjects: subjects
                .iter()
                .filter_map(|s| BindingSubject::parse(s, &namespace))
                .collect(),
            namespace,
        }
    }
}

impl BindingSubject {
    /// Parses a subject; `None` for unknown kinds.
    fn parse(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?;
        let kind = subject["kind"].as_str()?;
        let (key, display_name) = match kind {
            "User" => (SubjectKey::User(name.to_owned()), name.to_owned()),
            "Group" => (SubjectKey::Group(name.to_owned()), name.to_owned()),
            "ServiceAccount" => {
                let stated = subject["namespace"].as_str().filter(|text| !text.is_empty());
                let namespace = stated.unwrap_or(binding_namespace);
                if namespace.is_empty() {
                    return None;
                }
                let user = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}");
                (SubjectKey::User(user), format!("{name}/{namespace}"))
            }
            _ => return None,
        };
        Some(Self { text: format!("{kind} {}", quoted(&display_name)), key })
    }
}

impl Grant {
    /// The reason of a decision: `RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "u"`.
    pub fn reason(&self) -> String {
        let binding = &self.binding;
        let (kind, display_name) = if binding.namespace.is_empty() {
            ("ClusterRoleBinding", binding.name.clone())
        } else {
            ("RoleBinding", format!("{}/{}", binding.name, binding.namespace))
        };
        format!(
            "RBAC: allowed by {kind} {} of {} {} to {}",
            quoted(&display_name),
            binding.role.kind,
            quoted(&binding.role.name),
            binding.subjects[self.subject].text,
        )
    }
}

/// The rules of a Role or ClusterRole.
///
/// # Errors
/// The rules do not decode.
pub(super) fn parse_rules(object: &Value) -> Result<Vec<PolicyRule>, serde_json::Error> {
    match &object["rules"] {
        Value::Null => Ok(Vec::new()),
        rules => serde::Deserialize::deserialize(rules),
    }
}

fn remove<T>(by_name: &mut ByName<T>, namespace: &str, name: &str) -> Option<T> {
    let inner = by_name.get_mut(namespace)?;
    let removed = inner.remove(name);
    if inner.is_empty() {
        by_name.remove(namespace);
    }
    removed
}
