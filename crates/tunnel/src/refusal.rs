//! Why an agent is not let in, in words that its log can print as they are.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use serde::{Deserialize, Serialize};

/// The machine-readable cause. An unknown one reads as [`RefusalReason::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The request is not a tunnel request of a version we speak.
    BadHello,
    /// No such key. The agent should show its registration token.
    KeyUnknown,
    /// The key belongs to another cluster than the token.
    KeyElsewhere,
    /// Another entry of this server manages the agent's cluster. The agent must leave its key as it is: the
    /// other entry's agent uses it.
    AlreadyManaged,
    TokenUnknown,
    TokenExpired,
    /// Another agent registered with this token before.
    TokenUsed,
    /// The signature does not fit the key.
    ProofFailed,
    /// Too much at once; come back.
    Busy,
    /// The server failed; come back.
    Internal,
    #[serde(other)]
    Other,
}

/// A refusal as it is sent: before the upgrade as an HTTP answer, after it in the handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    pub reason: RefusalReason,
    /// Says what is wrong and what to do about it. Never holds a token.
    pub message: String,
}

impl Refusal {
    pub fn new(code: u16, reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    pub fn bad_hello(detail: impl std::fmt::Display) -> Self {
        Self::new(400, RefusalReason::BadHello, format!("not a tunnel request: {detail}"))
    }

    pub fn key_unknown() -> Self {
        Self::new(
            401,
            RefusalReason::KeyUnknown,
            "this server does not know the agent's key; the agent must register with a token",
        )
    }

    pub fn key_elsewhere() -> Self {
        Self::new(
            403,
            RefusalReason::KeyElsewhere,
            "the agent's key already belongs to another cluster; delete the Secret \
             \"drover-agent-identity\" in namespace \"cattle-system\" of this cluster and restart \
             the agent, so that it makes a key of its own",
        )
    }

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

    pub fn token_unknown() -> Self {
        Self::new(
            401,
            RefusalReason::TokenUnknown,
            "the registration token is not known to this server; apply the cluster's current \
             import manifest again",
        )
    }

    pub fn token_expired() -> Self {
        Self::new(
            403,
            RefusalReason::TokenExpired,
            "the registration token has expired; get a new import command for this cluster from \
             the server and apply it",
        )
    }

    pub fn token_used() -> Self {
        Self::new(
            403,
            RefusalReason::TokenUsed,
            "the registration token was already used by another agent; if this is another \
             cluster, import it under its own name; if its agent lost its key, get a new import \
             command for the cluster and apply it",
        )
    }

    pub fn proof_failed() -> Self {
        Self::new(
            403,
            RefusalReason::ProofFailed,
            "the agent's signature does not fit its key; is something between the agent and the \
             server changing the connection",
        )
    }

    pub fn busy() -> Self {
        Self::new(503, RefusalReason::Busy, "too many agents are connecting at once; try again")
    }

    /// `detail` goes to the agent's log: no secrets.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::new(500, RefusalReason::Internal, format!("the server could not decide: {detail}"))
    }

    /// Trying again with the same key and token may help.
    pub fn is_transient(&self) -> bool {
        self.code >= 500
    }

    /// As a Kubernetes `Status`.
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

    /// Reads [`Self::to_response`] back. Anything else, such as a load balancer's page, gives none.
    pub fn from_body(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}
