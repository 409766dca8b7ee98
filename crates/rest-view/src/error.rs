//! Errors in the wire form of the view: `{"type":"error","code":…,"status":…,"message":…}`.

use http::StatusCode;
use serde_json::{Value, json};

/// An error as the caller sees it.
///
/// Kubernetes errors pass through with their own code and reason; everything unexpected is
/// `ServerError` 500.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({status}): {message}")]
pub struct ApiError {
    pub status: u16,
    /// `NotFound`, `MissingRequired`, …; clients switch on it.
    pub code: String,
    pub message: String,
    /// The field at fault, where there is one.
    pub field: Option<String>,
    /// When to try again, in seconds: the header `Retry-After`.
    pub retry_after: Option<u64>,
    /// Written in the form of authentication failures.
    unauthenticated: bool,
}

impl ApiError {
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
    pub fn field(mut self, name: &str) -> Self {
        self.field = Some(name.to_owned());
        self
    }
    /// Tells the client when to try again.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
    /// No credential, or one that does not hold. Has a body of its own form, as clients expect.
    pub fn unauthenticated() -> Self {
        let mut error = Self::new(401, "Unauthorized", "Unauthorized 401: must authenticate");
        error.unauthenticated = true;
        error
    }
    /// Login refused.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "Unauthorized", message)
    }
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(403, "PermissionDenied", message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "NotFound", message)
    }
    /// The id cannot be, or is not, that of an object.
    pub fn no_such_id() -> Self {
        Self::not_found("failed to find resource by id")
    }
    pub fn action_not_available(action: &str) -> Self {
        Self::new(404, "ActionNotAvailable", format!("action \"{action}\" is not available now"))
    }
    /// The code has no "ed": clients compare it.
    pub fn method_not_allowed(method: &str) -> Self {
        let text = format!("method {method} is not allowed on this resource");
        Self::new(405, "MethodNotAllow", text)
    }
    pub fn invalid_action(action: &str) -> Self {
        Self::new(422, "InvalidAction", format!("invalid action \"{action}\""))
    }
    pub fn invalid_body(message: impl Into<String>) -> Self {
        Self::new(422, "InvalidBodyContent", message)
    }
    /// `code` is one of the field errors: `MissingRequired`, `InvalidFormat`, `InvalidOption`, ….
    pub fn invalid_field(code: &str, field: &str, message: impl Into<String>) -> Self {
        Self::new(422, code, message).field(field)
    }
    /// The cluster that the request is about does not answer.
    pub fn cluster_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ClusterUnavailable", message)
    }
    pub fn too_large(limit: usize) -> Self {
        let text = format!("request body is larger than {limit} bytes");
        Self::new(413, "RequestEntityTooLarge", text)
    }
    /// This view was put together without a change feed.
    pub(crate) fn no_feed() -> Self {
        let text = "there is no change feed here; list again to see changes";
        Self::new(501, "NotImplemented", text)
    }
    pub fn server_error(message: impl std::fmt::Display) -> Self {
        Self::new(500, "ServerError", message.to_string())
    }
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }
    pub fn is_forbidden(&self) -> bool {
        self.status == 403
    }
    pub fn is_cluster_unavailable(&self) -> bool {
        self.status == 503 && self.code == "ClusterUnavailable"
    }
    pub fn is_conflict(&self) -> bool {
        self.status == 409 && self.code == "Conflict"
    }

    /// Never an invalid status: one outside 400–599 reads as 500.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The body.
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

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                // Anything but a word was no answer of the Kubernetes API.
                let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
                let reason = match status.reason.as_str() {
                    // As everywhere in the view.
                    "MethodNotAllowed" => "MethodNotAllow",
                    reason if !reason.is_empty() && is_word(reason) => reason,
                    _ => "ServerError",
                };
                Self::new(status.code, reason, status.message.clone())
            }
            other => {
                tracing::warn!(error = %other, "request to the Kubernetes API failed");
                Self::new(500, "ServerError", format!("request to the Kubernetes API: {other}"))
            }
        }
    }
}
