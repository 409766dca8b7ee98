//! Field ownership of Kubernetes objects: which manager owns which field, and what applying a
//! configuration makes of an object that others own parts of.
//!
//! Pure: no clock, no HTTP, no kinds. An object is a JSON tree, its type a [`Schema`]. Start at
//! [`Updater`], which has the two ways a write changes ownership: [`Updater::update`] for what
//! states the outcome (create, replace, patch) and [`Updater::apply`] for what states a wish.
//! Below it: [`Typed`] (an object with its schema) compares, merges and prunes; [`FieldSet`] is a
//! set of paths with the encoding of `metadata.managedFields[*].fieldsV1`. Above it, [`Write`] does
//! a whole write, from the `managedFields` of the stored object to those of the next.
//!
//! Behaviour follows sigs.k8s.io/structured-merge-diff v6 as kube-apiserver 1.36 uses it. The
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
pub use schema::{Atom, List, ListKind, Map, Scalar, Schema, SchemaBuilder, TypeId};
pub use set::FieldSet;
pub use typed::{Comparison, Duplicates, Problem, Problems, Typed};
pub use update::{ConvertError, UpdateError, Updater, Versions};
