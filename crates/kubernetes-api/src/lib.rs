//! Kubernetes' own kinds, and whole API servers assembled from them.
//!
//! [`kinds`] is one file per kind. [`assembly`] starts a server: its resources, authentication,
//! authorization, and the controllers that run beside it. Requests are served by `apiserver`, which
//! knows none of these kinds.

pub mod assembly;
pub mod kinds;
