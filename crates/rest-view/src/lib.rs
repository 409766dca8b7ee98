//! The `/v3` view: resources with links and actions over Kubernetes objects, from descriptors.
//!
//! It knows no kind. A feature describes each of its kinds with a [`Descriptor`]: names, [`Field`]s
//! with the place where each is stored, a formatter, a validator, actions. From these come the
//! schemas, the mapping both ways, the collections and the dispatch. Objects are reached through a
//! `kube::Client` that carries the caller's identity, so what a caller may do is decided by the
//! Kubernetes API below and never here; only a descriptor with a [`Store`] of its own may answer
//! differently, and says so.
//!
//! A request's way: [`view`] (negotiation, cross-site check) → [`route`] → input → [`Store`] →
//! [`mapping`] → formatter → collection or resource. Start reading at [`RestView::handle`].
//!
//! [`feed`] is the other half: a WebSocket that says which objects changed.
//!
//! Not here: authentication (the [`Caller`] is given), the index that serves large lists.

pub mod action;
mod answer;
mod browser;
mod collection;
pub mod context;
mod crd;
pub mod descriptor;
pub mod error;
pub mod feed;
pub mod field;
mod input;
pub mod mapping;
mod operations;
pub mod query;
pub mod registry;
pub mod route;
mod schema;
pub mod state;
pub mod store;
pub mod urls;
pub mod view;

#[cfg(test)]
mod tests;

pub use action::{Action, ActionAnswer, ActionHandler, ActionRequest};
pub use context::{Caller, Context, Presentation};
pub use descriptor::{Descriptor, Formatter, Mapper, Methods, Naming, Resource, Validator};
pub use error::ApiError;
pub use feed::{Feed, Subscriber};
pub use field::{Field, FieldType, Place, StructType};
pub use registry::{ApiVersion, Registry};
pub use store::{Key, KubeResource, KubeStore, ListScope, Store};
pub use urls::Urls;
pub use view::RestView;
