//! Roles and bindings as the authorizer needs them: parsed once, bindings found by who they speak
//! of.

use std::collections::HashMap;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use authz::PolicyRule;
use authz::text::quoted;
use serde_json::Value;

use super::rbac::RoleRef;
use crate::attributes::UserInfo;

/// Name prefix of the users that service accounts are.
pub(super) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

pub(super) type Rules = Arc<[PolicyRule]>;

pub(super) struct Binding {
    /// Empty for a ClusterRoleBinding.
    pub namespace: String,
    pub name: String,
    pub role: RoleRef,
    subjects: Vec<Subject>,
}

struct Subject {
    /// As in reasons: `User "u"`, `ServiceAccount "name/namespace"`.
    text: String,
    key: SubjectKey,
}

enum SubjectKey {
    User(String),
    Group(String),
}

/// A binding through one of its subjects.
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

/// Namespace → name → value. The namespace of cluster-scoped objects is empty.
type Named<T> = HashMap<String, HashMap<String, T>>;

/// All roles and bindings.
///
/// Invariant: `by_subject` holds exactly one grant for each subject of each binding in `bindings`.
#[derive(Default)]
pub(super) struct Policy {
    roles: Named<Rules>,
    bindings: Named<Arc<Binding>>,
    by_subject: HashMap<String, BySubject>,
}

impl Policy {
    pub fn put_role(&mut self, object: &Value) {
        let rules = rules_of_object(object).unwrap_or_else(|error| {
            tracing::warn!(role = object.name(), %error, "stored role does not decode");
            Vec::new()
        });
        let named = self.roles.entry(object.namespace().to_owned()).or_default();
        named.insert(object.name().to_owned(), rules.into());
    }

    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        remove(&mut self.roles, namespace, name);
    }

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
        let named = self.bindings.entry(binding.namespace.clone()).or_default();
        named.insert(binding.name.clone(), binding);
    }

    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(gone) = remove(&mut self.bindings, namespace, name) else { return };
        let Some(index) = self.by_subject.get_mut(namespace) else { return };
        for subject in &gone.subjects {
            let (grants, key) = match &subject.key {
                SubjectKey::User(key) => (&mut index.users, key),
                SubjectKey::Group(key) => (&mut index.groups, key),
            };
            if let Some(list) = grants.get_mut(key) {
                list.retain(|grant| !Arc::ptr_eq(&grant.binding, &gone));
                if list.is_empty() {
                    grants.remove(key);
                }
            }
        }
        if index.users.is_empty() && index.groups.is_empty() {
            self.by_subject.remove(namespace);
        }
    }

    /// Drops roles for which `of` holds of their namespace.
    pub fn clear_roles(&mut self, of: impl Fn(&str) -> bool) {
        self.roles.retain(|namespace, _| !of(namespace));
    }

    /// As [`Policy::clear_roles`], for bindings.
    pub fn clear_bindings(&mut self, of: impl Fn(&str) -> bool) {
        self.bindings.retain(|namespace, _| !of(namespace));
        self.by_subject.retain(|namespace, _| !of(namespace));
    }

    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<&Rules> {
        let scope = if role.is_cluster() { "" } else { namespace };
        self.roles.get(scope)?.get(&role.name)
    }

    /// The bindings that speak of this user: cluster-wide ones, then those of the namespace if
    /// there is one.
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
            subjects: subjects.iter().filter_map(|s| Subject::parse(s, &namespace)).collect(),
            namespace,
        }
    }
}

impl Subject {
    /// `None` for kinds of subjects that speak of nobody here.
    fn parse(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?;
        let kind = subject["kind"].as_str()?;
        let (key, shown) = match kind {
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
        Some(Self { text: format!("{kind} {}", quoted(&shown)), key })
    }
}

impl Grant {
    /// `RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "u"`.
    pub fn reason(&self) -> String {
        let binding = &self.binding;
        let (kind, shown) = if binding.namespace.is_empty() {
            ("ClusterRoleBinding", binding.name.clone())
        } else {
            ("RoleBinding", format!("{}/{}", binding.name, binding.namespace))
        };
        format!(
            "RBAC: allowed by {kind} {} of {} {} to {}",
            quoted(&shown),
            binding.role.kind,
            quoted(&binding.role.name),
            binding.subjects[self.subject].text,
        )
    }
}

/// The rules of a Role or ClusterRole.
///
/// # Errors
/// What does not decode.
pub(super) fn rules_of_object(object: &Value) -> Result<Vec<PolicyRule>, serde_json::Error> {
    match &object["rules"] {
        Value::Null => Ok(Vec::new()),
        rules => serde::Deserialize::deserialize(rules),
    }
}

fn remove<T>(named: &mut Named<T>, namespace: &str, name: &str) -> Option<T> {
    let inner = named.get_mut(namespace)?;
    let gone = inner.remove(name);
    if inner.is_empty() {
        named.remove(namespace);
    }
    gone
}
