//! Structural schemas: check, prune, default, validate. Pure: no I/O, no clock.
//!
//! [`Schema`] is a compiled OpenAPI schema, either the `openAPIV3Schema` of a
//! CustomResourceDefinition ([`Schema::compile`]) or the JSON schema of a built-in type
//! ([`Schema::from_json_schema`]). [`check()`] says whether the former may be compiled at all. This
//! crate makes no documents for clients: these contain the schema's JSON unchanged.
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
