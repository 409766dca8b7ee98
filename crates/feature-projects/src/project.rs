//! Project: [`management`] makes the first two of each cluster, [`admission`] keeps the system one, [`view`]
//! is its place in the REST view.

pub mod admission;
pub mod management;
pub mod view;
