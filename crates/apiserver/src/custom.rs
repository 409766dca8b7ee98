//! Custom resources: the kind CustomResourceDefinition and the kinds that it defines.
//!
//! [`definition`] has the rules of the defining kind, [`names`] which names it is given,
//! [`resources`] turns an accepted definition into [`Resource`](crate::Resource)s whose rules are
//! [`instance`]'s, and those of [`crate::strategy::conversion`] where a webhook converts between versions. [`controller`]
//! keeps the catalog and the definitions' status true.

pub mod columns;
pub mod controller;
pub mod definition;
pub mod instance;
pub mod names;
pub mod resources;
pub mod scale;
pub mod versions;

pub use controller::DefinitionController;
pub use definition::{DefinitionStrategy, definition_resource};
pub use instance::CustomStrategy;
pub use names::desired_status;
pub use resources::resources_of;

/// Keeps a definition until its instances are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Group and plural of the defining kind.
pub const GROUP: &str = "apiextensions.k8s.io";
pub const PLURAL: &str = "customresourcedefinitions";

#[cfg(test)]
mod tests;
