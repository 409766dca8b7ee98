//! Calls to etcd: the choice of the member, time limits, and retries.
//!
//! There is one connection per member, opened at its first use and again after a failure. A call is
//! sent to the member that responded last; a failed call moves all callers to the next member. A
//! read is retried after any failure that another member may not have. A write is retried only when
//! it certainly did not happen: when no connection was made, or when the member refused it because
//! it has no leader. Any other end without a response leaves its outcome unknown.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::wire::{self, HasHeader};
use super::{EtcdConfig, failed};
use crate::{Revision, StorageError};

/// Longest wait for a connection, the TLS handshake included.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Longest wait for one member's response to a read.
const ATTEMPT_WAIT_MAX: Duration = Duration::from_secs(4);
/// Longest wait for a call, all attempts included. An election takes one or two seconds; etcd
/// itself aborts a write after 7 s.
const CALL_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause before the next attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// A connection with active calls is probed when it received nothing for this time. etcd closes
/// connections that are probed more often than every 5 s.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(6);
/// Longest wait for the reply to such a probe.
const KEEP_ALIVE_WAIT_MAX: Duration = Duration::from_secs(3);
/// Size of one response. Go's gRPC sends no more.
const RESPONSE_BYTES_MAX: usize = i32::MAX as usize;
/// Flow-control windows of one call, and of a connection.
const WINDOW_BYTES: (u32, u32) = (2 * 1024 * 1024, 16 * 1024 * 1024);

struct EtcdMember {
    name: String,
    channel: Channel,
}

pub(super) struct Client {
    members: Vec<EtcdMember>,
    /// Index into `members` of the member in use.
    current: AtomicUsize,
    /// The newest revision of any response.
    seen: watch::Sender<Revision>,
    closed: watch::Sender<bool>,
}

/// Why one attempt got no response.
pub(super) enum AttemptFailure {
    /// Nothing was sent.
    NotSent(String),
    /// etcd refused the call, or the connection failed.
    Refused(Status),
    TimedOut(Duration),
}

impl std::fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotSent(reason) => f.write_str(reason),
            Self::Refused(status) => f.write_str(&describe(status)),
            Self::TimedOut(after) => write!(f, "no response within {after:?}"),
        }
    }
}

impl AttemptFailure {
    fn of(status: Status) -> Self {
        match connect_error(&status) {
            Some(reason) => Self::NotSent(reason),
            None => Self::Refused(status),
        }
    }

    /// Whether the request was certainly not executed.
    fn is_not_executed(&self) -> bool {
        match self {
            Self::NotSent(_) => true,
            // Refused before anything is proposed: by a member without the required leader, and by
            // one whose applied log is too far behind.
            Self::Refused(status) => {
                matches!(
                    status.message(),
                    "etcdserver: no leader" | "etcdserver: too many requests"
                )
            }
            Self::TimedOut(_) => false,
        }
    }

    /// Whether another member, or the same one later, may respond.
    fn is_transient(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::TimedOut(_) => true,
            Self::Refused(status) => {
                self.is_not_executed()
                    || matches!(
                        status.code(),
                        Code::Unavailable
                            | Code::DeadlineExceeded
                            | Code::Cancelled
                            | Code::Unknown
                            | Code::Internal
                            | Code::Aborted
                    )
            }
        }
    }
}

/// The reason when the status is about a connection that was not made.
fn connect_error(status: &Status) -> Option<String> {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return Some(chain(error));
        }
        source = error.source();
    }
    None
}

/// An error with its causes, without repeats.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

fn describe(status: &Status) -> String {
    match status.source() {
        Some(source) => chain(source),
        None => status.message().to_owned(),
    }
}

impl Client {
    /// A client that has no connection yet.
    pub(super) fn new(config: &EtcdConfig) -> Result<Self, StorageError> {
        let tls = match &config.tls {
            None => None,
            Some(tls) => {
                let ca = Certificate::from_pem(&tls.ca_pem);
                let mut client =
                    ClientTlsConfig::new().ca_certificate(ca).timeout(CONNECT_WAIT_MAX);
                if let Some((certificate, key)) = &tls.client_pem {
                    client = client.identity(Identity::from_pem(certificate, key));
                }
                Some(client)
            }
        };
        let members: Result<Vec<_>, _> =
            config.endpoints.iter().map(|name| member(name, tls.clone())).collect();
        let members = members?;
        if members.is_empty() {
            return Err(failed("no etcd endpoint is configured"));
        }
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
            seen: watch::Sender::new(0),
            closed: watch::Sender::new(false),
        })
    }

    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }

    pub(super) fn watch_closed(&self) -> watch::Receiver<bool> {
        self.closed.subscribe()
    }

    /// The newest revision that was seen through this client.
    pub(super) fn watch_seen_revision(&self) -> watch::Receiver<Revision> {
        self.seen.subscribe()
    }

    pub(super) fn record_seen(&self, revision: Revision) {
        self.seen.send_if_modified(|seen| {
            let newer = revision > *seen;
            *seen = revision.max(*seen);
            newer
        });
    }

    /// The names of all members.
    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// The member in use.
    pub(super) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// Switches to the next member, unless another caller has done so already.
    pub(super) fn leave(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        let moved =
            self.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() && next != member {
            let (from, to) = (&self.members[member].name, &self.members[next].name);
            tracing::info!(from, to, "switched to another etcd member");
        }
    }

    /// A call that may be repeated.
    pub(super) async fn read<M, A>(&self, path: &'static str, message: M) -> Result<A, StorageError>
    where
        M: Message + Clone + 'static,
        A: HasHeader,
    {
        let until = Instant::now() + CALL_WAIT_MAX;
        loop {
            self.open()?;
            let member = self.current();
            let attempt = self.attempt(member, path, message.clone(), ATTEMPT_WAIT_MAX);
            let attempt = timeout_at(until, attempt).await;
            let error = match attempt {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => error,
                Err(_) => AttemptFailure::TimedOut(CALL_WAIT_MAX),
            };
            if !error.is_transient() {
                return Err(self.to_storage_error(&error));
            }
            self.leave(member);
            if Instant::now() + RETRY_PAUSE >= until {
                return Err(failed(format!("etcd did not respond: {error}")));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// A call that must not happen twice.
    pub(super) async fn write<M, A>(
        &self,
        path: &'static str,
        message: M,
    ) -> Result<A, StorageError>
    where
        M: Message + Clone + 'static,
        A: HasHeader,
    {
        let until = Instant::now() + CALL_WAIT_MAX;
        loop {
            self.open()?;
            let member = self.current();
            let wait_max = until.saturating_duration_since(Instant::now());
            let error = match self.attempt(member, path, message.clone(), wait_max).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if !error.is_transient() {
                return Err(self.to_storage_error(&error));
            }
            self.leave(member);
            if !error.is_not_executed() {
                return Err(StorageError::Unknown { reason: format!("etcd: {error}") });
            }
            if Instant::now() + RETRY_PAUSE >= until {
                return Err(failed(format!("etcd accepted no writes: {error}")));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Opens a stream of watch requests and responses at one member.
    pub(super) async fn watch(
        &self,
        member: usize,
        requests: impl Stream<Item = wire::WatchRequest> + Send + 'static,
    ) -> Result<Streaming<wire::WatchResponse>, AttemptFailure> {
        let call = async {
            let mut grpc = self.grpc(member);
            grpc.ready().await.map_err(|error| AttemptFailure::NotSent(chain(&error)))?;
            let codec = ProstCodec::<wire::WatchRequest, wire::WatchResponse>::default();
            let path = PathAndQuery::from_static(wire::WATCH);
            grpc.streaming(require_leader(requests), path, codec).await.map_err(AttemptFailure::of)
        };
        let response = timeout(ATTEMPT_WAIT_MAX, call).await;
        Ok(response.map_err(|_| AttemptFailure::TimedOut(ATTEMPT_WAIT_MAX))??.into_inner())
    }

    /// One call to one member.
    pub(super) async fn attempt<M, A>(
        &self,
        member: usize,
        path: &'static str,
        message: M,
        wait_max: Duration,
    ) -> Result<A, AttemptFailure>
    where
        M: Message + 'static,
        A: HasHeader,
    {
        let call = async {
            let mut grpc = self.grpc(member);
            grpc.ready().await.map_err(|error| AttemptFailure::NotSent(chain(&error)))?;
            let codec = ProstCodec::<M, A>::default();
            let path = PathAndQuery::from_static(path);
            grpc.unary(require_leader(message), path, codec).await.map_err(AttemptFailure::of)
        };
        let response = timeout(wait_max, call).await;
        let response: A = response.map_err(|_| AttemptFailure::TimedOut(wait_max))??.into_inner();
        if let Some(header) = response.header() {
            self.record_seen(header.revision as Revision);
        }
        Ok(response)
    }

    fn grpc(&self, member: usize) -> Grpc<Channel> {
        let channel = self.members[member].channel.clone();
        Grpc::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX)
    }

    fn open(&self) -> Result<(), StorageError> {
        if *self.closed.borrow() { Err(StorageError::Closed) } else { Ok(()) }
    }

    /// Maps the final error of etcd.
    fn to_storage_error(&self, error: &AttemptFailure) -> StorageError {
        let AttemptFailure::Refused(status) = error else {
            return failed(format!("etcd: {error}"));
        };
        let newest = *self.seen.borrow();
        match (status.code(), status.message()) {
            // The callers fill in the revisions.
            (_, "etcdserver: mvcc: required revision has been compacted") => {
                StorageError::Compacted { requested: 0, oldest: 0 }
            }
            (_, "etcdserver: mvcc: required revision is a future revision") => {
                StorageError::Future { requested: 0, current: newest }
            }
            (_, "etcdserver: request is too large") => StorageError::TooLarge { size: 0 },
            (Code::ResourceExhausted, text) if text.contains("message larger than max") => {
                StorageError::TooLarge { size: 0 }
            }
            (_, text @ "etcdserver: mvcc: database space exceeded") => StorageError::Full {
                reason: format!(
                    "{text}; compact and defragment etcd, or raise --quota-backend-bytes, then \
                     disarm its alarm (etcdctl alarm disarm)"
                ),
            },
            _ => failed(format!("etcd refused the request: {}", describe(status))),
        }
    }
}

/// With this header, etcd ends a call when its member has lost the leader.
fn require_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}

fn member(name: &str, tls: Option<ClientTlsConfig>) -> Result<EtcdMember, StorageError> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let unusable = |error: tonic::transport::Error| {
        failed(format!("the etcd endpoint \"{name}\" cannot be used: {}", chain(&error)))
    };
    let mut endpoint = Endpoint::from_shared(Bytes::from(format!("{scheme}://{name}")))
        .map_err(unusable)?
        .connect_timeout(CONNECT_WAIT_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_WAIT_MAX)
        .initial_stream_window_size(WINDOW_BYTES.0)
        .initial_connection_window_size(WINDOW_BYTES.1);
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).map_err(unusable)?;
    }
    Ok(EtcdMember { name: name.to_owned(), channel: endpoint.connect_lazy() })
}
