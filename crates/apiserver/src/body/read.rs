//! A whole body, within limits of size, of time, and of what is buffered for all callers together.
//!
//! What is too large is read on for a while, so that the client hears the refusal: a connection that is closed on bytes
//! nobody read is reset, and the answer on its way is lost with it.

use std::time::Duration;

use api_meta::status::Status;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::body::budget::{Budget, Share};
use crate::rejections;

/// What is read and thrown away after a refusal. Who sends more may miss the reason.
const DISCARDED_SIZE_MAX: usize = 64 * 1024 * 1024;
/// How long that may take.
const DISCARDED_TIME_MAX: Duration = Duration::from_secs(5);
/// What is thrown away of a body that nobody asked for: forms and small objects. It costs strangers' connections time.
const UNASKED_SIZE_MAX: usize = 256 * 1024;
const UNASKED_TIME_MAX: Duration = Duration::from_secs(2);
/// A body must be there after this long,
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// and so much later for each [`PACE_BYTES`] that have come: 64 KiB/s are less than any link has.
const PACE_TIME: Duration = Duration::from_secs(1);
const PACE_BYTES: usize = 64 * 1024;
/// Bodies of callers who are authenticated, buffered at once: 40 of the largest. Parsed they take some times as much.
const AUTHENTICATED_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bodies of everybody else.
const ANONYMOUS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// When a client may try again that was turned away, in seconds.
pub const RETRY_SECONDS: u32 = 1;

static AUTHENTICATED: Budget = Budget::new(AUTHENTICATED_BYTES_MAX);
static ANONYMOUS: Budget = Budget::new(ANONYMOUS_BYTES_MAX);

/// Who sends a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// This process: the body is in memory already, so there is only a limit of size.
    Inside,
    Authenticated,
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

/// Why there is no whole body.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the body of the request is larger than {size_max} bytes")]
    TooLarge { size_max: usize },
    #[error("cannot read the body of the request: {detail}")]
    Broken { detail: String },
    #[error(
        "the body of the request did not come in time: {} s, and {} s more for each {} KiB",
        BODY_TIME_MAX.as_secs(),
        PACE_TIME.as_secs(),
        PACE_BYTES / 1024
    )]
    TooSlow,
    #[error("too many requests with bodies at once; try again in {RETRY_SECONDS} s")]
    Overload,
}

impl ReadError {
    /// As the client is told.
    pub fn to_status(&self) -> Status {
        match self {
            Self::TooLarge { .. } => Status::too_large(self.to_string()),
            Self::Broken { .. } => Status::bad_request(self.to_string()),
            Self::TooSlow => Status::new(408, "RequestTimeout", self.to_string()),
            Self::Overload => Status::unavailable(self.to_string()).retry_after(RETRY_SECONDS),
        }
    }
}

/// A body, and its part of the budget: given back when nobody holds the bytes any more.
struct Buffered {
    bytes: BytesMut,
    _share: Share,
}

impl AsRef<[u8]> for Buffered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads `body` to its end, at most `size_max` bytes.
///
/// # Errors
/// It is larger, the connection breaks, or one of the limits is reached.
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
            discard(&mut body, DISCARDED_SIZE_MAX, DISCARDED_TIME_MAX).await;
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

/// Throws away a body that nobody asked for, within limits, so that the client hears why. Keeps nothing in memory.
pub async fn refuse<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    discard(&mut body, UNASKED_SIZE_MAX, UNASKED_TIME_MAX).await;
}

/// Throws away the rest of `body`, within limits. Keeps nothing in memory.
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
