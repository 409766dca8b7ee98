//! The representations of an object during admission: as its kind decodes it, and converted to
//! another version.

use std::borrow::Cow;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::Value;

use super::rules::Objects;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};
use crate::registry::{Registry, depth_problem};
use crate::resource::Resource;

/// Decodes a request body like its kind does, and removes the metadata that only the server sets.
pub fn decode_body(request: &AdmissionRequest<'_>, mut object: Value) -> Value {
    if request.operation == AdmissionOperation::Create && request.subresource.is_empty() {
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

/// Prunes unknown fields of an object and sets defaults, like its kind does on decoding.
pub fn conform(request: &AdmissionRequest<'_>, resource: &Resource, object: &mut Value) {
    if !has_own_kind(request) {
        resource.strategy.prune(object);
        resource.strategy.default(object);
    }
}

/// Whether the body of the request has another kind than the resource's objects, like a `Scale`.
pub fn has_own_kind(request: &AdmissionRequest<'_>) -> bool {
    let subresource = request.resource.subresource(request.subresource);
    subresource.is_some_and(|subresource| subresource.gvk.is_some())
}

/// Validates that a changed object can still be decoded as one of its kind.
///
/// # Errors
/// 500 with the problem: the caller refuses the write.
pub fn check_readable(
    request: &AdmissionRequest<'_>,
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

/// Converts both objects of a write to another version of the resource. Absent objects are null.
///
/// # Errors
/// The status of a failed conversion.
pub async fn convert_objects<'a>(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    resource: &Resource,
    objects: Objects<'a>,
) -> Result<(Cow<'a, Value>, Cow<'a, Value>), Status> {
    let new = convert_object(registry, request, resource, objects.new).await?;
    Ok((new, convert_object(registry, request, resource, objects.old).await?))
}

/// Converts one object to another version of the resource; see [`convert_objects`].
///
/// # Errors
/// The status of a failed conversion.
pub async fn convert_object<'a>(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    resource: &Resource,
    object: Option<&'a Value>,
) -> Result<Cow<'a, Value>, Status> {
    let Some(object) = object else { return Ok(Cow::Owned(Value::Null)) };
    // The object's own version, not that of the request: an object that is ready to be stored may
    // have another.
    if resource.api_version() == object.api_version() || has_own_kind(request) {
        return Ok(Cow::Borrowed(object));
    }
    let mut converted = object.clone();
    registry.convert(resource, &mut converted).await?;
    Ok(Cow::Owned(converted))
}
