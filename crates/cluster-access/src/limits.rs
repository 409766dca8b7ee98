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
/// HTTP/1.1 connections per cluster. Beyond, requests share HTTP/2 ones, or are refused where the API server offers none.
pub const HTTP1_CONNECTIONS_MAX: usize = 256;

/// An unused connection is closed after this long.
pub const IDLE_MAX: Duration = Duration::from_secs(90);
/// One of HTTP/1.1 earlier, because such a connection cannot tell that it is about to close: API servers close them
/// after 90 s without a request, some load balancers after 60.
pub const EXCLUSIVE_IDLE_MAX: Duration = Duration::from_secs(45);
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
/// Response header lines over HTTP/1.1.
pub const HEADER_LINES_MAX: usize = 128;

/// A response that the server reads itself, of one object: etcd takes 1.5 MiB, and JSON of it is longer.
pub const OBJECT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A page of a list that the server reads itself: 200 nodes of 40 KiB, since controllers ask for so many at a time.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A list that is read for a person, without pages.
pub const LIST_BYTES_FOR_PERSON_MAX: usize = 32 * 1024 * 1024;
/// All pages of a list together: 5,000 nodes of 50 KiB.
pub const LIST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Lists that are counted page by page at once.
pub const LISTS_MAX: usize = 64;
/// One line of a watch: the largest object, and what the event says around it.
pub const WATCH_LINE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Until a response that the server reads itself has begun.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Until it has been read.
pub const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// Until a watch is begun anew; API servers end them after ten minutes at most.
pub const WATCH_TIME_MAX: Duration = Duration::from_secs(900);
/// Bytes of responses that are buffered to be read: for the server and for people, per cluster, and in all.
pub const BUFFERED_PER_CLUSTER_MAX: usize = 16 * 1024 * 1024;
pub const BUFFERED_FOR_PEOPLE_MAX: usize = 64 * 1024 * 1024;
pub const BUFFERED_MAX: usize = 256 * 1024 * 1024;
/// Bytes that a cluster may send at once of what the server reads itself, and what it may send per second after that.
/// A cluster of 5,000 nodes sends 300 MiB when it connects, and 1 MiB per second then.
pub const VOLUME_AT_ONCE: u64 = 512 * 1024 * 1024;
pub const VOLUME_PER_SECOND: u64 = 8 * 1024 * 1024;
/// How long a cluster is not asked that has gone beyond one of these limits; it doubles with each further time,
pub const BACK_OFF_FIRST: Duration = Duration::from_secs(30);
pub const BACK_OFF_MAX: Duration = Duration::from_secs(600);
/// until there was none for so long.
pub const BACK_OFF_FORGET: Duration = Duration::from_secs(3600);

/// The body of a write that is checked before it goes into the cluster, and how long it may take to come. API servers
/// take as much.
pub const CHECKED_WRITE_BYTES_MAX: usize = 3 * 1024 * 1024;
pub const CHECKED_WRITE_TIME_MAX: Duration = Duration::from_secs(30);

/// A CA bundle. The largest seen in the field is some 20 certificates.
pub const CA_MAX_BYTES: usize = 256 * 1024;
