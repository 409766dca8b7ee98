//! The `/v3` view: resources with links and actions over Kubernetes objects, from descriptors.
//!
//! The crate knows no kind. A feature describes each of its kinds with a [`Descriptor`]: names,
//! [`Field`]s with the location at which each is stored, a formatter, a validator, actions.
//! Schemas, the mapping in both directions, collections and dispatch follow from these. Objects are
//! reached through a `kube::Client` that carries the caller's identity, so the Kubernetes API below
//! decides what a caller may do. Only a descriptor with a [`Store`] of its own may decide
//! differently, and its store documents that.
//!
//! The path of a request: [`view`] (negotiation, cross-site check) → [`route`] → input → [`Store`]
//! → [`mapping`] → formatter → collection or resource. Start reading at [`RestView::handle`]. Lists
//! go through [`Lists`]: [`Scan`] reads every object, [`Index`] only the objects of the page.
//!
//! [`openapi`] describes the same types as the schemas do, for generators of clients.
//!
//! [`feed`] is the other half: a WebSocket that reports which objects changed. [`dynamic`] adds
//! types while both are served.
//!
//! Not here: authentication (the [`Caller`] is a parameter). The rules of the wire format, each
//! with its test, are in `docs/compat/management-api.md`.

pub mod audit;
pub mod browser;
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
mod resource_socket;
pub mod response;
pub mod route;
mod schema;
pub mod sockets;
pub mod state;
pub mod types;
pub mod view;

#[cfg(test)]
mod tests;

pub use collection::{add_actions, listing, query};
pub use types::{action, context, descriptor, field, link, registry, socket, store, urls};

pub use action::{Action, ActionHandler, ActionRequest, ActionResponse};
pub use audit::AuditNotes;
pub use context::{Caller, Context, Inside, Presentation};
pub use descriptor::{Descriptor, Formatter, Ids, Mapper, Methods, Naming, Resource, Validator};
pub use dynamic::DynamicSchema;
pub use error::ApiError;
pub use feed::{Feed, Subscriber};
pub use field::{Field, FieldLocation, FieldType, StructType};
pub use index::Index;
pub use journal::{Follow, Journal};
pub use link::Link;
pub use listing::{ListRequest, Lists, Page, Scan};
pub use registry::{ApiVersion, Registry};
pub use socket::{ResourceSocket, SocketHandler, SocketRequest, SocketSession};
pub use sockets::Sockets;
pub use store::{
    ChangeEffect, Key, KubeResource, KubeStore, ListScope, Store, Visible, WatchDetail,
    WatchedResource,
};
pub use types::rights::MayChange;
pub use urls::Urls;
pub use view::{LiveTypes, RestView};
