//! Every limit of downstream access, with its unit and its reason.

use std::time::Duration;

/// Time to open a byte stream to the API server, through the tunnel or directly.
pub const DIAL_TIME_MAX: Duration = Duration::from_secs(10);
/// Time of the TLS and HTTP/2 setup on an open stream.
pub const SETUP_TIME_MAX: Duration = Duration::from_secs(10);
/// Time until the response to an upgrade: an `exec` may wait for its kubelet.
pub const UPGRADE_TIME_MAX: Duration = Duration::from_secs(60);
/// Interval at which a direct endpoint that could not be reached is tried again, while requests go
/// through the agent.
pub const DIRECT_PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// How long a request that is not endless may run on after its user lost a role in the cluster. It
/// may not need that role, and was allowed when it began.
pub const GRACE_WITHOUT_ROLE: Duration = Duration::from_secs(10);

/// Concurrent requests per cluster, watches included. Further ones get 429 at once.
pub const REQUESTS_PER_CLUSTER_MAX: usize = 2048;
/// Upgraded streams (`exec`, `attach`, `port-forward`) per cluster. Each has its own connection.
pub const UPGRADES_PER_CLUSTER_MAX: usize = 512;
/// Requests on one HTTP/2 connection. Kubernetes API servers allow 100 by default; further
/// requests would wait inside the connection, where they are not observed.
pub const STREAMS_PER_CONNECTION_MAX: usize = 90;
/// HTTP/1.1 connections per cluster. Further requests share HTTP/2 connections, or are refused if
/// the API server does not offer HTTP/2.
pub const HTTP1_CONNECTIONS_MAX: usize = 256;

/// Time after which an unused HTTP/2 connection is closed.
pub const IDLE_MAX: Duration = Duration::from_secs(90);
/// The same for HTTP/1.1. It is shorter, because HTTP/1.1 does not announce a close: API servers
/// close unused connections after 90 s, some load balancers after 60 s.
pub const EXCLUSIVE_IDLE_MAX: Duration = Duration::from_secs(45);
/// After a user's request, an HTTP/1.1 connection is held ready for the next one for this long, so
/// that a user who reads for a minute does not continue over HTTP/2, whose windows are small over a
/// long way.
pub const READY_TIME: Duration = Duration::from_secs(300);
/// Interval of the task that closes unused connections, and replaces the one that is held ready.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
const _: () = assert!(SWEEP_INTERVAL.as_secs() < EXCLUSIVE_IDLE_MAX.as_secs());
/// Interval of HTTP/2 pings on connections in use, which detect a dead API server behind a live
/// agent.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Time until the reply to a ping; then the connection is closed.
pub const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Unread bytes of one response.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// More than all streams of a connection can leave unread together, so that stalled readers do not
/// stop the others.
pub const CONNECTION_WINDOW_BYTES: u32 = 128 << 20;
const _: () = assert!(
    STREAM_WINDOW_BYTES as usize * STREAMS_PER_CONNECTION_MAX < CONNECTION_WINDOW_BYTES as usize
);
/// Size of the response headers.
pub const HEADERS_MAX_BYTES: u32 = 64 * 1024;
/// Response header lines over HTTP/1.1.
pub const HEADER_LINES_MAX: usize = 128;

/// A response with one object that the server reads itself. etcd stores at most 1.5 MiB per object,
/// and JSON is larger.
pub const OBJECT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A page of a list that the server reads itself: 200 nodes of 40 KiB. Controllers request 200
/// objects per page.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A list that is read for a user, without pages.
pub const LIST_BYTES_FOR_USER_MAX: usize = 32 * 1024 * 1024;
/// All pages of a list together: 150,000 pods of 10 KiB, or the same list read twice at once. Of
/// each page only what is needed stays in memory.
pub const LIST_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// Lists of one cluster whose pages are counted at the same time.
pub const LISTS_MAX: usize = 64;
/// One line of a watch: the largest object and the event around it.
pub const WATCH_LINE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Time until a response that the server reads itself has begun.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Time until such a response has been read.
pub const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// Time after which a watch is restarted. API servers end watches after ten minutes at most.
pub const WATCH_TIME_MAX: Duration = Duration::from_secs(900);
/// Bytes of responses that are buffered for the server itself, per cluster.
pub const BUFFERED_PER_CLUSTER_MAX: usize = 16 * 1024 * 1024;
/// Bytes of responses that are buffered for users, per cluster.
pub const BUFFERED_FOR_USERS_MAX: usize = 64 * 1024 * 1024;
/// Bytes of responses that are buffered in all.
pub const BUFFERED_MAX: usize = 256 * 1024 * 1024;
/// Bytes that a cluster may send in a burst, in responses that the server reads itself. A cluster
/// of 5,000 nodes and 150,000 pods sends 300 MiB and 1 GiB when it connects, the pods again when
/// they are indexed.
pub const VOLUME_AT_ONCE: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes that a cluster may send per second after the burst. A cluster of 5,000 nodes sends 1 MiB
/// per second.
pub const VOLUME_PER_SECOND: u64 = 8 * 1024 * 1024;
/// First suspension of a cluster that has exceeded one of these limits. It doubles with each
/// further one.
pub const BACK_OFF_FIRST: Duration = Duration::from_secs(30);
/// Longest suspension.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(600);
/// Time without an offence after which the suspension starts at [`BACK_OFF_FIRST`] again.
pub const BACK_OFF_FORGET: Duration = Duration::from_secs(3600);

/// The body of a write that is checked before it is sent to the cluster. API servers accept as
/// much.
pub const CHECKED_WRITE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Time to receive the body of such a write.
pub const CHECKED_WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// Size of a CA bundle. The largest known ones have about 20 certificates.
pub const CA_MAX_BYTES: usize = 256 * 1024;
