//! RBAC as data: short constructors of rules, and the objects that grant them to controllers.

use std::collections::BTreeMap;

use api_management::PolicyRule;
use api_management::keys;
use controller::ReconcileError;
use controller::ensure::{self, Object};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule as KubeRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::ObjectMeta;
use kube::{Api, ResourceExt};

use crate::controller::ControllerIdentity;

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// A rule on resources of one group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: texts(&[group]),
        resources: texts(resources),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}

/// A rule on resources of `management.cattle.io`.
pub fn ours(resources: &[&str], verbs: &[&str]) -> PolicyRule {
    rule(api_management::GROUP, resources, verbs)
}

/// The rule in the type of `k8s-openapi`.
pub fn to_kube(rule: &PolicyRule) -> KubeRule {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    KubeRule {
        api_groups: some(&rule.api_groups),
        resources: some(&rule.resources),
        resource_names: some(&rule.resource_names),
        non_resource_urls: some(&rule.non_resource_urls),
        verbs: rule.verbs.clone(),
    }
}

/// A reference to a role of kind `Role` or `ClusterRole`.
pub fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some(RBAC_GROUP.to_owned()), kind: kind.to_owned(), name: name.to_owned() }
}

/// A subject of kind `User` or `Group`.
pub fn subject(kind: &str, name: &str) -> Subject {
    Subject {
        api_group: Some(RBAC_GROUP.to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: None,
    }
}

/// A binding of either kind.
pub trait RbacBinding: Object {
    /// The role that it gives.
    fn role_ref(&self) -> &RoleRef;
    /// Who has the role.
    fn subjects(&self) -> &[Subject];
}

impl RbacBinding for RoleBinding {
    fn role_ref(&self) -> &RoleRef {
        &self.role_ref
    }
    fn subjects(&self) -> &[Subject] {
        self.subjects.as_deref().unwrap_or_default()
    }
}

impl RbacBinding for ClusterRoleBinding {
    fn role_ref(&self) -> &RoleRef {
        &self.role_ref
    }
    fn subjects(&self) -> &[Subject] {
        self.subjects.as_deref().unwrap_or_default()
    }
}

/// Makes a binding like `desired`, given the one that was observed. One that gives another role is
/// deleted first, because the role of a binding cannot change.
///
/// # Errors
/// The API refused. Return the error from the reconcile, which is then retried.
pub async fn ensure_binding<B: RbacBinding>(
    api: &Api<B>,
    desired: &B,
    known: Option<&B>,
) -> Result<(), ReconcileError> {
    let is_other = |known: &B| known.role_ref() != desired.role_ref();
    if let Some(known) = known.filter(|known| is_other(known)) {
        ensure::absent(api, &known.name_any()).await?;
    }
    ensure::like(api, desired).await.map(drop)
}

/// The role of a controller's identity and its binding, both named like the identity.
///
/// Give all rules of one identity together: both objects have the same name.
pub fn controller_objects(identity: &ControllerIdentity) -> (ClusterRole, ClusterRoleBinding) {
    let labels = BTreeMap::from([(keys::BOOTSTRAPPING.to_owned(), "controller".to_owned())]);
    let metadata =
        ObjectMeta { name: Some(identity.user()), labels: Some(labels), ..ObjectMeta::default() };
    let role = ClusterRole {
        metadata: metadata.clone(),
        rules: Some(identity.rules.iter().map(to_kube).collect()),
        aggregation_rule: None,
    };
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", &identity.user()),
        subjects: Some(vec![subject("User", &identity.user())]),
    };
    (role, binding)
}

/// The roles of a controller's identity in single namespaces, and their bindings.
pub fn namespaced_objects(identity: &ControllerIdentity) -> Vec<(Role, RoleBinding)> {
    let mut by_namespace: BTreeMap<&str, Vec<KubeRule>> = BTreeMap::new();
    for (namespace, rule) in &identity.rules_within {
        by_namespace.entry(namespace).or_default().push(to_kube(rule));
    }
    let objects = by_namespace.into_iter().map(|(namespace, rules)| {
        let labels = BTreeMap::from([(keys::BOOTSTRAPPING.to_owned(), "controller".to_owned())]);
        let metadata = ObjectMeta {
            name: Some(identity.user()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        let role = Role { metadata: metadata.clone(), rules: Some(rules) };
        let binding = RoleBinding {
            metadata,
            role_ref: role_ref("Role", &identity.user()),
            subjects: Some(vec![subject("User", &identity.user())]),
        };
        (role, binding)
    });
    objects.collect()
}

/// The identity that watches for the change feed: it may read everything that the feed reports. Of
/// Secrets it learns only that they changed; their contents are read as each caller.
pub fn feed_identity() -> ControllerIdentity {
    let secrets = rule("", &["secrets"], &["list", "watch"]);
    let rules = reflector_identity().rules.into_iter().chain([secrets]).collect();
    ControllerIdentity::new(crate::controller::FEED, rules)
}

/// The identity that watches for all controllers: it may read everything that they observe.
pub fn reflector_identity() -> ControllerIdentity {
    let read = ["get", "list", "watch"];
    ControllerIdentity::new(
        crate::controller::REFLECTORS,
        vec![
            ours(&["*"], &read),
            rule("", &["namespaces"], &read),
            rule(RBAC_GROUP, &["clusterroles", "clusterrolebindings"], &read),
            rule(RBAC_GROUP, &["roles", "rolebindings"], &read),
        ],
    )
}
