//! DELETE of one object and of a collection.

use api_meta::status::{Cause, Status, StatusDetails};
use http::{Response, StatusCode};
use serde_json::Value;

use super::{HandlerContext, options, present, write};
use crate::body::RequestBody;
use crate::body::negotiate::{Accepted, Offer};
use crate::body::respond::{self, Body};
use crate::registry::served_tree;
use crate::registry::{DeleteOptions, Deleted, Propagation, WriteTarget};
use crate::warnings;

/// The kind of the body of a delete, whatever it deletes. It has a protobuf encoding, which
/// metadata clients use.
const OPTIONS: (&str, &str) = ("v1", "DeleteOptions");

/// Deletes the object of the path. Responds with the object when it is only marked or when the kind
/// returns it, else with a `Status`.
///
/// # Errors
/// The [`Status`] to respond with.
pub async fn delete_object(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let (delete, dry_run) = delete_options(context, body).await?;
    let options = write::plain_options(context, dry_run);
    let target = write::target(context);
    let deleted = context.registry.delete(&target, &delete, &options).await?;
    let mut response = respond_deleted(context, deleted, accepted).await?;
    warnings::add(response.headers_mut(), &options.warnings.take());
    Ok(response)
}

async fn respond_deleted(
    context: &HandlerContext<'_>,
    deleted: Deleted,
    accepted: Accepted,
) -> Result<Response<Body>, Status> {
    match deleted {
        Deleted::Terminating(object) => {
            let object = context.registry.serve_one(&context.resource, object).await?;
            present::object(&context.resource, &object, StatusCode::OK, accepted, context.query)
        }
        Deleted::Removed(object) if context.resource.rules.delete_returns_object => {
            present::object(&context.resource, &object, StatusCode::OK, accepted, context.query)
        }
        Deleted::Removed(object) => {
            let mut status = Status::new(200, "", "");
            status.details = Some(Box::new(StatusDetails {
                name: context.info.name.clone(),
                group: context.resource.group.clone(),
                kind: context.resource.plural.clone(),
                uid: object.uid.to_string(),
                ..StatusDetails::default()
            }));
            Ok(respond::value(StatusCode::OK, accepted, &status.to_json()))
        }
    }
}

/// Deletes the objects that the selectors match, and responds with the list of them as they were.
/// Objects that were deleted meanwhile are skipped.
///
/// # Errors
/// The first error other than 404; objects deleted before it stay deleted.
pub async fn delete_collection(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Plain)?;
    let list_query = options::list_query(context)?;
    let (mut delete, dry_run) = delete_options(context, body).await?;
    delete.of_collection = true;
    let options = write::plain_options(context, dry_run);
    let list = context.registry.list(&context.resource, &list_query).await?;
    let served = context.registry.serve(&context.resource, list.items.clone()).await?;
    let mut items = Vec::with_capacity(list.items.len());
    for object in &served {
        let target = WriteTarget {
            resource: &context.resource,
            namespace: &object.namespace,
            name: &object.name,
        };
        match context.registry.delete(&target, &delete, &options).await {
            // As they were listed, even when they are only marked.
            Ok(_) => items.push(served_tree(&context.resource, object)),
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    let metadata = present::list_metadata(&context.resource, &list);
    let value = present::value_list(&context.resource, items, metadata);
    let mut response = respond::value(StatusCode::OK, accepted, &value);
    warnings::add(response.headers_mut(), &options.warnings.take());
    Ok(response)
}

/// From the body if there is one, else from the query.
async fn delete_options(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<(DeleteOptions, bool), Status> {
    let body = write::read_body(context, body, Some(OPTIONS)).await?.map(|decoded| decoded.value);
    if let Some(body) = &body {
        context.sink().request_body(body);
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if !body.is_object() || kind != "DeleteOptions" {
            return Err(Status::bad_request(format!(
                "the body of a delete must be DeleteOptions, not {kind}"
            )));
        }
    }
    let dry_run = options::delete_dry_run(context.query, body.as_ref())?;
    let text = |field: &str| -> Value {
        match &body {
            Some(body) => body[field].clone(),
            None => context.query.get(field).map_or(Value::Null, Value::from),
        }
    };
    let grace_seconds = match text("gracePeriodSeconds") {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => Some(text.parse().map_err(|_| {
            Status::bad_request(format!("gracePeriodSeconds={text} is not a number"))
        })?),
        _ => None,
    };
    let precondition = |field: &str| {
        body.as_ref().and_then(|b| b["preconditions"][field].as_str()).map(str::to_owned)
    };
    let delete = DeleteOptions {
        propagation: propagation(&text("propagationPolicy"), &text("orphanDependents"))?,
        // A negative period means one second.
        grace_seconds: grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds }),
        uid: precondition("uid"),
        resource_version: precondition("resourceVersion"),
        of_collection: false,
    };
    Ok((delete, dry_run))
}

fn propagation(policy: &Value, orphan: &Value) -> Result<Option<Propagation>, Status> {
    let orphan = match orphan {
        Value::Bool(orphan) => Some(*orphan),
        Value::String(text) => Some(text == "true"),
        _ => None,
    };
    let policy = policy.as_str().filter(|policy| !policy.is_empty());
    match (policy, orphan) {
        (Some(_), Some(_)) => {
            let text = "orphanDependents and deletionPropagation cannot be both set";
            let cause = Cause::invalid("propagationPolicy", &policy.into(), text);
            Err(options::invalid_delete(vec![cause]))
        }
        (None, Some(true)) | (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) | (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (None, None) => Ok(None),
        (Some(other), None) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            let cause = Cause::not_supported("propagationPolicy", &other.into(), &supported);
            Err(options::invalid_delete(vec![cause]))
        }
    }
}
