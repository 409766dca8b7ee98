//! Every type under `/v3`: its schema, the creation, change and deletion of its objects, and the
//! rights.

#![allow(clippy::unwrap_used)]

#[path = "management_types/facts.rs"]
mod facts;
#[path = "management_types/features.rs"]
mod features;
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
