//! Custom resources: the kind CustomResourceDefinition and the kinds that it defines.
//!
//! [`definition`] is the strategy of the defining kind, and [`names`] decides which names a
//! definition gets. [`resources`] converts an accepted definition to resources with the
//! strategy [`instance`] and, where a webhook converts between versions,
//! [`apiserver::strategy::conversion`]. [`controller`] reconciles the catalog and the definitions'
//! status. [`scale`] is the subresource of that name, also of built-in kinds.

mod columns;
pub mod controller;
mod definition;
mod instance;
mod names;
mod resources;
pub(crate) mod scale;
mod versions;

pub use controller::DefinitionController;
pub use definition::definition_resource;
pub use resources::resources_of;

/// The finalizer that retains a definition until its instances are deleted.
const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The group of the defining kind.
const GROUP: &str = "apiextensions.k8s.io";
/// The plural of the defining kind.
const PLURAL: &str = "customresourcedefinitions";

#[cfg(test)]
mod tests;
