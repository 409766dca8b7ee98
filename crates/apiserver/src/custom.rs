//! Custom resources: the kind CustomResourceDefinition and the kinds that it defines.
//!
//! [`definition`] is the strategy of the defining kind, and [`names`] decides which names a
//! definition gets. [`resources`] converts an accepted definition to [`Resource`](crate::Resource)s
//! with the strategy [`instance`] and, where a webhook converts between versions,
//! [`crate::strategy::conversion`]. [`controller`] reconciles the catalog and the definitions'
//! status.

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

/// The finalizer that retains a definition until its instances are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The group of the defining kind.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The plural of the defining kind.
pub const PLURAL: &str = "customresourcedefinitions";

#[cfg(test)]
mod tests;
