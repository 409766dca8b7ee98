//! One WebSocket, from the handshake to the close.

use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::follower::{self, Follower, FollowerStep};
use super::inbox::Missed;
use super::{
    CLIENT_MESSAGE_MAX_BYTES, CLIENT_MESSAGES_MAX, CLOSE_TIME_MAX, FRAME_TIME_MAX, PING_EVERY,
    RIGHTS_CHECK_EVERY,
};
use crate::error::ApiError;

/// Read buffer per socket, allocated at once. Clients send almost nothing.
const READ_BUFFER_BYTES: usize = 1024;
/// Bytes gathered before a write to the connection.
const WRITE_BUFFER_BYTES: usize = 8 * 1024;
/// How often a failed request to the API server is retried before the socket is closed.
const RETRIES_MAX: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for the close of a client whose rights ended: everything must be over within a
/// second.
const REVOKED_CLOSE_TIME_MAX: Duration = Duration::from_millis(300);

type Sink<S> = SplitSink<WebSocketStream<S>, Message>;

/// Why a socket is closed, as the client is informed.
#[derive(Debug, PartialEq, Eq)]
enum CloseCause {
    /// The client closed the connection or disappeared.
    Left,
    Stopping,
    Revoked,
    Missed,
    TooSlow,
    TooLong,
    TooMany,
    Failed,
}

impl CloseCause {
    fn close_frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Left => return None,
            Self::Stopping => (CloseCode::Away, "the server is stopping; connect again"),
            Self::Revoked => (CloseCode::Policy, "the login no longer holds; log in again"),
            Self::Missed => (CloseCode::Again, "changes may have been missed; connect again"),
            Self::TooSlow => (CloseCode::Again, "the client reads too slowly; connect again"),
            Self::TooLong => (CloseCode::Size, "the client's message is too long"),
            Self::TooMany => (CloseCode::Policy, "the client sends too many messages"),
            Self::Failed => (CloseCode::Again, "objects cannot be read now; connect again later"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

/// Serves the socket until it ends, and sends the reason to the client.
pub(super) async fn run<S>(io: S, mut follower: Follower, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_message_size(Some(CLIENT_MESSAGE_MAX_BYTES))
        .max_frame_size(Some(CLIENT_MESSAGE_MAX_BYTES));
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut sink, mut stream) = socket.split();
    let revoked = follower.request.subscriber.caller.ended.clone();
    let cause = tokio::select! {
        biased;
        () = stop.cancelled() => CloseCause::Stopping,
        () = revoked.cancelled() => CloseCause::Revoked,
        cause = discard(&mut stream) => cause,
        cause = send_frames(&mut sink, &mut follower) => cause,
    };
    tracing::debug!(
        user = follower.request.subscriber.caller.user_id,
        ?cause,
        "a change feed ended"
    );
    let Some(frame) = cause.close_frame() else { return };
    let farewell = async {
        let _ = sink.send(Message::Close(Some(frame))).await;
        // Read until the client closes: unread bytes would make the close an error for the client.
        while let Some(Ok(_)) = stream.next().await {}
    };
    let time = if cause == CloseCause::Revoked { REVOKED_CLOSE_TIME_MAX } else { CLOSE_TIME_MAX };
    let _ = timeout(time, farewell).await;
}

/// Reads and ignores what the client sends, until it leaves.
async fn discard<S>(stream: &mut SplitStream<WebSocketStream<S>>) -> CloseCause
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut messages, mut since) = (0, Instant::now());
    loop {
        match stream.next().await {
            Some(Ok(Message::Close(_))) | None => return CloseCause::Left,
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                return CloseCause::TooLong;
            }
            Some(Err(_)) => return CloseCause::Left,
        }
        if since.elapsed() > PING_EVERY {
            (messages, since) = (0, Instant::now());
        }
        messages += 1;
        if messages > CLIENT_MESSAGES_MAX {
            return CloseCause::TooMany;
        }
    }
}

/// Sends frames until that is no longer possible.
async fn send_frames<S>(sink: &mut Sink<S>, follower: &mut Follower) -> CloseCause
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut resyncs = interval(RIGHTS_CHECK_EVERY);
    resyncs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Err(cause) = with_pings(sink, &mut pings, follower.ready()).await {
        return cause;
    }
    loop {
        let next = async {
            tokio::select! {
                biased;
                _ = resyncs.tick() => Ok(FollowerStep::Resync),
                next = follower.next() => next.map(|(item, change)| FollowerStep::Object(item, change)),
            }
        };
        let step = match with_pings(sink, &mut pings, next).await {
            Ok(Ok(step)) => step,
            Ok(Err(Missed)) => return CloseCause::Missed,
            Err(cause) => return cause,
        };
        let sent = match with_pings(sink, &mut pings, retry_step(follower, &step)).await {
            Ok(Ok(Some(frame))) => send(sink, frame).await,
            Ok(Ok(None)) => Ok(()),
            Ok(Err(_)) => return CloseCause::Failed,
            Err(cause) => Err(cause),
        };
        if let Err(cause) = sent {
            return cause;
        }
    }
}

/// Waits for `work` and sends pings meanwhile. Pings have priority, so that they are on time.
async fn with_pings<S, T>(
    sink: &mut Sink<S>,
    pings: &mut Interval,
    work: impl Future<Output = T>,
) -> Result<T, CloseCause>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            _ = pings.tick() => send(sink, follower::ping()).await?,
            done = &mut work => return Ok(done),
        }
    }
}

async fn send<S>(sink: &mut Sink<S>, frame: String) -> Result<(), CloseCause>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match timeout(FRAME_TIME_MAX, sink.send(Message::text(frame))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(CloseCause::Left),
        Err(_) => Err(CloseCause::TooSlow),
    }
}

/// Performs the step, with some retries when the API server fails.
async fn retry_step(
    follower: &mut Follower,
    step: &FollowerStep,
) -> Result<Option<String>, ApiError> {
    let mut failures = 0;
    loop {
        match follower.perform(step).await {
            Err(error) if failures < RETRIES_MAX => {
                failures += 1;
                tracing::debug!(%error, failures, "the change feed cannot read objects");
            }
            outcome => return outcome,
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
