//! Why a downstream cluster could not be used, and the `Status` that a Kubernetes client gets.

use api_meta::status::Status;

/// Why a request got no response from the cluster. The texts are sent to callers, so they hold no
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No endpoint is known: the cluster does not exist, or its agent has not reported yet.
    #[error("cluster \"{cluster}\" has no known API endpoint")]
    Unknown { cluster: String },
    /// Wait for it with [`crate::ClusterAccess::watch_reachability`] or the tunnel's own watch.
    #[error("cluster agent is not connected")]
    NotConnected,
    #[error("the cluster's API server cannot be reached: {detail}")]
    Unreachable { detail: String },
    #[error("no connection to the cluster's API server could be set up: {detail}")]
    Setup { detail: String },
    #[error("the cluster's API server did not respond in time")]
    TimedOut,
    #[error("too many requests to this cluster are in progress")]
    Saturated,
    /// The cluster exceeded a limit of what the server reads from it, and gets no requests for a
    /// while.
    #[error("{reason}; the server sends requests to the cluster again in {retry_seconds} s")]
    Misbehaved { reason: String, retry_seconds: u64 },
    /// The connection failed between request and response. The request may have taken effect.
    #[error("the connection to the cluster's API server was lost: {detail}")]
    Lost { detail: String },
}

impl AccessError {
    /// The `Status` that the client gets in place of a response of the cluster, with what to do
    /// about it.
    pub fn to_status(&self) -> Status {
        let bad_gateway = |message: String| Status::new(502, "BadGateway", message);
        match self {
            Self::Unknown { .. } => Status::unavailable(format!(
                "{self}; wait until its agent has connected, or import it again"
            ))
            .retry_after(5),
            Self::NotConnected => Status::unavailable(format!(
                "{self}; check that the deployment \"cattle-cluster-agent\" in namespace \
                 \"cattle-system\" of the cluster runs and can reach this server"
            ))
            .retry_after(5),
            Self::Saturated => Status::too_many_requests(self.to_string(), 1),
            Self::Misbehaved { retry_seconds, .. } => Status::unavailable(self.to_string())
                .retry_after(u32::try_from(*retry_seconds).unwrap_or(u32::MAX)),
            Self::TimedOut => Status::timeout(self.to_string()),
            Self::Unreachable { .. } | Self::Setup { .. } | Self::Lost { .. } => {
                bad_gateway(self.to_string())
            }
        }
    }
}
