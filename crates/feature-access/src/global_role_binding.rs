//! Bindings of global roles. What they give follows from the group that the [role graph] adds to
//! their users' requests.
//!
//! [role graph]: crate::graph

pub mod admission;
pub mod migration;
