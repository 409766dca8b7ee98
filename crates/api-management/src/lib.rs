//! The kinds of `management.cattle.io/v3`: types, ids, labels, defaults, validation, CRDs. Pure.
//!
//! No I/O, no clock, no randomness: what a rule needs of those is an argument. One file per kind; each
//! has the type, `default` (what admission fills in) and `validate` (every rule that looks at the object
//! alone). Start at [`kind`], which says what makes a type a kind, then [`cluster`]. Field names, scopes
//! and label keys are the ones that existing clients of this API know; our own live under `drover.io`.

pub mod bindings;
pub mod cluster;
pub mod cluster_registration_token;
pub mod cluster_role_template_binding;
pub mod condition;
pub mod credentials;
pub mod ids;
pub mod kept;
pub mod keys;
pub mod kind;
pub mod namespace_assignment;
pub mod node;
pub mod project;
pub mod role_template;
pub mod schema;

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
pub use kind::{Kind, Scope};
pub use namespace_assignment::NamespaceAssignment;
pub use node::Node;
pub use project::Project;
pub use role_template::{PolicyRule, RoleTemplate};
pub use setting::Setting;
pub use token::Token;
pub use user::User;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The API group of every kind here.
pub const GROUP: &str = "management.cattle.io";
/// Its one version.
pub const VERSION: &str = "v3";
/// `GROUP/VERSION`, as objects carry it.
pub const API_VERSION: &str = "management.cattle.io/v3";

type MakeDefinition = fn() -> CustomResourceDefinition;

/// The kinds with a struct here, for those who act on them. All others are known by their tables alone.
const STRUCTS: &[(&str, MakeDefinition)] = &[
    (Cluster::KIND, Cluster::crd),
    (ClusterRegistrationToken::KIND, ClusterRegistrationToken::crd),
    (ClusterRoleTemplateBinding::KIND, ClusterRoleTemplateBinding::crd),
    (NamespaceAssignment::KIND, NamespaceAssignment::crd),
    (Node::KIND, Node::crd),
    (Project::KIND, Project::crd),
    (RoleTemplate::KIND, RoleTemplate::crd),
    (Setting::KIND, Setting::crd),
    (Token::KIND, Token::crd),
    (User::KIND, User::crd),
];

/// Whether objects of `kind` have a struct here.
pub fn has_struct(kind: &str) -> bool {
    STRUCTS.iter().any(|(known, _)| *known == kind)
}

/// The definitions of all kinds, in an order in which they may be created. Structural: a
/// kube-apiserver takes them as they are.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut all: Vec<_> = STRUCTS.iter().map(|(_, crd)| crd()).collect();
    all.extend(types::crds(has_struct));
    all
}

#[cfg(test)]
mod tests;
