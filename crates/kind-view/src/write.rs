//! Writes: the caller's own requests to the Kubernetes API, with what the view adds to an object
//! taken out.

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use rest_view::store::DeleteOptions;
use rest_view::urls::encode;
use rest_view::{ApiError, Context, Key, Store};
use serde_json::{Map, Value};

use crate::kinds::ServedKind;
use crate::list::store_of;
use crate::object::stored_from;

const JSON: &str = "application/json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// Media types of patches that are passed on.
const PATCHES: [&str; 4] = ["application/json-patch+json", MERGE, STRATEGIC, APPLY];
/// Options of the Kubernetes API that are passed on.
const WRITE_OPTIONS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];
/// The field manager of an apply that names none.
const FIELD_MANAGER: &str = "drover";

/// Creates an object. `namespace`: that of the path; the body may name it instead.
///
/// # Errors
/// 422 for a namespaced kind without a namespace, or the refusal of the Kubernetes API.
pub async fn create(
    context: &Context<'_>,
    kind: &ServedKind,
    namespace: Option<&str>,
    body: Map<String, Value>,
) -> Result<Value, ApiError> {
    let mut object = stored_from(body, kind);
    let key = Key::of(&object);
    let namespace = match (namespace, key.namespace.as_str()) {
        (Some(path), named) if !named.is_empty() && named != path => {
            return Err(mismatch("metadata.namespace", named, path));
        }
        (Some(path), _) => path.to_owned(),
        (None, named) => named.to_owned(),
    };
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        let text = "give the object metadata, with its name";
        return Err(ApiError::invalid_field("MissingRequired", "metadata", text));
    };
    if kind.resource.namespaced {
        if namespace.is_empty() {
            let text = "name the namespace of the object";
            return Err(ApiError::invalid_field("MissingRequired", "metadata.namespace", text));
        }
        metadata.insert("namespace".to_owned(), namespace.clone().into());
    }
    let path = kind.resource.collection_path(&namespace);
    send(context, &Method::POST, &path, JSON, object.to_string().into()).await
}

/// Replaces an object.
///
/// # Errors
/// 422 without the resource version that was read, 400 when the body is another object than the
/// path, or the refusal of the Kubernetes API.
pub async fn replace(
    context: &Context<'_>,
    kind: &ServedKind,
    key: &Key,
    body: Map<String, Value>,
) -> Result<Value, ApiError> {
    let mut object = stored_from(body, kind);
    if !object["metadata"].is_object() {
        object["metadata"] = Map::new().into();
    }
    for (field, of_path) in [("name", &key.name), ("namespace", &key.namespace)] {
        match object["metadata"][field].as_str() {
            Some(named) if named != of_path => {
                return Err(mismatch(&format!("metadata.{field}"), named, of_path));
            }
            None if !of_path.is_empty() => object["metadata"][field] = of_path.clone().into(),
            _ => {}
        }
    }
    if object["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty) {
        let text = "send metadata.resourceVersion as it was read, so that no change of others is \
                    lost";
        return Err(ApiError::invalid_field("MissingRequired", "metadata.resourceVersion", text));
    }
    let path = kind.resource.object_path(key);
    send(context, &Method::PUT, &path, JSON, object.to_string().into()).await
}

/// Patches an object, in one of the formats of the Kubernetes API. A body without a format of a
/// patch is merged, by the rules of the kind where it has some.
///
/// # Errors
/// The refusal of the Kubernetes API.
pub async fn patch(
    context: &Context<'_>,
    kind: &ServedKind,
    key: &Key,
    body: Bytes,
) -> Result<Value, ApiError> {
    let path = kind.resource.object_path(key);
    let given = media_type(context.headers);
    if let Some(format) = PATCHES.into_iter().find(|format| *format == given) {
        return send(context, &Method::PATCH, &path, format, body).await;
    }
    match send(context, &Method::PATCH, &path, STRATEGIC, body.clone()).await {
        // Custom resources have no rules of their own.
        Err(error) if error.status == 415 => {
            send(context, &Method::PATCH, &path, MERGE, body).await
        }
        other => other,
    }
}

/// Deletes an object. Returns it while its deletion is pending, `None` when it no longer exists.
///
/// # Errors
/// 400 for options that cannot be read, or the refusal of the Kubernetes API.
pub async fn delete(
    context: &Context<'_>,
    kind: &ServedKind,
    key: &Key,
) -> Result<Option<Value>, ApiError> {
    let seconds = context.query_value("gracePeriodSeconds").map(|text| {
        text.parse().map_err(|_| {
            let text = "gracePeriodSeconds must be a number of seconds";
            ApiError::new(400, "InvalidParameter", text).field("gracePeriodSeconds")
        })
    });
    let options = DeleteOptions {
        propagation_policy: context.query_value("propagationPolicy").map(str::to_owned),
        grace_period_seconds: seconds.transpose()?,
    };
    store_of(kind).delete(context, key, &options).await
}

fn mismatch(field: &str, named: &str, of_path: &str) -> ApiError {
    let text = format!("{field} is \"{named}\" in the body and \"{of_path}\" in the path");
    ApiError::new(400, "InvalidBodyContent", text).field(field)
}

fn media_type(headers: &HeaderMap) -> &str {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.split(';').next()).unwrap_or_default().trim()
}

async fn send(
    context: &Context<'_>,
    method: &Method,
    path: &str,
    content_type: &str,
    body: Bytes,
) -> Result<Value, ApiError> {
    let mut options: Vec<(&str, &str)> = WRITE_OPTIONS
        .into_iter()
        .filter_map(|name| Some((name, context.query_value(name)?)))
        .collect();
    if content_type == APPLY && !options.iter().any(|(name, _)| *name == "fieldManager") {
        options.push(("fieldManager", FIELD_MANAGER));
    }
    let query: Vec<String> =
        options.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    let uri = match query.as_slice() {
        [] => path.to_owned(),
        query => format!("{path}?{}", query.join("&")),
    };
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::ACCEPT, JSON)
        .body(body.to_vec())
        // No object has a name that a path cannot contain.
        .map_err(|_| ApiError::no_such_id())?;
    Ok(context.client.request(request).await?)
}
