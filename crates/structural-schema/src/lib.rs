//! Structural schemas: check, prune, default, validate. Pure: no I/O, no clock.
//!
//! [`Schema`] is the compiled form of an OpenAPI schema, either the `openAPIV3Schema` of a
//! CustomResourceDefinition ([`Schema::compile`]) or the JSON schema of a built-in type
//! ([`Schema::from_json_schema`]). [`check()`] says whether the former may be compiled at all.
//! Documents for clients are not made here: they show the schema's JSON as it is.
//!
//! Start at [`schema`]; each operation has its own module.

pub mod check;
mod compile;
mod decode;
mod default;
mod expressions;
mod format;
pub mod jsonpath;
mod list;
mod metadata;
pub mod number;
mod prune;
pub mod schema;
mod validate;

pub use check::{check, check_update};
pub use compile::SchemaError;
pub use jsonpath::JsonPath;
pub use schema::Schema;

#[cfg(test)]
mod tests;
