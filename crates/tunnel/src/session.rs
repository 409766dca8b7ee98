//! One session on the management side: drives the HTTP/2 client and opens streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use h2::client::{Connection, SendRequest};
use h2::{Reason, RecvStream};
use http::{Method, Request, StatusCode, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::address::Address;
use crate::admission::{Registrar, SessionInfo};
use crate::agent_api::{self, CredentialReport};
use crate::limits::{
    AGENT_API_BODY_MAX_BYTES, AGENT_API_TIME_MAX, CREDENTIAL_MAX_BYTES, CREDENTIAL_PACE,
    CREDENTIAL_RETRY, DATA_FRAME_MAX_BYTES, HEADERS_MAX_BYTES, PEER_SILENCE_SUSPECT,
    REFUSAL_TEXT_MAX_BYTES, SEND_BUFFER_MAX_BYTES, STREAMS_PER_SESSION_MAX,
};
use crate::liveness::{Heard, RoundTrip, beat};
use crate::reader::WindowReader;
use crate::sessions::DialError;
use crate::stream::{Slots, Stream, to_io};
use crate::window::{CONNECTION_WINDOW, STREAM_WINDOW_START, Windows};
use crate::wire::Wire;

/// The part of a session that [`crate::Sessions`] holds.
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) info: SessionInfo,
    requests: SendRequest<Bytes>,
    slots: Slots,
    heard: Heard,
    round_trip: RoundTrip,
    /// Accepts no new streams: a newer session replaced it, or the agent is about to disconnect.
    is_retired: AtomicBool,
    cut: CancellationToken,
}

/// The part that must be polled for the session to progress.
pub(crate) struct Driver<S> {
    session: Arc<Session>,
    connection: Connection<Wire<S>, Bytes>,
}

impl Session {
    /// Begins HTTP/2 on a wire whose handshake has succeeded.
    pub(crate) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
        id: u64,
        info: SessionInfo,
        wire: Wire<S>,
    ) -> Result<(Arc<Self>, Driver<S>), h2::Error> {
        let heard = wire.heard();
        let (requests, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_START)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADERS_MAX_BYTES)
            .max_frame_size(DATA_FRAME_MAX_BYTES)
            .max_send_buffer_size(SEND_BUFFER_MAX_BYTES)
            .initial_max_send_streams(STREAMS_PER_SESSION_MAX)
            .handshake(wire)
            .await?;
        let round_trip = RoundTrip::default();
        let session = Arc::new(Self {
            id,
            info,
            requests,
            slots: Slots::new(round_trip.clone()),
            heard,
            round_trip,
            is_retired: AtomicBool::new(false),
            cut: CancellationToken::new(),
        });
        Ok((session.clone(), Driver { session, connection }))
    }

    /// Accepts no new streams from now on; the session ends with its last open stream.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.round_trip.ring();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Retires a session whose agent has announced that it will disconnect.
    fn notice_goodbye(&self) {
        if let Some(Err(_)) = self.requests.clone().ready().now_or_never() {
            self.is_retired.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the session and all its streams now.
    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.heard.silence() > PEER_SILENCE_SUSPECT
    }

    pub(crate) fn silence(&self) -> Duration {
        self.heard.silence()
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.slots.open()
    }

    pub(crate) fn round_trip(&self) -> Duration {
        self.round_trip.get()
    }

    /// Sends one request and waits for the response headers.
    async fn send(
        &self,
        request: Request<()>,
        end: bool,
    ) -> Result<(http::Response<RecvStream>, h2::SendStream<Bytes>), DialError> {
        let mut requests = self.requests.clone().ready().await.map_err(|_| {
            self.retire();
            DialError::NotConnected
        })?;
        let (response, stream) =
            requests.send_request(request, end).map_err(|_| DialError::NotConnected)?;
        let response = response.await.map_err(|error| match error.reason() {
            Some(Reason::REFUSED_STREAM) => DialError::Saturated,
            _ => DialError::Lost,
        })?;
        Ok((response, stream))
    }

    /// Requests a connection to `address` from the agent. Dropping the future resets the stream.
    pub(crate) async fn connect(&self, address: &Address) -> Result<Stream, DialError> {
        let slot = self.slots.take().ok_or(DialError::Saturated)?;
        let authority = address.to_string();
        let uri: Uri = authority.parse().expect("an address is an authority");
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(uri)
            .body(())
            .expect("an authority makes a CONNECT request");
        let (response, send) = self.send(request, false).await?;
        let status = response.status();
        let mut body = response.into_body();
        if status.is_success() {
            return Ok(Stream::new(send, body, slot));
        }
        let text = read_body(&mut body, REFUSAL_TEXT_MAX_BYTES).await.unwrap_or_default();
        let detail = String::from_utf8_lossy(&text).into_owned();
        Err(match status {
            StatusCode::FORBIDDEN => DialError::Denied { address: authority },
            StatusCode::TOO_MANY_REQUESTS => DialError::Saturated,
            _ => DialError::Refused { address: authority, detail },
        })
    }

    /// A small request to the agent's API.
    pub(crate) async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), DialError> {
        let _slot = self.slots.take().ok_or(DialError::Saturated)?;
        let response = async {
            let (response, _send) = self.send(api_request(path), true).await?;
            let status = response.status();
            let mut body = response.into_body();
            let bytes = read_body(&mut body, AGENT_API_BODY_MAX_BYTES).await?;
            Ok((status, bytes))
        };
        let response = tokio::time::timeout(AGENT_API_TIME_MAX, response).await;
        response.map_err(|_| DialError::TimedOut { after: AGENT_API_TIME_MAX })?
    }

    /// Follows the agent's credential reports until the session ends.
    async fn follow_credentials(&self, registrar: &dyn Registrar) {
        loop {
            if let Err(error) = self.read_credentials(registrar).await {
                tracing::debug!(cluster = %self.info.cluster, %error, "credential stream broke");
            }
            tokio::time::sleep(CREDENTIAL_RETRY).await;
        }
    }

    async fn read_credentials(&self, registrar: &dyn Registrar) -> Result<(), DialError> {
        let sending = self.send(api_request(agent_api::PATH_CREDENTIALS), true);
        let sent = tokio::time::timeout(AGENT_API_TIME_MAX, sending).await;
        let (response, _send) =
            sent.map_err(|_| DialError::TimedOut { after: AGENT_API_TIME_MAX })??;
        if response.status() != StatusCode::OK {
            return Err(DialError::AgentStatus(response.status()));
        }
        let mut body = WindowReader::new(response.into_body(), &self.slots.shrinking);
        let mut line = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(|_| DialError::Lost)?;
            let _ = body.release(chunk.len());
            if line.len() + chunk.len() > CREDENTIAL_MAX_BYTES {
                return Err(DialError::TooLarge);
            }
            line.extend_from_slice(&chunk);
            while let Some(end) = line.iter().position(|&byte| byte == b'\n') {
                let whole = line.split_to(end + 1);
                match serde_json::from_slice(&whole) {
                    Ok(CredentialReport::Credential(credential)) => {
                        registrar.on_credential(&self.info, credential);
                    }
                    Ok(CredentialReport::Trouble { trouble }) => {
                        registrar.on_credential_problem(&self.info, &trouble);
                    }
                    Err(_) => return Err(DialError::Malformed),
                }
                // Further reports wait in the agent meanwhile, because nothing reads them.
                tokio::time::sleep(CREDENTIAL_PACE).await;
            }
        }
        Ok(())
    }
}

fn api_request(path: &str) -> Request<()> {
    Request::builder()
        .uri(format!("http://agent{path}"))
        .body(())
        .expect("paths of the agent's API are constants")
}

async fn read_body(body: &mut RecvStream, limit: usize) -> Result<Bytes, DialError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(|_| DialError::Lost)?;
        let _ = body.flow_control().release_capacity(chunk.len());
        if bytes.len() + chunk.len() > limit {
            return Err(DialError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Runs the session until it ends, and returns why it ended.
    pub(crate) async fn run(mut self, registrar: &dyn Registrar) -> String {
        let session = self.session;
        let pings = self.connection.ping_pong().expect("taken once");
        let heartbeat = beat(pings, session.round_trip.clone());
        let reports = session.follow_credentials(registrar);
        tokio::pin!(heartbeat, reports);
        let mut windows = Windows::new();
        let mut is_beating = true;
        loop {
            tokio::select! {
                end = &mut self.connection => return match end {
                    Ok(()) => "the agent closed the session".to_owned(),
                    Err(_) if session.is_retired() => "the agent said goodbye".to_owned(),
                    Err(error) => to_io(error).to_string(),
                },
                () = session.cut.cancelled() => return "the session was cut".to_owned(),
                () = session.heard.dead() => return "the agent fell silent".to_owned(),
                // Ends with the connection, which the first branch reports.
                () = &mut heartbeat, if is_beating => is_beating = false,
                () = &mut reports => {}
                () = session.round_trip.changed() => {
                    session.notice_goodbye();
                    let open = session.open_streams();
                    if session.is_retired() && open == 0 {
                        return "a newer session replaced this one".to_owned();
                    }
                    windows.follow(&session.slots, |size| {
                        self.connection.set_initial_window_size(size)
                    });
                }
            }
        }
    }
}
