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
//! Lists go through [`Lists`]: [`Scan`] reads every object, [`Index`] only those of the page.
//!
//! [`openapi`] says the same as the schemas for generators of clients.
//!
//! [`feed`] is the other half: a WebSocket that says which objects changed. [`dynamic`] adds types
//! while both are served.
//!
//! Not here: authentication (the [`Caller`] is given). The rules of the wire, each with its test, are in `docs/compat/management-api.md`.

mod answer;
pub mod audit;
mod browser;
mod collection;
pub mod dynamic;
pub mod error;
pub mod feed;
pub mod index;
mod input;
pub mod journal;
pub mod mapping;
mod openapi;
mod operations;
mod references;
pub mod route;
mod schema;
pub mod state;
pub mod types;
pub mod view;

#[cfg(test)]
mod tests;

pub use collection::{listing, query};
pub use types::{action, context, descriptor, field, link, registry, store, urls};

pub use action::{Action, ActionAnswer, ActionHandler, ActionRequest};
pub use audit::AuditNotes;
pub use context::{Caller, Context, Inside, Presentation};
pub use descriptor::{Descriptor, Formatter, Ids, Mapper, Methods, Naming, Resource, Validator};
pub use dynamic::DynamicSchema;
pub use error::ApiError;
pub use feed::{Feed, Subscriber};
pub use field::{Field, FieldType, Place, StructType};
pub use index::Index;
pub use journal::{Follow, Journal};
pub use link::Link;
pub use listing::{Lists, Page, Scan, Wanted};
pub use registry::{ApiVersion, Registry};
pub use store::{Followed, Form, Key, KubeResource, KubeStore, ListScope, Store, Tells, Visible};
pub use types::rights::MayChange;
pub use urls::Urls;
pub use view::RestView;
