//! Create, update, patch, and calls to computed resources.

use std::sync::Arc;

use api_meta::patch::{self, PatchError};
use api_meta::status::{Cause, Status};
use http::{Response, StatusCode};
use serde_json::Value;

use super::{Context, options, present};
use crate::authorization::authorize;
use crate::body::RequestBody;
use crate::body::decode::{self, Decoded, Duplicate};
use crate::body::negotiate::{self, Offer, Typed};
use crate::body::respond::{self, Body};
use crate::registry::admission::Request;
use crate::registry::{FieldValidation, Target, WriteOptions, Written};
use crate::resource::{Call, Endpoint, SubresourceHandler};
use crate::strategy::{Operation, Strategy};
use crate::warnings;

/// How often an apply to a computed subresource is tried again.
const APPLY_RETRIES_MAX: usize = 5;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// Reads a body of an ordinary media type; absent is `None`. A body that does not say what it is, is of `kind`,
/// which tells API version and kind when it has a protobuf form.
pub async fn read_body(
    context: &Context<'_>,
    body: RequestBody,
    kind: Option<(&str, &str)>,
) -> Result<Option<Decoded>, Status> {
    let media = negotiate::content_type(&context.parts.headers);
    let bytes = body.read().await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    decoded(media, &bytes, kind).map(Some)
}

fn decoded(
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

/// Reads a body, typed where the resource is; absent is `null`.
async fn required_body(context: &Context<'_>, body: RequestBody) -> Result<Decoded, Status> {
    let empty = Decoded { value: Value::Null, duplicates: Vec::new() };
    let (api_version, kind) = context.kind();
    let kind = (context.typed() == Typed::Yes).then_some((api_version.as_str(), kind));
    Ok(read_body(context, body, kind).await?.unwrap_or(empty))
}

/// The body of a write, which must be an object, and in the options what strict validation needs of
/// it. Its type is checked later.
async fn object_body(
    context: &Context<'_>,
    body: RequestBody,
    options: &mut WriteOptions,
) -> Result<Value, Status> {
    let media = negotiate::content_type(&context.parts.headers);
    let bytes = body.read().await?;
    let (api_version, kind) = context.kind();
    let typed = (context.typed() == Typed::Yes).then_some((api_version.as_str(), kind));
    let decoded = decode::object(&bytes, kind, |bytes| decoded(media, bytes, typed))?;
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

pub async fn create(context: &Context<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let mut options = options::write_options(context, "CreateOptions")?;
    let object = object_body(context, body, &mut options).await?;
    let namespace = &context.info.namespace;
    let resource = &context.resource;
    let written = context.registry.create(resource, namespace, object, &options).await;
    answer(context, &options, written, accepted).await
}

pub async fn update(context: &Context<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let mut options = options::write_options(context, "UpdateOptions")?;
    let object = object_body(context, body, &mut options).await?;
    if context.resource.rules.create_on_update {
        options.creation_refused = creation_refused(context);
    }
    let target = target(context);
    let operation = operation(context);
    let value = if context.info.subresource == "finalize" {
        finalized(context, object).await?
    } else {
        object
    };
    let written = context.registry.replace(&target, operation, value, &options).await;
    answer(context, &options, written, accepted).await
}

/// `/finalize` is an update that reaches `spec.finalizers`, and not the status.
async fn finalized(context: &Context<'_>, mut body: Value) -> Result<Value, Status> {
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

pub async fn patch(context: &Context<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
    let accepted = context.accept(Offer::Object)?;
    let resource = context.resource.clone();
    let media = patch_media(context, &[APPLY_PATCH])?;
    if media == APPLY_PATCH {
        return apply(context, body, accepted).await;
    }
    let mut options = options::write_options(context, "PatchOptions")?;
    options.is_patch = true;
    // A patch of nothing is told so first, whatever the patch.
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
        let cause = match decode::unfit(&new) {
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
    answer(context, &options, written, accepted).await
}

async fn apply(
    context: &Context<'_>,
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
    answer(context, &options, written, accepted).await
}

/// Why the asker may not create the object that an update finds missing.
fn creation_refused(context: &Context<'_>) -> Option<Box<Status>> {
    authorize(&**context.authorizer, context.user, context.info, "create").err().map(Box::new)
}

/// The body's media type, when it is among those that the resource and its subresources offer for a
/// patch, or among `more`.
fn patch_media(context: &Context<'_>, more: &[&'static str]) -> Result<&'static str, Status> {
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
    /// The keys that stood twice come along.
    fn decode(media: &str, body: &[u8]) -> Result<(Self, Vec<Duplicate>), Status> {
        let decoded = || decode::json(body);
        let (patch, duplicates) = match media {
            JSON_PATCH => {
                let decoded = decoded()?;
                patch::check_json_patch(&decoded.value)?;
                (Self::Json(decoded.value), decoded.duplicates)
            }
            MERGE_PATCH => (Self::Merge(patch::decode_object(body, false)?), decoded()?.duplicates),
            _ => (Self::Strategic(patch::decode_object(body, true)?), decoded()?.duplicates),
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

/// A computed resource or subresource. A patch reads it, and writes back what the patch makes of it.
pub async fn call_endpoint(
    context: &Context<'_>,
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
    let answered = endpoint.call(call).await?;
    Ok(answer_of_endpoint(answered, accepted, &options))
}

/// Applies a configuration to a computed subresource, again when another write came between.
async fn apply_to_endpoint(
    context: &Context<'_>,
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
            answered => return Ok(answer_of_endpoint(answered?, accepted, options)),
        }
    }
}

fn answer_of_endpoint(
    (code, value): (u16, Value),
    accepted: negotiate::Accepted,
    options: &WriteOptions,
) -> Response<Body> {
    let code = StatusCode::from_u16(code).expect("endpoints answer with HTTP codes");
    let mut response = respond::value(code, accepted, &value);
    warnings::add(response.headers_mut(), &options.warnings.take());
    response
}

/// Shows a write of a computed subresource to admission. Reviews, which change nothing, are not shown.
async fn admit_call(
    context: &Context<'_>,
    endpoint: &Arc<dyn Endpoint>,
    options: &WriteOptions,
    call: &mut Call,
) -> Result<(), Status> {
    let subresource = context.info.subresource.as_str();
    let asks = context.registry.admission().is_configured();
    if call.verb == "get" || subresource.is_empty() || !asks {
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
    let request = Request { subresource, ..Request::new(&target, operation, options) };
    context.registry.mutate(&request, Some(&mut call.body), old.as_ref()).await?;
    context.registry.review(&request, Some(&call.body), old.as_ref()).await
}

fn operation(context: &Context<'_>) -> Operation {
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

pub fn target<'a>(context: &'a Context<'_>) -> Target<'a> {
    Target {
        resource: &context.resource,
        namespace: &context.info.namespace,
        name: &context.info.name,
    }
}

/// The answer to a write. A refusal comes with what admission had to say before.
async fn answer(
    context: &Context<'_>,
    options: &WriteOptions,
    written: Result<Written, Status>,
    accepted: negotiate::Accepted,
) -> Result<Response<Body>, Status> {
    let written = match (written, options.warnings.take()) {
        (Ok(written), _) => written,
        (Err(status), warnings) if warnings.is_empty() => return Err(status),
        (Err(status), warnings) => {
            let form = negotiate::refusal(&context.parts.headers);
            let mut response = respond::refusal(form, &status);
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

/// Options as the server's own writes have them, on behalf of the caller.
pub fn plain_options(context: &Context<'_>, dry_run: bool) -> WriteOptions {
    let audit = context.sink();
    WriteOptions { dry_run, audit, ..WriteOptions::of(context.user.clone()) }
}
