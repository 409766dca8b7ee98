//! One WebSocket, from the handshake to the close.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use rest_view::sockets::SocketIo;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::messages::{SubscribeMessage, SubscriptionKey, ping};
use super::{
    CLIENT_MESSAGE_MAX_BYTES, CLOSE_TIME_MAX, FRAME_TIME_MAX, FRAMES_WAITING_MAX, PING_EVERY,
    REVOKED_CLOSE_TIME_MAX, SUBSCRIPTIONS_MAX, Session, subscription,
};

/// Read buffer per socket, allocated at once.
const READ_BUFFER_BYTES: usize = 1024;

/// Why a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseCause {
    /// The client closed the connection or disappeared.
    Left,
    Stopping,
    Revoked,
    TooSlow,
    TooLong,
}

impl CloseCause {
    fn close_frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Left => return None,
            Self::Stopping => (CloseCode::Away, "the server is stopping; connect again"),
            Self::Revoked => (CloseCode::Policy, "the login no longer holds; log in again"),
            Self::TooSlow => (CloseCode::Again, "the client reads too slowly; connect again"),
            Self::TooLong => (CloseCode::Size, "the client's message is too long"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

/// The subscriptions of a socket; each ends when its handle is dropped.
struct OpenSubscriptions {
    session: Arc<Session>,
    frames: mpsc::Sender<String>,
    open: HashMap<SubscriptionKey, AbortOnDropHandle<()>>,
}

/// Serves the socket until it ends, and sends the reason to the client.
pub async fn run(io: SocketIo, session: Arc<Session>, stop: CancellationToken) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(CLIENT_MESSAGE_MAX_BYTES))
        .max_frame_size(Some(CLIENT_MESSAGE_MAX_BYTES));
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (mut sink, mut stream) = socket.split();
    let (frames, waiting) = mpsc::channel(FRAMES_WAITING_MAX);
    let revoked = session.subscriber.caller.ended.clone();
    let subscriptions =
        OpenSubscriptions { session: session.clone(), frames, open: HashMap::new() };
    let cause = tokio::select! {
        biased;
        () = stop.cancelled() => CloseCause::Stopping,
        () = revoked.cancelled() => CloseCause::Revoked,
        cause = read(&mut stream, subscriptions) => cause,
        cause = write(&mut sink, waiting) => cause,
    };
    let user = &session.subscriber.caller.user_id;
    tracing::debug!(user, ?cause, "a socket of /v1 ended");
    let Some(frame) = cause.close_frame() else { return };
    let farewell = async {
        let _ = sink.send(Message::Close(Some(frame))).await;
        // Unread bytes would make the close an error for the client.
        while let Some(Ok(_)) = stream.next().await {}
    };
    let time = if cause == CloseCause::Revoked { REVOKED_CLOSE_TIME_MAX } else { CLOSE_TIME_MAX };
    let _ = timeout(time, farewell).await;
}

/// Reads messages until the client leaves. The subscriptions end with it.
async fn read(
    stream: &mut SplitStream<WebSocketStream<SocketIo>>,
    mut subscriptions: OpenSubscriptions,
) -> CloseCause {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => subscriptions.handle(text.as_str()).await,
            Some(Ok(Message::Close(_))) | None => return CloseCause::Left,
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(_))) => return CloseCause::TooLong,
            Some(Err(_)) => return CloseCause::Left,
        }
    }
}

async fn write(
    sink: &mut SplitSink<WebSocketStream<SocketIo>, Message>,
    mut waiting: mpsc::Receiver<String>,
) -> CloseCause {
    let mut pings = interval_at(Instant::now(), PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            biased;
            _ = pings.tick() => Some(ping()),
            frame = waiting.recv() => frame,
        };
        let Some(frame) = frame else { return CloseCause::Left };
        match timeout(FRAME_TIME_MAX, sink.send(Message::text(frame))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return CloseCause::Left,
            Err(_) => return CloseCause::TooSlow,
        }
    }
}

impl OpenSubscriptions {
    async fn handle(&mut self, text: &str) {
        let message = match SubscribeMessage::parse(text) {
            Ok(message) => message,
            Err(why) => {
                let _ = self.frames.send(SubscribeMessage::default().error(&why)).await;
                return;
            }
        };
        let key = message.key();
        if message.stop {
            if self.open.remove(&key).is_some() {
                let _ = self.frames.send(message.bare("resource.stop")).await;
            }
            return;
        }
        // One that has ended makes room, and may begin again.
        self.open.retain(|_, task| !task.is_finished());
        if self.open.contains_key(&key) {
            return;
        }
        if self.open.len() >= SUBSCRIPTIONS_MAX {
            let text = format!(
                "a socket has at most {SUBSCRIPTIONS_MAX} subscriptions; stop one, or open another \
                 socket"
            );
            let _ = self.frames.send(message.error(&text)).await;
            let _ = self.frames.send(message.bare("resource.stop")).await;
            return;
        }
        let (session, frames) = (self.session.clone(), self.frames.clone());
        let task = tokio::spawn(async move {
            subscription::run(&session, &message, &frames).await;
        });
        self.open.insert(key, AbortOnDropHandle::new(task));
    }
}
