//! The kinds of `management.cattle.io/v3`: types, ids, labels, defaults, validation, CRDs. Pure.
//!
//! No I/O, no clock, no randomness: rules take them as arguments. One file per kind; each has the
//! type, `fill_defaults` (what admission fills in) and `validate` (every rule that needs only the
//! object). Start at [`kind`], which defines what makes a type a kind, then [`cluster`]. Field
//! names, scopes and label keys are those that existing clients of this API know; Drover's own are
//! under `drover.io`.

pub mod bindings;
pub mod cluster;
pub mod cluster_registration_token;
pub mod cluster_role_template_binding;
pub mod condition;
pub mod credentials;
pub mod dynamic_schema;
pub mod global_role;
pub mod global_role_binding;
pub mod ids;
pub mod keys;
pub mod kind;
pub mod kontainer_driver;
pub mod namespace_assignment;
pub mod node;
pub mod pod_security_admission_configuration_template;
pub mod pod_security_policy_template;
pub mod pod_security_policy_template_project_binding;
pub mod project;
pub mod project_role_template_binding;
pub mod provisioning;
pub mod role_template;
pub mod schema;
pub mod unimplemented;

pub mod setting;
pub mod state;
pub mod table;
pub mod token;
pub mod types;
pub mod user;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use cluster_registration_token::ClusterRegistrationToken;
pub use cluster_role_template_binding::ClusterRoleTemplateBinding;
pub use condition::Condition;
pub use dynamic_schema::DynamicSchema;
pub use global_role::GlobalRole;
pub use global_role_binding::GlobalRoleBinding;
pub use kind::{Kind, KindScope};
pub use kontainer_driver::KontainerDriver;
pub use namespace_assignment::NamespaceAssignment;
pub use node::Node;
pub use pod_security_admission_configuration_template::PodSecurityAdmissionConfigurationTemplate;
pub use pod_security_policy_template::PodSecurityPolicyTemplate;
pub use pod_security_policy_template_project_binding::PodSecurityPolicyTemplateProjectBinding;
pub use project::Project;
pub use project_role_template_binding::ProjectRoleTemplateBinding;
pub use provisioning::{Provisioning, ProvisioningStage};
pub use role_template::{PolicyRule, RoleTemplate};
pub use setting::Setting;
pub use token::Token;
pub use user::User;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The API group of all these kinds.
pub const GROUP: &str = "management.cattle.io";
/// The only version of the group.
pub const VERSION: &str = "v3";
/// `GROUP/VERSION`, as in `apiVersion` of objects.
pub const API_VERSION: &str = "management.cattle.io/v3";

type MakeDefinition = fn() -> CustomResourceDefinition;

/// The kinds with a struct, for code that acts on them. All others have only tables.
const STRUCTS: &[(&str, MakeDefinition)] = &[
    (Cluster::KIND, Cluster::crd),
    (ClusterRegistrationToken::KIND, ClusterRegistrationToken::crd),
    (ClusterRoleTemplateBinding::KIND, ClusterRoleTemplateBinding::crd),
    (DynamicSchema::KIND, DynamicSchema::crd),
    (GlobalRole::KIND, GlobalRole::crd),
    (GlobalRoleBinding::KIND, GlobalRoleBinding::crd),
    (KontainerDriver::KIND, KontainerDriver::crd),
    (NamespaceAssignment::KIND, NamespaceAssignment::crd),
    (Node::KIND, Node::crd),
    (
        PodSecurityAdmissionConfigurationTemplate::KIND,
        PodSecurityAdmissionConfigurationTemplate::crd,
    ),
    (PodSecurityPolicyTemplate::KIND, PodSecurityPolicyTemplate::crd),
    (PodSecurityPolicyTemplateProjectBinding::KIND, PodSecurityPolicyTemplateProjectBinding::crd),
    (Project::KIND, Project::crd),
    (ProjectRoleTemplateBinding::KIND, ProjectRoleTemplateBinding::crd),
    (RoleTemplate::KIND, RoleTemplate::crd),
    (Setting::KIND, Setting::crd),
    (Token::KIND, Token::crd),
    (User::KIND, User::crd),
];

/// Whether this crate has a struct for objects of `kind`.
pub fn has_struct(kind: &str) -> bool {
    STRUCTS.iter().any(|(known, _)| *known == kind)
}

/// The definitions of all kinds, in an order in which they can be created. Structural:
/// kube-apiserver accepts them unchanged.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut all: Vec<_> = STRUCTS.iter().map(|(_, crd)| crd()).collect();
    all.extend(types::crds(has_struct));
    all
}

#[cfg(test)]
mod tests;
