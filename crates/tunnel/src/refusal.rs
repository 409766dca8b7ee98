//! Why an agent is refused, with a message that its log prints unchanged.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use serde::{Deserialize, Serialize};

/// The machine-readable cause. An unknown one reads as [`RefusalReason::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The request is no tunnel request, or one of an unsupported version.
    BadHello,
    /// The key is not registered. The agent should present its registration token.
    KeyUnknown,
    /// The key belongs to another cluster than the token.
    KeyElsewhere,
    /// Another entry of this server manages the agent's cluster. The agent must not replace its
    /// key, because the other entry's agent uses it.
    AlreadyManaged,
    /// No such token.
    TokenUnknown,
    TokenExpired,
    /// Another agent registered with this token before.
    TokenUsed,
    /// The signature does not match the key.
    ProofFailed,
    /// Too many handshakes at once. Retry.
    Busy,
    /// The server failed. Retry.
    Internal,
    #[serde(other)]
    Other,
}

/// A refusal as it is sent: before the upgrade as an HTTP response, after it in the handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    pub reason: RefusalReason,
    /// What is wrong and what to do about it. Never holds a token.
    pub message: String,
}

impl Refusal {
    /// A refusal with HTTP status `code`; `message` must not hold a token.
    pub fn new(code: u16, reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    /// The refusal 400 [`RefusalReason::BadHello`]. `detail` goes to the agent's log.
    pub fn bad_hello(detail: impl std::fmt::Display) -> Self {
        Self::new(400, RefusalReason::BadHello, format!("not a tunnel request: {detail}"))
    }

    /// The refusal 401 [`RefusalReason::KeyUnknown`].
    pub fn key_unknown() -> Self {
        Self::new(
            401,
            RefusalReason::KeyUnknown,
            "this server does not know the agent's key; the agent must register with a token",
        )
    }

    /// The refusal 403 [`RefusalReason::KeyElsewhere`].
    pub fn key_elsewhere() -> Self {
        Self::new(
            403,
            RefusalReason::KeyElsewhere,
            "the agent's key already belongs to another cluster; delete the Secret \
             \"drover-agent-identity\" in namespace \"cattle-system\" of this cluster and restart \
             the agent, so that it makes a key of its own",
        )
    }

    /// The refusal 409 [`RefusalReason::AlreadyManaged`].
    pub fn already_managed() -> Self {
        Self::new(
            409,
            RefusalReason::AlreadyManaged,
            "another entry of this server already manages this cluster, and its agent goes on; to restore \
             the agent's Deployment as it was, run in this cluster: kubectl -n cattle-system rollout undo \
             deployment/cattle-cluster-agent; to give the other entry a new agent, run: drover cluster \
             import NAME --kubeconfig FILE --adopt; if this cluster is a clone of the other one, run: \
             drover cluster import NAME --kubeconfig FILE --as-new",
        )
    }

    /// The refusal 401 [`RefusalReason::TokenUnknown`].
    pub fn token_unknown() -> Self {
        Self::new(
            401,
            RefusalReason::TokenUnknown,
            "the registration token is not known to this server; apply the cluster's current \
             import manifest again",
        )
    }

    /// The refusal 403 [`RefusalReason::TokenExpired`].
    pub fn token_expired() -> Self {
        Self::new(
            403,
            RefusalReason::TokenExpired,
            "the registration token has expired; get a new import command for this cluster from \
             the server and apply it",
        )
    }

    /// The refusal 403 [`RefusalReason::TokenUsed`].
    pub fn token_used() -> Self {
        Self::new(
            403,
            RefusalReason::TokenUsed,
            "the registration token was already used by another agent; if this is another \
             cluster, import it under its own name; if its agent lost its key, get a new import \
             command for the cluster and apply it",
        )
    }

    /// The refusal 403 [`RefusalReason::ProofFailed`].
    pub fn proof_failed() -> Self {
        Self::new(
            403,
            RefusalReason::ProofFailed,
            "the agent's signature does not fit its key; is something between the agent and the \
             server changing the connection",
        )
    }

    /// The refusal 503 [`RefusalReason::Busy`].
    pub fn busy() -> Self {
        Self::new(503, RefusalReason::Busy, "too many agents are connecting at once; try again")
    }

    /// The refusal 500 [`RefusalReason::Internal`]. `detail` goes to the agent's log: no secrets.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::new(500, RefusalReason::Internal, format!("the server could not decide: {detail}"))
    }

    /// Whether a retry with the same key and token may succeed.
    pub fn is_transient(&self) -> bool {
        self.code >= 500
    }

    /// The HTTP response: a Kubernetes `Status`.
    pub fn to_response(&self) -> Response<Full<Bytes>> {
        let body = serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Response::builder()
            .status(code)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("constant headers make a response")
    }

    /// Reads the body of [`Self::to_response`]. `None` for anything else, such as a load balancer's
    /// page.
    pub fn from_body(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}
