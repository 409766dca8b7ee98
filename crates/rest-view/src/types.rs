//! What a type of `/v3` is, and what its code is given: the [`Descriptor`](descriptor::Descriptor) with its
//! fields, links, actions and store; the [`Context`](context::Context) of a request; the
//! [`Registry`](registry::Registry) of all types.
//!
//! One room, because each refers to the others: an action is called with a context, the context has the
//! registry, and the registry holds the descriptors, which have the actions.

pub mod action;
pub mod context;
mod crd;
pub mod descriptor;
pub mod field;
pub mod link;
pub mod registry;
pub(crate) mod rights;
pub mod store;
pub mod urls;
