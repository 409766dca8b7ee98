//! Field ownership of Kubernetes objects: which manager owns which field, and the result of
//! applying a configuration to an object of which other managers own parts.
//!
//! Pure: no clock, no HTTP, no kinds. An object is a JSON tree, its type a [`Schema`]. Start at
//! [`Updater`], which has the two ways in which a write changes ownership: [`Updater::update`] for
//! writes that state the result (create, replace, patch) and [`Updater::apply`] for apply
//! configurations. Below it: [`Typed`] (an object with its schema) compares, merges and prunes;
//! [`FieldSet`] is a set of paths with the encoding of `metadata.managedFields[*].fieldsV1`. Above
//! it, [`Write`] does a whole write, from the `managedFields` of the stored object to those of the
//! next.
//!
//! The behaviour follows sigs.k8s.io/structured-merge-diff v6 as kube-apiserver 1.36 uses it. The
//! texts of errors are part of that: clients show and match them.

mod conflict;
mod element;
mod encoding;
mod go_text;
mod managed_fields;
mod managers;
mod openapi;
mod schema;
mod set;
#[cfg(test)]
mod tests;
mod typed;
mod update;
mod value;

pub use conflict::{Conflict, Conflicts};
pub use element::{Path, PathElement};
pub use encoding::{DEPTH_MAX, DecodeError, ELEMENTS_MAX};
pub use managed_fields::{
    Applied, ApplyError, EntryError, LAST_APPLIED, ManagedFields, UPDATE_MANAGERS_MAX, Write,
};
pub use managers::{Managers, VersionedSet};
pub use openapi::OpenApiError;
pub use schema::{Atom, ListKind, ListSchema, MapSchema, Scalar, Schema, SchemaBuilder, TypeId};
pub use set::FieldSet;
pub use typed::{Comparison, Duplicates, Typed, ValidationError, ValidationErrors};
pub use update::{ConvertError, UpdateError, Updater, Versions};
