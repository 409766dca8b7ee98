//! Who may do what with objects of every type under `/v3`, from real requests: as the table in
//! `docs/reference/permissions.md`, and that lists, errors and the change feed give away no more than a
//! GET by id does.

#![allow(clippy::unwrap_used)]

#[path = "permissions/lists.rs"]
mod lists;
#[path = "permissions/objects.rs"]
mod objects;
#[path = "permissions/places.rs"]
mod places;
#[path = "management_types/samples.rs"]
mod samples;
#[path = "permissions/secrecy.rs"]
mod secrecy;
#[path = "permissions/socket.rs"]
mod socket;
#[path = "permissions/table.rs"]
mod table;
