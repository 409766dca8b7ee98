//! Credentials in objects: no stored object holds one, whoever may update an object reads back what is no
//! password, nobody else reads anything.

#![allow(clippy::unwrap_used)]

#[path = "credentials/canary.rs"]
mod canary;
#[path = "credentials/mechanism.rs"]
mod mechanism;
#[path = "credentials/migration.rs"]
mod migration;
#[path = "permissions/places.rs"]
#[allow(dead_code, reason = "shared with other test programs")]
mod places;
#[path = "permissions/socket.rs"]
#[allow(dead_code, reason = "shared with other test programs")]
mod socket;
