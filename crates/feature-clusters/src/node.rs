//! Node: the nodes of downstream clusters as objects of the management cluster.
//!
//! [`sync`] watches nodes and pods downstream and writes what changed; [`desired`] says how a
//! downstream node looks here; [`usage`] sums what pods request; [`view`] is their place in the
//! REST view, [`store`] and [`actions`] what callers write there: it goes into the cluster as the
//! [`change`] of a node. A [`drain`] goes on after its request.

pub mod actions;
pub mod change;
pub mod desired;
pub mod drain;
pub mod store;
pub mod sync;
pub mod usage;
pub mod view;
