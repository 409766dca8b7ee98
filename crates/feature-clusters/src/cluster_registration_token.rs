//! ClusterRegistrationToken: how a cluster is let in.
//!
//! [`management`] makes the secret and the commands, [`import`] serves the [`manifest`] to whoever
//! has the secret, and [`agent_objects`] gives it to the server for clusters that a driver made.
//! Whether an agent that shows the secret gets in decides [`crate::registrar`].

pub mod agent_objects;
pub mod import;
pub mod management;
pub mod manifest;
pub mod view;
