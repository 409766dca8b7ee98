//! Reads a whole body, with limits of size, of time, and of the bytes that are buffered for all
//! requests.
//!
//! A body that is too large is read and discarded for a while, so that the client receives the
//! refusal: a connection that is closed with unread bytes is reset, and its response is lost.

use std::time::Duration;

use api_meta::status::Status;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::body::budget::{Budget, Share};
use crate::rejections;

/// The bytes that are discarded after a refusal. A client that sends more may not receive the
/// reason.
const DISCARD_SIZE_MAX: usize = 64 * 1024 * 1024;
/// How long bytes are discarded.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(5);
/// The bytes that are discarded of an unexpected body, such as small objects. Discarding occupies
/// connections of unauthenticated clients.
const UNEXPECTED_SIZE_MAX: usize = 256 * 1024;
/// How long an unexpected body is discarded.
const UNEXPECTED_TIME_MAX: Duration = Duration::from_secs(2);
/// The time for a body without its size. It must arrive within this and [`PACE_TIME`] for each
/// [`PACE_BYTES`].
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// The additional time for each [`PACE_BYTES`] that have arrived: every link has 64 KiB/s.
const PACE_TIME: Duration = Duration::from_secs(1);
/// See [`PACE_TIME`].
const PACE_BYTES: usize = 64 * 1024;
/// The buffered bytes of authenticated users: 40 of the largest bodies. Parsed bodies take several
/// times as much.
const AUTHENTICATED_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The buffered bytes of all others.
const ANONYMOUS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// When a rejected client may retry, in seconds.
pub const RETRY_SECONDS: u32 = 1;

static AUTHENTICATED: Budget = Budget::new(AUTHENTICATED_BYTES_MAX);
static ANONYMOUS: Budget = Budget::new(ANONYMOUS_BYTES_MAX);

/// The sender of a body, which decides about its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// This process: the body is in memory already, so only its size is limited.
    Inside,
    /// A user with valid credentials.
    Authenticated,
    /// Any other client.
    Anonymous,
}

impl Sender {
    fn budget(self) -> Option<&'static Budget> {
        match self {
            Self::Inside => None,
            Self::Authenticated => Some(&AUTHENTICATED),
            Self::Anonymous => Some(&ANONYMOUS),
        }
    }
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The body has more than `size_max` bytes.
    #[error("the body of the request is larger than {size_max} bytes")]
    TooLarge { size_max: usize },
    /// The connection broke.
    #[error("cannot read the body of the request: {detail}")]
    Broken { detail: String },
    #[error(
        "the body of the request did not come in time: {} s, and {} s more for each {} KiB",
        BODY_TIME_MAX.as_secs(),
        PACE_TIME.as_secs(),
        PACE_BYTES / 1024
    )]
    /// The body did not arrive in time.
    TooSlow,
    /// The budget of buffered bytes is exhausted.
    #[error("too many requests with bodies at once; try again in {RETRY_SECONDS} s")]
    Overload,
}

impl ReadError {
    /// The response to the client: 413, 400, 408, or 503 with `Retry-After`.
    pub fn to_status(&self) -> Status {
        match self {
            Self::TooLarge { .. } => Status::too_large(self.to_string()),
            Self::Broken { .. } => Status::bad_request(self.to_string()),
            Self::TooSlow => Status::new(408, "RequestTimeout", self.to_string()),
            Self::Overload => Status::unavailable(self.to_string()).retry_after(RETRY_SECONDS),
        }
    }
}

/// A body with its share of the budget, which is released with the last reference to the bytes.
struct Buffered {
    bytes: BytesMut,
    _share: Share,
}

impl AsRef<[u8]> for Buffered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads `body` to its end, at most `size_max` bytes. Counts rejections in the metrics.
///
/// # Errors
/// The body is larger, the connection breaks, or a limit is reached. The caller responds with
/// [`ReadError::to_status`].
pub async fn read<B>(body: B, size_max: usize, sender: Sender) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let read = read_within(body, size_max, sender.budget()).await;
    match read {
        Err(ReadError::Overload) => rejections::BODIES.count(),
        Err(ReadError::TooSlow) => rejections::SLOW_BODIES.count(),
        _ => {}
    }
    read
}

async fn read_within<B>(
    mut body: B,
    size_max: usize,
    budget: Option<&'static Budget>,
) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut share = budget.map(Budget::share);
    let mut whole = BytesMut::new();
    let begun = Instant::now();
    loop {
        let pace = u32::try_from(whole.len() / PACE_BYTES).unwrap_or(u32::MAX);
        let end = begun + BODY_TIME_MAX + PACE_TIME.saturating_mul(pace);
        let frame = match share {
            None => body.frame().await,
            Some(_) => match tokio::time::timeout_at(end, body.frame()).await {
                Ok(frame) => frame,
                Err(_) => return Err(ReadError::TooSlow),
            },
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| ReadError::Broken { detail: error.to_string() })?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > size_max {
            discard(&mut body, DISCARD_SIZE_MAX, DISCARD_TIME_MAX).await;
            return Err(ReadError::TooLarge { size_max });
        }
        if share.as_mut().is_some_and(|share| !share.grow(data.len())) {
            return Err(ReadError::Overload);
        }
        whole.extend_from_slice(data);
    }
    match share {
        Some(share) if !whole.is_empty() => {
            Ok(Bytes::from_owner(Buffered { bytes: whole, _share: share }))
        }
        _ => Ok(whole.freeze()),
    }
}

/// Discards an unexpected body, within limits, so that the client receives the refusal. Uses no
/// memory for it.
pub async fn refuse<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    discard(&mut body, UNEXPECTED_SIZE_MAX, UNEXPECTED_TIME_MAX).await;
}

/// Discards the rest of `body`, within limits. Uses no memory for it.
async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B, size_max: usize, time_max: Duration) {
    let read = async {
        let mut size = 0;
        while let Some(Ok(frame)) = body.frame().await {
            size += frame.data_ref().map_or(0, Bytes::len);
            if size > size_max {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(time_max, read).await;
}

#[cfg(test)]
mod tests;
