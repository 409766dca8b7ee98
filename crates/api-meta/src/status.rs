//! The `Status` object: how every failure is reported to a client, with the messages and codes that
//! clients parse.
//!
//! Source of the messages: `k8s.io/apimachinery/pkg/api/errors` and `…/util/validation/field`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One reason why an object or option was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For users.
    pub message: String,
    /// Path of the field, such as `spec.containers[0].name`; empty for the whole object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Cause {
    /// A cause with this reason at `field`.
    pub fn new(reason: &str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), field: field.into() }
    }
    /// A required field is missing.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self::new("FieldValueRequired", field, message)
    }
    /// The value of a field is invalid; `detail` says what it must be.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", quoted(value)))
    }
    /// The value of a field is none of the supported ones.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", quoted(value), list.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }
    /// The field must not be set; `detail` says why.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }
    /// The value must be unique and is not.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", quoted(value)))
    }
    /// The value of a field has the wrong type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", quoted(value));
        Self::new("FieldValueTypeInvalid", field, message)
    }
    /// A list has `count` items and may have at most `max`; `None` when it is within the limit.
    pub fn too_many(field: impl Into<String>, count: usize, max: usize) -> Option<Self> {
        let message = format!("Too many: {count}: must have at most {max} items");
        (count > max).then(|| Self::new("FieldValueTooMany", field, message))
    }
    /// A text is longer than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let message = format!("Too long: may not be more than {max} bytes");
        Self::new("FieldValueTooLong", field, message)
    }
}

/// A value as Go prints it in a field error: strings quoted, the rest as JSON.
fn quoted(value: &Value) -> String {
    value.to_string()
}

/// What a failure is about, for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource in most failures, the Kind in failed validations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When the client should try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// A failure (or a success without an object) as the API reports it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// Empty where Kubernetes has none. Owned when it comes from an admission webhook.
    pub reason: Cow<'static, str>,
    /// For users; clients and tests compare it.
    pub message: String,
    pub details: Option<Box<StatusDetails>>,
    /// `metadata.continue`: how to continue a list whose page token has expired.
    pub continue_token: Option<String>,
}

/// `resource.group`, or only `resource` for the core group.
pub fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl Status {
    /// A status without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }
    fn with(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Box::new(StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..StatusDetails::default()
        }));
        self
    }
    /// Sets the causes.
    pub fn causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }
    /// Sets after how many seconds the client should try again.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = Some(seconds);
        self
    }
    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }
    /// 401 `Unauthorized`.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }
    /// 403 `Forbidden`. `message` follows `… is forbidden: `.
    pub fn forbidden(group: &str, resource: &str, name: &str, message: &str) -> Self {
        let text = if name.is_empty() {
            format!("{} is forbidden: {message}", qualified(resource, group))
        } else {
            format!("{} \"{name}\" is forbidden: {message}", qualified(resource, group))
        };
        Self::new(403, "Forbidden", text).with(group, resource, name)
    }
    /// 404 `NotFound` for an object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let text = format!("{} \"{name}\" not found", qualified(resource, group));
        Self::new(404, "NotFound", text).with(group, resource, name)
    }
    /// 404 for an unknown version or resource in a known group.
    pub fn unknown_resource() -> Self {
        let mut status =
            Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details = Some(Box::default());
        status
    }
    /// 405 `MethodNotAllowed`.
    pub fn method_not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        let mut status = Self::new(405, "MethodNotAllowed", text);
        status.details = Some(Box::default());
        status
    }
    /// Like [`Self::method_not_allowed`], with the reason why this object differs from others.
    pub fn not_allowed_because(why: &str) -> Self {
        Self { message: why.to_owned(), ..Self::method_not_allowed() }
    }
    /// 406 with the media types that the server can return.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let text = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(406, "NotAcceptable", text)
    }
    /// 409 `AlreadyExists`.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let text = format!("{} \"{name}\" already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", text).with(group, resource, name)
    }
    /// 409 `Conflict`. `message` follows the name of the object.
    pub fn conflict(group: &str, resource: &str, name: &str, message: &str) -> Self {
        let text = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {message}",
            qualified(resource, group)
        );
        Self::new(409, "Conflict", text).with(group, resource, name)
    }
    /// The conflict of optimistic concurrency, which retry helpers of clients recognise.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        let text = "the object has been modified; please apply your changes to the latest version \
                    and try again";
        Self::conflict(group, resource, name, text)
    }
    /// 410 `Expired`: the requested resource version is no longer available.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }
    /// 413 `RequestEntityTooLarge`.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }
    /// 415 with the media types that the server accepts.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let text = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", text)
    }
    /// 422 `Invalid`: validation failed. `kind` is the Kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let list: Vec<String> = causes
            .iter()
            .map(|c| {
                if c.field.is_empty() {
                    c.message.clone()
                } else {
                    format!("{}: {}", c.field, c.message)
                }
            })
            .collect();
        let listed = match list.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let text = format!("{} \"{name}\" is invalid: {listed}", qualified(kind, group));
        Self::new(422, "Invalid", text).with(group, kind, name).causes(causes)
    }
    /// 429; the client should try again after `seconds`.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", message).retry_after(seconds)
    }
    /// 500 `InternalError`.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let cause =
            Cause { reason: String::new(), message: message.to_string(), field: String::new() };
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .causes(vec![cause])
    }
    /// 503 `ServiceUnavailable`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }
    /// 504 `Timeout`.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }
    /// 504: a list or watch requested a resource version that has not been reached. Clients retry
    /// after a second.
    pub fn version_too_large(requested: u64, current: u64) -> Self {
        let text = format!("Too large resource version: {requested}, current: {current}");
        let cause = Cause::new("ResourceVersionTooLarge", "", "Too large resource version");
        Self::timeout(format!("Timeout: {text}")).causes(vec![cause]).retry_after(1)
    }

    /// The object as JSON.
    pub fn to_json(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": if self.code < 400 { "Success" } else { "Failure" },
        });
        if !self.message.is_empty() {
            body["message"] = self.message.clone().into();
        }
        if !self.reason.is_empty() {
            body["reason"] = Value::from(&*self.reason);
        }
        if let Some(details) = &self.details {
            body["details"] = serde_json::to_value(details).expect("plain strings serialise");
        }
        if let Some(token) = &self.continue_token {
            body["metadata"]["continue"] = token.clone().into();
        }
        if self.code >= 400 {
            body["code"] = self.code.into();
        }
        body
    }
}
