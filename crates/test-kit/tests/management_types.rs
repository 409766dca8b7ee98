//! Every type under `/v3`: what its schema says, that its objects can be made, changed and removed, and
//! who may.

#![allow(clippy::unwrap_used)]

#[path = "management_types/facts.rs"]
mod facts;
#[path = "management_types/known.rs"]
mod known;
#[path = "management_types/objects.rs"]
mod objects;
#[path = "management_types/rest.rs"]
mod rest;
#[path = "management_types/samples.rs"]
mod samples;
#[path = "management_types/workloads.rs"]
mod workloads;
