//! The types of kinds as OpenAPI v3 definitions, of built-in kinds ([`builtin`]) and of custom
//! resources, and how their objects merge.
//!
//! [`crate::openapi`] makes the published documents from them.

mod builtin;
mod components;
mod marks;
pub mod unset;

pub use builtin::{Builtin, builtin, builtin_schema, builtins};
pub use components::{
    components, definition_name, gvk, merge_schema, meta, openapi_definitions, reference,
};
