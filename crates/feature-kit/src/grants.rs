//! Admission of objects that grant rights: nobody grants rights that they do not have.

use serde_json::Value;

use crate::access::GROUP_GLOBAL_ADMIN;
use crate::controller::GROUP_CONTROLLERS;
use crate::kind::{Review, ReviewOperation};

/// The group that passes all authorization.
pub const GROUP_MASTERS: &str = "system:masters";

/// Whether the writer already has every right: a global administrator, or the server itself.
pub fn is_administrator(groups: &[String]) -> bool {
    groups.iter().any(|group| [GROUP_GLOBAL_ADMIN, GROUP_MASTERS].contains(&group.as_str()))
}

/// Whether the writer is a controller of the server. Controllers may grant any rights.
pub fn is_controller(groups: &[String]) -> bool {
    groups.iter().any(|group| group == GROUP_CONTROLLERS)
}

/// Whether the write may change what the object grants: it creates the object, or changes a field
/// other than metadata, status and `descriptive` ones. A deletion grants nothing.
///
/// `descriptive` are top-level fields that only describe the object. All other fields count, so
/// that a field which is added later is checked.
pub fn changes_grant(review: &Review<'_>, descriptive: &[&str]) -> bool {
    let Some(object) = review.object.filter(|_| review.operation != ReviewOperation::Delete) else {
        return false;
    };
    let Some(old) = review.old else { return true };
    let given = |object: &Value| {
        let fields = object.as_object().into_iter().flatten();
        let counts =
            |name: &str| !(["metadata", "status"].contains(&name) || descriptive.contains(&name));
        let given: serde_json::Map<String, Value> = fields
            .filter(|(name, _)| counts(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        given
    };
    given(object) != given(old)
}
