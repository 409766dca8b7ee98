//! The types of kinds as definitions of OpenAPI v3: those of built-in kinds ([`builtin`]), those of
//! custom resources, and how objects of both merge.
//!
//! [`crate::openapi`] makes the documents of them that clients read.

mod builtin;
mod components;
mod marks;
pub mod unset;

pub use builtin::{Builtin, builtin, builtin_schema, builtins};
pub use components::{components, definition_name, finished, gvk, merge_schema, meta, reference};
