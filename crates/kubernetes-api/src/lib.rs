//! Kubernetes' own kinds on the API server, and whole API servers put together from them.
//!
//! [`kinds`] is one file per kind. [`assembly`] starts a server: which resources it has, who is
//! authenticated and authorised, and which controllers run beside it. How requests are served is
//! `apiserver`'s, which knows none of these kinds.

pub mod assembly;
pub mod kinds;
