//! Every limit of downstream access, with its unit and its reason.

use std::time::Duration;

/// Until a byte stream to the API server is open, through the tunnel or directly.
pub const DIAL_TIME_MAX: Duration = Duration::from_secs(10);
/// TLS and HTTP/2 set-up on an open stream.
pub const SETUP_TIME_MAX: Duration = Duration::from_secs(10);
/// Until an upgrade is answered: an `exec` may wait for its kubelet.
pub const UPGRADE_TIME_MAX: Duration = Duration::from_secs(60);

/// Requests under way per cluster, watches included. Above, callers get 429 at once.
pub const REQUESTS_PER_CLUSTER_MAX: usize = 2048;
/// Upgraded streams (`exec`, `attach`, `port-forward`) per cluster. Each has its own connection.
pub const UPGRADES_PER_CLUSTER_MAX: usize = 512;
/// Requests on one HTTP/2 connection. Kubernetes API servers allow 100 by default; beyond, requests
/// would wait inside the connection where nobody sees them.
pub const STREAMS_PER_CONNECTION_MAX: usize = 90;
/// HTTP/1.1 connections per cluster whose API server does not offer HTTP/2.
pub const HTTP1_CONNECTIONS_MAX: usize = 64;

/// An unused connection is closed after this long.
pub const IDLE_MAX: Duration = Duration::from_secs(90);
/// HTTP/2 pings on connections in use: notices a downstream that is dead behind a living agent.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);
pub const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Unread bytes of one response.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// More than all streams of a connection can leave unread together, so that readers that stand
/// still do not stop the others.
pub const CONNECTION_WINDOW_BYTES: u32 = 128 << 20;
const _: () = assert!(
    STREAM_WINDOW_BYTES as usize * STREAMS_PER_CONNECTION_MAX < CONNECTION_WINDOW_BYTES as usize
);
/// Response headers.
pub const HEADERS_MAX_BYTES: u32 = 64 * 1024;

/// A CA bundle. The largest seen in the field is some 20 certificates.
pub const CA_MAX_BYTES: usize = 256 * 1024;
