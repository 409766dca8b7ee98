//! Kubernetes' own kinds, and whole API servers assembled from them.
//!
//! [`kinds`] is one file per kind. [`custom`] defines further kinds, [`reviews`] are computed and
//! never stored. [`controllers`] reconcile what is stored. [`assembly`] starts a server: its
//! resources, authentication, authorization, and the controllers that run beside it. Requests are
//! served by `apiserver`, which knows none of these kinds.

pub mod assembly;
pub mod controllers;
pub mod custom;
pub mod kinds;
pub mod reviews;
pub mod service_range;
