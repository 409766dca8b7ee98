//! The conduct of a cluster: how much it may send in responses that this server reads itself, and
//! the penalty for sending more.
//!
//! A cluster is not trusted. A cluster that floods the server is suspended, without effect on
//! others: the server sends it no requests for a while, its reachability reports why, and each
//! further suspension is longer. The streaming proxy continues, because it buffers nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use backoff::Backoff;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tunnel::ClusterId;

use crate::access::Reachability;
use crate::error::AccessError;
use crate::limits::{
    BACK_OFF_FIRST, BACK_OFF_FORGET, BACK_OFF_MAX, BUFFERED_FOR_USERS_MAX, BUFFERED_MAX,
    BUFFERED_PER_CLUSTER_MAX, LIST_BYTES_MAX, LISTS_MAX, VOLUME_AT_ONCE, VOLUME_PER_SECOND,
};
use crate::reading::ResponseReader;

/// Lengths of consecutive suspensions.
const SUSPENSION: Backoff = Backoff::new(BACK_OFF_FIRST, BACK_OFF_MAX);
/// Bytes of all clusters' responses that are buffered now.
static BUFFERED: AtomicUsize = AtomicUsize::new(0);
/// Responses that were aborted at a limit, and requests that were not sent during a suspension.
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// The number of downstream responses that were aborted at a limit, and of requests that were not
/// sent during a suspension, since the process started.
pub fn rejected() -> u64 {
    REJECTED.load(Ordering::Relaxed)
}

pub(crate) fn count_rejected() {
    REJECTED.fetch_add(1, Ordering::Relaxed);
}

/// See the module. There is one per cluster. It outlives changes of the endpoint, because the
/// cluster's agent controls the endpoint.
pub(crate) struct Conduct {
    cluster: ClusterId,
    state: watch::Sender<Reachability>,
    buffered: AtomicUsize,
    buffered_for_users: AtomicUsize,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    offences: u32,
    last: Option<Offence>,
    /// When all of [`VOLUME_AT_ONCE`] may be sent again.
    volume_full_at: Option<Instant>,
    /// Bytes of lists that are read page by page, by path.
    lists: HashMap<String, u64>,
}

#[derive(Clone)]
struct Offence {
    at: Instant,
    until: Instant,
    reason: String,
}

impl Conduct {
    pub(crate) fn new(cluster: ClusterId, state: watch::Sender<Reachability>) -> Arc<Self> {
        let (buffered, buffered_for_users) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { cluster, state, buffered, buffered_for_users, record: Mutex::default() })
    }

    /// Checks that the cluster is not suspended.
    ///
    /// # Errors
    /// [`AccessError::Misbehaved`] during a suspension.
    pub(crate) fn check(&self) -> Result<(), AccessError> {
        let now = Instant::now();
        let offence = self.record.lock().last.clone().filter(|offence| offence.until > now);
        let Some(Offence { until, reason, .. }) = offence else { return Ok(()) };
        count_rejected();
        let retry_seconds = (until - now).as_secs_f64().ceil() as u64;
        Err(AccessError::Misbehaved { reason, retry_seconds })
    }

    /// Suspends the cluster for a while.
    pub(crate) fn offend(&self, reason: &str) {
        let now = Instant::now();
        let mut record = self.record.lock();
        let last = record.last.as_ref();
        if last.is_some_and(|last| last.until > now) {
            // Concurrent requests are one offence.
            return;
        }
        if last.is_some_and(|last| now - last.at > BACK_OFF_FORGET) {
            record.offences = 0;
        }
        record.offences += 1;
        let wait = SUSPENSION.delay(record.offences);
        record.last = Some(Offence { at: now, until: now + wait, reason: reason.to_owned() });
        drop(record);
        tracing::warn!(
            cluster = %self.cluster,
            reason,
            seconds = wait.as_secs(),
            "a cluster gets no requests for a while"
        );
        self.state.send_replace(Reachability::Unreachable { reason: reason.to_owned() });
    }

    /// Counts bytes that the cluster has sent. False when they exceed its volume.
    pub(crate) fn add_volume(&self, bytes: usize) -> bool {
        let now = Instant::now();
        let time = |bytes: f64| Duration::from_secs_f64(bytes / VOLUME_PER_SECOND as f64);
        let mut record = self.record.lock();
        let full_at = record.volume_full_at.map_or(now, |at| at.max(now)) + time(bytes as f64);
        record.volume_full_at = Some(full_at);
        full_at - now <= time(VOLUME_AT_ONCE as f64)
    }

    /// Counts bytes of a page of a list; the first page resets the count. False when the list is
    /// too long.
    pub(crate) fn add_page(&self, path: &str, is_first: bool, bytes: usize) -> bool {
        let mut record = self.record.lock();
        if record.lists.len() >= LISTS_MAX && !record.lists.contains_key(path) {
            record.lists.clear();
        }
        let so_far = record.lists.entry(path.to_owned()).or_default();
        *so_far = if is_first { 0 } else { *so_far } + bytes as u64;
        *so_far <= LIST_BYTES_MAX
    }

    pub(crate) fn buffer(self: &Arc<Self>, reader: ResponseReader) -> Buffered {
        Buffered { conduct: self.clone(), reader, bytes: 0 }
    }

    fn buffer_of(&self, reader: ResponseReader) -> (&AtomicUsize, usize) {
        match reader {
            ResponseReader::Server => (&self.buffered, BUFFERED_PER_CLUSTER_MAX),
            ResponseReader::User => (&self.buffered_for_users, BUFFERED_FOR_USERS_MAX),
        }
    }
}

/// The bytes that are buffered for one response; dropping it releases them.
pub(crate) struct Buffered {
    conduct: Arc<Conduct>,
    reader: ResponseReader,
    bytes: usize,
}

impl Buffered {
    /// Reserves more bytes. False at a limit.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        let (buffered, bytes_max) = self.conduct.buffer_of(self.reader);
        let own = buffered.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all = BUFFERED.fetch_add(bytes, Ordering::Relaxed) + bytes;
        own <= bytes_max && all <= BUFFERED_MAX
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        self.conduct.buffer_of(self.reader).0.fetch_sub(self.bytes, Ordering::Relaxed);
        BUFFERED.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
