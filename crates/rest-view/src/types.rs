//! Types of `/v3`, and what their code receives: the [`Descriptor`](descriptor::Descriptor) with
//! its fields, links, actions and store; the [`Context`](context::Context) of a request; the
//! [`Registry`](registry::Registry) of all types.
//!
//! One module, because each part refers to the others: an action is called with a context, the
//! context holds the registry, and the registry holds the descriptors, which hold the actions.

pub mod action;
pub mod context;
mod crd;
pub mod descriptor;
pub mod field;
pub mod link;
pub mod registry;
pub(crate) mod rights;
pub mod socket;
pub mod store;
pub mod urls;
