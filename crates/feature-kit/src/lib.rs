//! What a feature is: the value that each feature crate gives to the server.
//!
//! A [`Feature`] names its kinds with their rules ([`kind`]), the objects that must exist from the
//! start ([`seed`]), its controllers with the rights of their identities ([`controller`]), its
//! kinds in the REST view ([`view`]; those of objects inside clusters by [`downstream`]), and the
//! HTTP paths that it serves ([`route`]). The server composes features from these alone;
//! [`runtime`] starts their controllers. Nothing here acts by itself. Start at [`Feature`].

pub mod access;
pub mod agent_manifest;
pub mod connections;
pub mod context;
pub mod controller;
pub mod credentials;
pub mod downstream;
pub mod feature;
pub mod grants;
pub mod kind;
pub mod namespace;
pub mod ownership;
pub mod rbac;
pub mod roles;
pub mod route;
pub mod runtime;
pub mod seed;
pub mod settings;
pub mod table;
pub mod unique;
pub mod view;

pub use access::{Membership, RoleResolver};
pub use agent_manifest::AgentManifest;
pub use cluster_access::proxy::{CheckedWrite, DownstreamIdentity, WriteCheck};
pub use connections::{ClusterConnections, ClusterEvent, NoConnections};
pub use context::{Clients, ManagementContext};
pub use controller::{ControllerIdentity, DownstreamSpec, ManagementSpec};
pub use credentials::CredentialStore;
pub use feature::Feature;
pub use kind::{Admit, KindRules, Review, ReviewOperation};
pub use namespace::system_namespace;
pub use route::{Caller, Handler, Request, Response, Route};
pub use seed::{Seed, SeedMode};
pub use settings::Settings;
pub use view::ViewSpec;

#[cfg(test)]
mod tests;
