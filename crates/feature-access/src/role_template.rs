//! RoleTemplate: a named set of rights.
//!
//! [`rules`] says which of its rules hold where (pure), [`downstream`] keeps its ClusterRole and
//! binding in each cluster where it is used, [`admission`] guards what is in use;
//! [`view`] is its place in the REST view.

pub mod admission;
pub mod downstream;
pub mod rules;
pub mod view;
