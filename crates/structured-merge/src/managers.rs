//! The managers of an object and the fields that they own.

use std::collections::BTreeMap;

use crate::set::FieldSet;

/// The fields that one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedSet {
    pub set: FieldSet,
    /// The version that the paths belong to.
    pub api_version: String,
    /// Whether the fields were applied. False for all other writes.
    pub applied: bool,
}

/// The managers of an object by identity. The identity is opaque here. Conflicts are reported in
/// its order.
pub type Managers = BTreeMap<String, VersionedSet>;
