//! Who owns what.

use std::collections::BTreeMap;

use crate::set::FieldSet;

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedSet {
    pub set: FieldSet,
    /// The version in whose form the paths are.
    pub api_version: String,
    /// By applying; else by other writes.
    pub applied: bool,
}

/// The owners of an object, by an identity that means nothing here. Conflicts are told in its
/// order.
pub type Managers = BTreeMap<String, VersionedSet>;
