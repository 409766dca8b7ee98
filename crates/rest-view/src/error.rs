//! Errors in the view's representation: `{"type":"error","code":…,"status":…,"message":…}`.

use http::StatusCode;
use serde_json::{Value, json};

/// An error as the caller sees it.
///
/// Kubernetes errors pass through with their own code and reason; anything unexpected is
/// `ServerError` 500.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({status}): {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// `NotFound`, `MissingRequired`, …; clients compare it.
    pub code: String,
    /// What happened, and what helps.
    pub message: String,
    /// The invalid field, if there is one.
    pub field: Option<String>,
    /// Seconds until a retry is useful: the header `Retry-After`.
    pub retry_after: Option<u64>,
    /// Rendered like authentication failures.
    unauthenticated: bool,
}

impl ApiError {
    /// An error without a field and without `Retry-After`.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            field: None,
            retry_after: None,
            unauthenticated: false,
        }
    }
    /// Names the invalid field.
    pub fn field(mut self, name: &str) -> Self {
        self.field = Some(name.to_owned());
        self
    }
    /// Sets after how many seconds the client should retry.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
    /// 401: no credential, or one that is not valid. Has a body of its own shape, which clients
    /// expect.
    pub fn unauthenticated() -> Self {
        let mut error = Self::new(401, "Unauthorized", "Unauthorized 401: must authenticate");
        error.unauthenticated = true;
        error
    }
    /// 401: the login was refused.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "Unauthorized", message)
    }
    /// 403 `PermissionDenied`.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(403, "PermissionDenied", message)
    }
    /// 404 `NotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "NotFound", message)
    }
    /// 404: no object has this id, or the text cannot be an id.
    pub fn no_such_id() -> Self {
        Self::not_found("failed to find resource by id")
    }
    /// 404: the type has the action, but the object does not offer it now.
    pub fn action_not_available(action: &str) -> Self {
        Self::new(404, "ActionNotAvailable", format!("action \"{action}\" is not available now"))
    }
    /// 405. The code lacks the final "ed": clients compare it.
    pub fn method_not_allowed(method: &str) -> Self {
        let text = format!("method {method} is not allowed on this resource");
        Self::new(405, "MethodNotAllow", text)
    }
    /// 422: the type has no such action.
    pub fn invalid_action(action: &str) -> Self {
        Self::new(422, "InvalidAction", format!("invalid action \"{action}\""))
    }
    /// 422: the body cannot be read.
    pub fn invalid_body(message: impl Into<String>) -> Self {
        Self::new(422, "InvalidBodyContent", message)
    }
    /// 422 about one field. `code` is one of the field errors: `MissingRequired`, `InvalidFormat`,
    /// `InvalidOption`, ….
    pub fn invalid_field(code: &str, field: &str, message: impl Into<String>) -> Self {
        Self::new(422, code, message).field(field)
    }
    /// 503: the cluster of the request does not respond.
    pub fn cluster_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ClusterUnavailable", message)
    }
    /// 413: the body is larger than `limit` bytes.
    pub fn too_large(limit: usize) -> Self {
        let text = format!("request body is larger than {limit} bytes");
        Self::new(413, "RequestEntityTooLarge", text)
    }
    /// 501: this view was built without a change feed.
    pub(crate) fn no_feed() -> Self {
        let text = "there is no change feed here; list again to see changes";
        Self::new(501, "NotImplemented", text)
    }
    /// 500: an unexpected error of the server.
    pub fn server_error(message: impl std::fmt::Display) -> Self {
        Self::new(500, "ServerError", message.to_string())
    }
    /// Whether the status is 404.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }
    /// Whether the status is 403.
    pub fn is_forbidden(&self) -> bool {
        self.status == 403
    }
    /// Whether the cluster did not respond, as opposed to another 503.
    pub fn is_cluster_unavailable(&self) -> bool {
        self.status == 503 && self.code == "ClusterUnavailable"
    }
    /// Whether the object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.status == 409 && self.code == "Conflict"
    }

    /// The HTTP status. A status outside 400–599 becomes 500.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The response body.
    pub fn to_json(&self) -> Value {
        if self.unauthenticated {
            let status = self.status.to_string();
            return json!({"type": "error", "status": status, "message": self.message});
        }
        let mut body = json!({
            "type": "error",
            "baseType": "error",
            "code": self.code,
            "status": self.status_code().as_u16(),
            "message": self.message,
        });
        if let Some(field) = &self.field {
            body["fieldName"] = field.clone().into();
        }
        body
    }
}

/// The code and the field of a refusal whose first cause is one for which clients expect its own
/// code. The field is named as the view does: annotations are fields, and sections are not shown.
fn field_error(status: &kube::core::Status) -> Option<(&'static str, &str)> {
    let cause = status.details.as_ref()?.causes.first().filter(|_| status.code == 422)?;
    let code = match cause.reason.as_str() {
        "FieldValueRequired" => "MissingRequired",
        "FieldValueNotSupported" => "InvalidOption",
        "MaxLimitExceeded" => "MaxLimitExceeded",
        _ => return None,
    };
    let annotation = cause.field.strip_prefix("metadata.annotations[field.cattle.io/");
    let path = annotation.or(cause.field.strip_prefix("spec.")).unwrap_or(&cause.field);
    let end = path.find(['.', '[', ']']).unwrap_or(path.len());
    Some((code, &path[..end]))
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                // A reason that is not one word does not come from the Kubernetes API.
                let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
                let reason = match status.reason.as_str() {
                    // The code that the view uses.
                    "MethodNotAllowed" => "MethodNotAllow",
                    reason if !reason.is_empty() && is_word(reason) => reason,
                    _ => "ServerError",
                };
                match field_error(&status) {
                    Some((code, field)) => Self::invalid_field(code, field, &status.message),
                    None => Self::new(status.code, reason, &status.message),
                }
            }
            other => {
                tracing::warn!(error = %other, "request to the Kubernetes API failed");
                Self::new(500, "ServerError", format!("request to the Kubernetes API: {other}"))
            }
        }
    }
}
