//! Project: [`management`] makes the first two of each cluster, [`namespace`] keeps the place for
//! what belongs to each, [`namespaces`] keeps which namespaces of its cluster are in it,
//! [`initial`] says which begin in one, [`secrets`] copies its Secrets into its namespaces,
//! [`admission`] keeps the system one, [`view`] is its place in the REST view.

pub mod admission;
pub mod initial;
pub mod management;
pub mod namespace;
pub mod namespaces;
pub mod secrets;
pub mod view;
