//! Create, update, patch, and calls to computed resources.

use std::sync::Arc;

use api_meta::patch::{self, PatchError};
use api_meta::status::{Cause, Status};
use http::{Response, StatusCode};
use serde_json::Value;

use super::{HandlerContext, options, present};
use crate::authorization::authorize;
use crate::body::RequestBody;
use crate::body::decode::{self, Decoded, Duplicate};
use crate::body::negotiate::{self, Offer, Typed};
use crate::body::respond::{self, Body};
use crate::registry::admission::AdmissionRequest;
use crate::registry::{FieldValidation, WriteOptions, WriteTarget, Written};
use crate::resource::{Call, Endpoint, SubresourceHandler};
use crate::strategy::{Operation, Strategy};
use crate::warnings;

/// How often an apply to a computed subresource is retried after a conflict.
const APPLY_RETRIES_MAX: usize = 5;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Reads a body of an ordinary media type; `None` when it is empty. `kind` gives API version and
/// kind when the body has a protobuf encoding; they apply to bodies that do not name theirs.
///
/// # Errors
/// 400 when it does not decode, 415 for other media types, or those of reading the body.
pub async fn read_body(
    context: &HandlerContext<'_>,
    body: RequestBody,
    kind: Option<(&str, &str)>,
) -> Result<Option<Decoded>, Status> {
    let media = negotiate::content_type(&context.parts.headers);
    let bytes = body.read().await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    decode_body(media, &bytes, kind).map(Some)
}

fn decode_body(
    media: Option<&str>,
    bytes: &[u8],
    kind: Option<(&str, &str)>,
) -> Result<Decoded, Status> {
    match (media, kind) {
        (None | Some("application/json"), _) => decode::json(bytes),
        (Some("application/yaml"), _) => decode::yaml(bytes),
        (Some(kubernetes_protobuf::MEDIA_TYPE), Some(kind)) => decode::protobuf(bytes, kind),
        (Some(_), _) => {
            let offered = Typed::from(kind.is_some()).media_types();
            Err(Status::unsupported_media_type(offered))
        }
    }
}

/// Reads a body, typed where the resource is; an empty body is `null`.
async fn required_body(context: &HandlerContext<'_>, body: RequestBody) -> Result<Decoded, Status> {
    let empty = Decoded { value: Value::Null, duplicates: Vec::new() };
    let (api_version, kind) = context.kind();
    let kind = (context.typed() == Typed::Yes).then_some((api_version.as_str(), kind));
    Ok(read_body(context, body, kind).await?.unwrap_or(empty))
}

/// Reads the body of a write, which must be an object, and stores in the options what strict
/// validation needs. The type is validated later.
async fn object_body(
    context: &HandlerContext<'_>,
    body: RequestBody,
    options: &mut WriteOptions,
) -> Result<Value, Status> {
    let media = negotiate::content_type(&context.parts.headers);
    let bytes = body.read().await?;
    let (api_version, kind) = context.kind();
    let typed = (context.typed() == Typed::Yes).then_some((api_version.as_str(), kind));
    let decoded = decode::object(&bytes, kind, |bytes| decode_body(media, bytes, typed))?;
    let strategy = &context.resource.strategy;
    context.sink().request_object(&decoded.value, |mut object| {
        strategy.default(&mut object);
        object
    });
    options.duplicates = decoded.duplicates;
    if typed.is_some() && matches!(media, None | Some("application/json")) {
        options.document = Some(bytes);
    }
    Ok(decoded.value)
}

/// Creates the object of the body.
///
/// # Errors
/// The [`Status`] to respond with. The same holds for the other handlers.
pub async fn create(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let mut options = options::write_options(context, "CreateOptions")?;
    let object = object_body(context, body, &mut options).await?;
    let namespace = &context.info.namespace;
    let resource = &context.resource;
    let written = context.registry.create(resource, namespace, object, &options).await;
    respond_written(context, &options, written, accepted).await
}

/// Replaces the object, or the part that the subresource writes.
///
/// # Errors
/// The [`Status`] to respond with.
pub async fn update(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let mut options = options::write_options(context, "UpdateOptions")?;
    let object = object_body(context, body, &mut options).await?;
    if context.resource.rules.create_on_update {
        options.creation_refused = creation_refused(context);
    }
    let target = target(context);
    let operation = operation(context);
    let value = if context.info.subresource == "finalize" {
        merge_finalize(context, object).await?
    } else {
        object
    };
    let written = context.registry.replace(&target, operation, value, &options).await;
    respond_written(context, &options, written, accepted).await
}

/// `/finalize` is an update that writes `spec.finalizers` but not the status.
async fn merge_finalize(context: &HandlerContext<'_>, mut body: Value) -> Result<Value, Status> {
    let info = context.info;
    let current = context.registry.get(&context.resource, &info.namespace, &info.name).await?;
    if let Some(body) = body.as_object_mut() {
        body.remove("status");
        if let Some(status) = current.value().get_mut("status") {
            body.insert("status".to_owned(), status.take());
        }
    }
    Ok(body)
}

/// Patches the object, or applies a configuration to it, by the media type of the body.
///
/// # Errors
/// The [`Status`] to respond with.
pub async fn patch(
    context: &HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let resource = context.resource.clone();
    let media = patch_media(context, &[APPLY_PATCH])?;
    if media == APPLY_PATCH {
        return apply(context, body, accepted).await;
    }
    let mut options = options::write_options(context, "PatchOptions")?;
    options.is_patch = true;
    // A missing object is reported first, whatever the patch.
    let decoded = Patch::decode(media, &body.read().await?);
    if let Ok((patch, duplicates)) = &decoded {
        context.sink().request_body(patch.document());
        options.duplicates.clone_from(duplicates);
    }
    let change = |old: &Value| -> Result<Value, Status> {
        let (patch, _) = decoded.as_ref().map_err(Status::clone)?;
        let mut new = old.clone();
        patch.apply(&mut new, &*resource.strategy)?;
        if new.is_object() && new["metadata"].is_object() {
            return Ok(new);
        }
        let cause = match decode::object_problem(&new) {
            Some(problem) => {
                let problem = format!("couldn't get version/kind; json parse error: {problem}");
                Cause::invalid("patch", &new.to_string().into(), &problem)
            }
            None => Cause::invalid("patch", &new, "the result is not an object"),
        };
        Err(Status::invalid("", "", "", vec![cause]))
    };
    let target = target(context);
    let written = context.registry.modify(&target, operation(context), &options, &change).await;
    respond_written(context, &options, written, accepted).await
}

async fn apply(
    context: &HandlerContext<'_>,
    body: RequestBody,
    accepted: negotiate::Accepted,
) -> Result<Response<Body>, Status> {
    let mut options = options::apply_options(context)?;
    options.creation_refused = creation_refused(context);
    let force = context.query.flag("force");
    let decoded = decode::configuration(&body.read().await?)?;
    if options.field_validation == FieldValidation::Strict && !decoded.duplicates.is_empty() {
        let problems = Duplicate::problems(&decoded.duplicates).join(", ");
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {problems}"
        )));
    }
    context.sink().request_body(&decoded.value);
    options.duplicates = decoded.duplicates;
    let (target, operation) = (target(context), operation(context));
    let written = context.registry.apply(&target, operation, &decoded.value, force, &options).await;
    respond_written(context, &options, written, accepted).await
}

/// Why the caller has no right to create an object that an update does not find.
fn creation_refused(context: &HandlerContext<'_>) -> Option<Box<Status>> {
    authorize(&**context.authorizer, context.user, context.info, "create").err().map(Box::new)
}

/// The media type of the body, when the resource and its subresources accept it for a patch, or it
/// is one of `more`.
fn patch_media(
    context: &HandlerContext<'_>,
    more: &[&'static str],
) -> Result<&'static str, Status> {
    let strategic = context.resource.strategy.merge_keys().map(|_| STRATEGIC_MERGE_PATCH);
    let common = [JSON_PATCH, MERGE_PATCH].into_iter().chain(strategic);
    let offered: Vec<&'static str> = common.chain(more.iter().copied()).collect();
    let media = negotiate::content_type(&context.parts.headers).unwrap_or_default();
    let found = offered.iter().find(|offered| **offered == media);
    found.copied().ok_or_else(|| Status::unsupported_media_type(&offered))
}

/// A decoded patch document.
enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Also returns the duplicate keys.
    fn decode(media: &str, body: &[u8]) -> Result<(Self, Vec<Duplicate>), Status> {
        let decode_json = || decode::json(body);
        let (patch, duplicates) = match media {
            JSON_PATCH => {
                let decoded = decode_json()?;
                patch::check_json_patch(&decoded.value)?;
                (Self::Json(decoded.value), decoded.duplicates)
            }
            MERGE_PATCH => {
                (Self::Merge(patch::decode_object(body, false)?), decode_json()?.duplicates)
            }
            _ => (Self::Strategic(patch::decode_object(body, true)?), decode_json()?.duplicates),
        };
        Ok((patch, duplicates))
    }

    fn document(&self) -> &Value {
        match self {
            Self::Json(patch) | Self::Merge(patch) | Self::Strategic(patch) => patch,
        }
    }

    fn apply(&self, object: &mut Value, strategy: &dyn Strategy) -> Result<(), PatchError> {
        match self {
            Self::Json(patch) => patch::json_patch(object, patch),
            Self::Merge(patch) => patch::merge_patch(object, patch),
            Self::Strategic(patch) => {
                let keys = strategy.merge_keys().expect("offered only with merge keys");
                patch::strategic_merge_patch(object, patch, keys)
            }
        }
    }
}

/// Calls a computed resource or subresource. A patch reads it, and writes the result back.
///
/// # Errors
/// The [`Status`] to respond with.
pub async fn call_endpoint(
    context: &HandlerContext<'_>,
    endpoint: &Arc<dyn Endpoint>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Plain)?;
    let media = match context.info.verb {
        "patch" if endpoint.is_applied() => patch_media(context, &[APPLY_PATCH])?,
        "patch" => patch_media(context, &[])?,
        _ => "",
    };
    let options = match media {
        APPLY_PATCH => options::apply_options(context)?,
        _ => options::write_options(context, "CreateOptions")?,
    };
    let call = |verb: &'static str, body: Value| Call {
        user: context.user.clone(),
        verb,
        namespace: context.info.namespace.clone(),
        name: context.info.name.clone(),
        body,
        dry_run: options.dry_run,
        manager: options.manager.clone(),
        force: context.query.flag("force"),
        applied: media == APPLY_PATCH,
    };
    if media == APPLY_PATCH {
        let config = decode::configuration(&body.read().await?)?.value;
        return apply_to_endpoint(
            context,
            endpoint,
            &options,
            accepted,
            &|verb, body| call(verb, body),
            &config,
        )
        .await;
    }
    let mut call = match context.info.verb {
        "get" => call("get", Value::Null),
        "patch" => {
            let (patch, _) = Patch::decode(media, &body.read().await?)?;
            let (_, mut value) = endpoint.call(call("patch", Value::Null)).await?;
            patch.apply(&mut value, &*context.resource.strategy)?;
            call("update", value)
        }
        verb => {
            let body = required_body(context, body).await?.value;
            context.sink().request_object(&body, |object| object);
            call(verb, body)
        }
    };
    admit_call(context, endpoint, &options, &mut call).await?;
    let response = endpoint.call(call).await?;
    Ok(respond_endpoint(response, accepted, &options))
}

/// Applies a configuration to a computed subresource; retries when another write came between.
async fn apply_to_endpoint(
    context: &HandlerContext<'_>,
    endpoint: &Arc<dyn Endpoint>,
    options: &WriteOptions,
    accepted: negotiate::Accepted,
    call: &(dyn Fn(&'static str, Value) -> Call + Sync),
    config: &Value,
) -> Result<Response<Body>, Status> {
    let mut attempts = 0;
    loop {
        let (_, applied) = endpoint.call(call("apply", config.clone())).await?;
        let mut update = call("update", applied);
        admit_call(context, endpoint, options, &mut update).await?;
        match endpoint.call(update).await {
            Err(status) if status.code == 409 && attempts < APPLY_RETRIES_MAX => attempts += 1,
            response => return Ok(respond_endpoint(response?, accepted, options)),
        }
    }
}

fn respond_endpoint(
    (code, value): (u16, Value),
    accepted: negotiate::Accepted,
    options: &WriteOptions,
) -> Response<Body> {
    let code = StatusCode::from_u16(code).expect("endpoints return HTTP codes");
    let mut response = respond::value(code, accepted, &value);
    warnings::add(response.headers_mut(), &options.warnings.take());
    response
}

/// Runs admission on a write of a computed subresource. Reviews change nothing and are exempt.
async fn admit_call(
    context: &HandlerContext<'_>,
    endpoint: &Arc<dyn Endpoint>,
    options: &WriteOptions,
    call: &mut Call,
) -> Result<(), Status> {
    let subresource = context.info.subresource.as_str();
    let is_configured = context.registry.admission().is_configured();
    if call.verb == "get" || subresource.is_empty() || !is_configured {
        return Ok(());
    }
    let old = match call.verb {
        "update" => {
            let current = Call { verb: "get", body: Value::Null, ..call.clone() };
            Some(endpoint.call(current).await?.1)
        }
        _ => None,
    };
    let target = target(context);
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request =
        AdmissionRequest { subresource, ..AdmissionRequest::new(&target, operation, options) };
    context.registry.mutate(&request, Some(&mut call.body), old.as_ref()).await?;
    context.registry.review(&request, Some(&call.body), old.as_ref()).await
}

fn operation(context: &HandlerContext<'_>) -> Operation {
    match context.subresource() {
        None => Operation::Update,
        Some(subresource) => match subresource.handler {
            SubresourceHandler::Status => Operation::UpdateStatus,
            SubresourceHandler::Finalize => Operation::Finalize,
            SubresourceHandler::Part => Operation::Part(subresource.name),
            SubresourceHandler::Endpoint(_) | SubresourceHandler::Connect => Operation::Update,
        },
    }
}

/// The object that the path names.
pub fn target<'a>(context: &'a HandlerContext<'_>) -> WriteTarget<'a> {
    WriteTarget {
        resource: &context.resource,
        namespace: &context.info.namespace,
        name: &context.info.name,
    }
}

/// The response to a write. A rejection includes the warnings that admission gave before.
async fn respond_written(
    context: &HandlerContext<'_>,
    options: &WriteOptions,
    written: Result<Written, Status>,
    accepted: negotiate::Accepted,
) -> Result<Response<Body>, Status> {
    let written = match (written, options.warnings.take()) {
        (Ok(written), _) => written,
        (Err(status), warnings) if warnings.is_empty() => return Err(status),
        (Err(status), warnings) => {
            let format = negotiate::refusal(&context.parts.headers);
            let mut response = respond::refusal(format, &status);
            warnings::add(response.headers_mut(), &warnings);
            return Ok(response);
        }
    };
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    let object = context.registry.serve_one(&context.resource, written.object.clone()).await?;
    let mut response = present::object(&context.resource, &object, code, accepted, context.query)?;
    warnings::add(response.headers_mut(), &written.warnings);
    Ok(response)
}

/// The options of a write on behalf of the caller that has no options of its own.
pub fn plain_options(context: &HandlerContext<'_>, dry_run: bool) -> WriteOptions {
    let audit = context.sink();
    WriteOptions { dry_run, audit, ..WriteOptions::of(context.user.clone()) }
}
