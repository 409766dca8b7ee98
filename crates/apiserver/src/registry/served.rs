//! Stored objects in the version that a resource serves, when no webhook converts.

use bytes::Bytes;
use serde_json::Value;

use super::write::bring_to_version;
use crate::resource::Resource;
use crate::stored::{Stored, to_bytes};

/// Whether stored bytes are served unchanged.
pub(crate) fn served_as_stored(resource: &Resource) -> bool {
    !resource.custom && !resource.strategy.rewrites_on_read()
}

/// The JSON of an object in the resource's version.
pub(crate) fn served_bytes(resource: &Resource, object: &Stored) -> Bytes {
    if served_as_stored(resource) || !needs_rewrite(resource, object) {
        return object.bytes.clone();
    }
    let mut value = object.value();
    bring_to_version(resource, &mut value);
    to_bytes(&value)
}

fn needs_rewrite(resource: &Resource, object: &Stored) -> bool {
    if resource.strategy.rewrites_on_read() {
        return true;
    }
    // Keys are sorted, so the version is the first member.
    let head = format!("{{\"apiVersion\":\"{}\"", resource.api_version());
    !object.bytes.starts_with(head.as_bytes())
}

pub(crate) fn served_tree(resource: &Resource, object: &Stored) -> Value {
    let mut value = object.value();
    bring_to_version(resource, &mut value);
    value
}
