//! Credentials in objects: no stored object has one. Users who may update an object can read back
//! credentials other than passwords; no other user can.

#![allow(clippy::unwrap_used)]

#[path = "credentials/canary.rs"]
mod canary;
#[path = "credentials/mechanism.rs"]
mod mechanism;
#[path = "credentials/migration.rs"]
mod migration;
#[path = "permissions/setup.rs"]
#[allow(dead_code, reason = "shared with other test programs")]
mod setup;
#[path = "permissions/socket.rs"]
#[allow(dead_code, reason = "shared with other test programs")]
mod socket;
