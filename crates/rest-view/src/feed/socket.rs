//! One WebSocket from its first byte to its last.

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

use super::follower::{self, Follower, Step};
use super::inbox::Missed;
use super::{
    CLIENT_MESSAGE_MAX_BYTES, CLIENT_MESSAGES_MAX, CLOSE_TIME_MAX, FRAME_TIME_MAX, PING_EVERY,
    RIGHTS_LOOK_EVERY,
};
use crate::error::ApiError;

/// Read buffer per socket, allocated at once. Clients have nothing to say.
const READ_BUFFER_BYTES: usize = 1024;
/// Bytes gathered before a write to the connection.
const WRITE_BUFFER_BYTES: usize = 8 * 1024;
/// How often what the API server could not answer is asked again, before the client is sent away.
const RETRIES_MAX: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for the close of a client whose rights ended: within a second, it must be over.
const REVOKED_CLOSE_TIME_MAX: Duration = Duration::from_millis(300);

type Sink<S> = SplitSink<WebSocketStream<S>, Message>;

/// Why a socket ends, as the client is told.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// The client closed it, or is gone.
    Left,
    Stopping,
    Revoked,
    Missed,
    TooSlow,
    TooLong,
    TooMany,
    Failed,
}

impl Ending {
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

/// Serves the socket until it ends, and says why to the client.
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
    let revoked = follower.asked.subscriber.caller.ended.clone();
    let ending = tokio::select! {
        biased;
        () = stop.cancelled() => Ending::Stopping,
        () = revoked.cancelled() => Ending::Revoked,
        ending = discard(&mut stream) => ending,
        ending = tell(&mut sink, &mut follower) => ending,
    };
    tracing::debug!(
        user = follower.asked.subscriber.caller.user_id,
        ?ending,
        "a change feed ended"
    );
    let Some(frame) = ending.close_frame() else { return };
    let farewell = async {
        let _ = sink.send(Message::Close(Some(frame))).await;
        // Reading on to the client's own close: bytes left unread would turn the end into an error
        // for the client.
        while let Some(Ok(_)) = stream.next().await {}
    };
    let time = if ending == Ending::Revoked { REVOKED_CLOSE_TIME_MAX } else { CLOSE_TIME_MAX };
    let _ = timeout(time, farewell).await;
}

/// Reads what the client sends, which means nothing, until it leaves.
async fn discard<S>(stream: &mut SplitStream<WebSocketStream<S>>) -> Ending
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut messages, mut since) = (0, Instant::now());
    loop {
        match stream.next().await {
            Some(Ok(Message::Close(_))) | None => return Ending::Left,
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                return Ending::TooLong;
            }
            Some(Err(_)) => return Ending::Left,
        }
        if since.elapsed() > PING_EVERY {
            (messages, since) = (0, Instant::now());
        }
        messages += 1;
        if messages > CLIENT_MESSAGES_MAX {
            return Ending::TooMany;
        }
    }
}

/// Sends what there is to say, until that is not possible any more.
async fn tell<S>(sink: &mut Sink<S>, follower: &mut Follower) -> Ending
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = interval(RIGHTS_LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Err(ending) = alive(sink, &mut pings, follower.ready()).await {
        return ending;
    }
    loop {
        let next = async {
            tokio::select! {
                biased;
                _ = looks.tick() => Ok(Step::Look),
                next = follower.next() => next.map(|(item, news)| Step::Object(item, news)),
            }
        };
        let step = match alive(sink, &mut pings, next).await {
            Ok(Ok(step)) => step,
            Ok(Err(Missed)) => return Ending::Missed,
            Err(ending) => return ending,
        };
        let sent = match alive(sink, &mut pings, persist(follower, &step)).await {
            Ok(Ok(Some(frame))) => send(sink, frame).await,
            Ok(Ok(None)) => Ok(()),
            Ok(Err(_)) => return Ending::Failed,
            Err(ending) => Err(ending),
        };
        if let Err(ending) = sent {
            return ending;
        }
    }
}

/// Waits for `work`, and meanwhile says that the feed is alive. Pings come first, so that they come in
/// time whatever there is to do.
async fn alive<S, T>(
    sink: &mut Sink<S>,
    pings: &mut Interval,
    work: impl Future<Output = T>,
) -> Result<T, Ending>
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

async fn send<S>(sink: &mut Sink<S>, frame: String) -> Result<(), Ending>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match timeout(FRAME_TIME_MAX, sink.send(Message::text(frame))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Ending::Left),
        Err(_) => Err(Ending::TooSlow),
    }
}

/// Tries again, some times, what the API server could not answer.
async fn persist(follower: &mut Follower, step: &Step) -> Result<Option<String>, ApiError> {
    let mut failures = 0;
    loop {
        match follower.take(step).await {
            Err(error) if failures < RETRIES_MAX => {
                failures += 1;
                tracing::debug!(%error, failures, "the change feed cannot read objects");
            }
            outcome => return outcome,
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
