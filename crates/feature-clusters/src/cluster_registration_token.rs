//! ClusterRegistrationToken: how a cluster is let in.
//!
//! [`management`] makes the secret and the commands, [`import`] serves the [`manifest`] to whoever
//! has the secret. Whether an agent that shows it gets in decides [`crate::registrar`].

pub mod import;
pub mod management;
pub mod manifest;
pub mod view;
