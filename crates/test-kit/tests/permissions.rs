//! Rights on objects of every type under `/v3`, by real requests: compared with the table in
//! `docs/reference/permissions.md`. Lists, errors and the change feed reveal no more than a GET by
//! id.

#![allow(clippy::unwrap_used)]

#[path = "permissions/lists.rs"]
mod lists;
#[path = "permissions/objects.rs"]
mod objects;
#[path = "management_types/samples.rs"]
mod samples;
#[path = "permissions/secrecy.rs"]
mod secrecy;
#[path = "permissions/setup.rs"]
mod setup;
#[path = "permissions/socket.rs"]
mod socket;
#[path = "permissions/table.rs"]
mod table;
