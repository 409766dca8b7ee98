//! RoleTemplate: a named set of rights.
//!
//! [`rules`] says which of its rules hold where (pure), [`downstream`] applies its ClusterRole and
//! binding in each cluster where it is used, [`admission`] rejects changes of what is in use,
//! [`bindable`] new bindings to what cannot be bound, [`effective`] has the rules of external ones;
//! [`feature_kit::roles`] has what a role inherits, [`view`] its form in the REST view.

pub mod admission;
pub mod bindable;
pub mod downstream;
pub mod effective;
pub mod rules;
pub mod view;

pub(crate) use feature_kit::roles::{by_name, closure, paths, with_inherited};
