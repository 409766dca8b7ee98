//! Tests of the mapping.

#![allow(clippy::unwrap_used)]

mod generated;
mod mapping;
mod view;
