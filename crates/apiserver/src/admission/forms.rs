//! The forms that an object takes on its way through admission: as its kind reads it, and as one of
//! another version.

use std::borrow::Cow;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::rules::Objects;
use crate::registry::admission::{Operation, Request};
use crate::registry::{Registry, depth_problem};
use crate::resource::Resource;

/// A body in the form in which its kind reads it, and without what only the server sets.
pub fn decoded(request: &Request<'_>, mut object: Value) -> Value {
    if request.operation == Operation::Create && request.subresource.is_empty() {
        let own = [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ];
        for field in own {
            object.remove_meta(field);
        }
    }
    conform(request, request.resource, &mut object);
    object
}

/// Brings an object of `resource` into the form in which its kind reads it.
pub fn conform(request: &Request<'_>, resource: &Resource, object: &mut Value) {
    if !has_own_kind(request) {
        resource.strategy.prune(object);
        resource.strategy.default(object);
    }
}

/// Whether the body is of another kind than the resource's objects.
pub fn has_own_kind(request: &Request<'_>) -> bool {
    let subresource = request.resource.subresource(request.subresource);
    subresource.is_some_and(|subresource| subresource.gvk.is_some())
}

/// What admission made of an object must still be one of its kind.
///
/// # Errors
/// It is not; 500.
pub fn check_readable(
    request: &Request<'_>,
    resource: &Resource,
    object: &Value,
) -> Result<(), Status> {
    let problem = api_meta::metadata::type_problem(object);
    let problem = problem.or_else(|| depth_problem(object));
    let problem = problem.or_else(|| match has_own_kind(request) {
        true => None,
        false => resource.strategy.decode_problem(object),
    });
    problem.map_or(Ok(()), |problem| Err(Status::internal(problem)))
}

/// Both objects as those of another version of the resource; null for those that are absent.
pub async fn seen_as<'a>(
    registry: &Registry,
    request: &Request<'_>,
    seen: &Resource,
    objects: Objects<'a>,
) -> Result<(Cow<'a, Value>, Cow<'a, Value>), Status> {
    let new = one_seen_as(registry, request, seen, objects.new).await?;
    Ok((new, one_seen_as(registry, request, seen, objects.old).await?))
}

/// As [`seen_as`], of one object.
pub async fn one_seen_as<'a>(
    registry: &Registry,
    request: &Request<'_>,
    seen: &Resource,
    object: Option<&'a Value>,
) -> Result<Cow<'a, Value>, Status> {
    let Some(object) = object else { return Ok(Cow::Owned(Value::Null)) };
    // Not that of the request: what is ready to be stored may have another.
    if seen.api_version() == object.api_version() || has_own_kind(request) {
        return Ok(Cow::Borrowed(object));
    }
    let mut converted = object.clone();
    registry.convert(seen, &mut converted).await?;
    Ok(Cow::Owned(converted))
}
