//! The agent's side of a session: serves `CONNECT` and the agent's API over HTTP/2.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode, header};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Io;
use crate::address::Address;
use crate::agent_api::{
    AgentVersion, CredentialReport, Health, PATH_CREDENTIALS, PATH_HEALTH, PATH_VERSION,
};
use crate::carry::carry;
use crate::connect::Established;
use crate::limits::{
    AGENT_DIAL_TIME_MAX, DATA_FRAME_MAX_BYTES, HEADERS_MAX_BYTES, PROTOCOL_VERSION,
    SEND_BUFFER_MAX_BYTES, STREAMS_PER_SESSION_MAX,
};
use crate::liveness::{Heard, RoundTrip, beat};
use crate::stream::{Slots, Stream, to_io};
use crate::window::{CONNECTION_WINDOW, STREAM_WINDOW_START, Windows};
use crate::wire::Wire;

/// Streams beyond [`STREAMS_PER_SESSION_MAX`] that the peer may open before HTTP/2 itself refuses,
/// so that it gets a response rather than a reset.
const STREAMS_SLACK: u32 = 16;

/// The addresses that the agent connects to on the server's behalf.
pub trait Outbound: Send + Sync + 'static {
    /// Whether `address` may be dialled at all.
    fn allows(&self, address: &Address) -> bool;

    /// Connects to an address that [`Self::allows`] returned true for. The caller limits the time.
    ///
    /// # Errors
    /// The address cannot be reached. The error's text is sent to the server.
    fn dial<'a>(&'a self, address: &'a Address) -> BoxFuture<'a, io::Result<Box<dyn Io>>>;
}

/// Plain TCP to a fixed set of addresses: by default only the agent's own API server, so that a
/// compromised server cannot explore the cluster's network.
pub struct TcpOutbound {
    allowed: HashSet<Address>,
}

impl TcpOutbound {
    /// Allows exactly these addresses.
    pub fn new(allowed: impl IntoIterator<Item = Address>) -> Self {
        Self { allowed: allowed.into_iter().collect() }
    }
}

impl Outbound for TcpOutbound {
    fn allows(&self, address: &Address) -> bool {
        self.allowed.contains(address)
    }

    fn dial<'a>(&'a self, address: &'a Address) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((address.host(), address.port())).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// What an agent offers in its sessions.
#[derive(Clone)]
pub struct Service {
    /// Serves `CONNECT`.
    pub outbound: Arc<dyn Outbound>,
    /// `None` until the agent has tried to get one. Each change is reported to the server.
    pub credential: watch::Receiver<Option<CredentialReport>>,
    /// Reported by the agent's API.
    pub agent_version: String,
}

/// Why a session ended on the agent's side.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the connection to the server broke")]
    Broken(#[source] io::Error),
    #[error("the server fell silent")]
    Silent,
}

/// Serves one session to its end.
///
/// When `goodbye` is cancelled, the server is notified to use another session, and this returns
/// once the open streams have finished; the caller limits that time. Dropping the future cuts all
/// streams.
///
/// # Errors
/// The session ended without a close from either side. Reconnect.
pub async fn serve(
    established: Established,
    service: Service,
    goodbye: CancellationToken,
) -> Result<(), ServeError> {
    serve_wire(established.wire, service, goodbye).await
}

pub(crate) async fn serve_wire<S: Io>(
    wire: Wire<S>,
    service: Service,
    goodbye: CancellationToken,
) -> Result<(), ServeError> {
    let heard = wire.heard();
    let streams_max = u32::try_from(STREAMS_PER_SESSION_MAX).unwrap_or(u32::MAX);
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_START)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_MAX_BYTES)
        .max_frame_size(DATA_FRAME_MAX_BYTES)
        .max_send_buffer_size(SEND_BUFFER_MAX_BYTES)
        .max_concurrent_streams(streams_max + STREAMS_SLACK);
    let connection = tokio::select! {
        connection = builder.handshake(wire) => {
            connection.map_err(|error| ServeError::Broken(to_io(error)))?
        }
        () = heard.dead() => return Err(ServeError::Silent),
    };
    Session::new(service, heard).run(connection, goodbye).await
}

struct Session {
    service: Service,
    slots: Slots,
    heard: Heard,
    round_trip: RoundTrip,
    started: Instant,
    tasks: JoinSet<()>,
    /// Ends the endless responses, so that a session that says goodbye can finish.
    ending: CancellationToken,
}

impl Session {
    fn new(service: Service, heard: Heard) -> Self {
        let round_trip = RoundTrip::default();
        Self {
            service,
            slots: Slots::new(round_trip.clone()),
            heard,
            round_trip,
            started: Instant::now(),
            tasks: JoinSet::new(),
            ending: CancellationToken::new(),
        }
    }

    async fn run<S: Io>(
        mut self,
        mut connection: Connection<Wire<S>, Bytes>,
        goodbye: CancellationToken,
    ) -> Result<(), ServeError> {
        let pings = connection.ping_pong().expect("taken once");
        let heartbeat = beat(pings, self.round_trip.clone());
        tokio::pin!(heartbeat);
        let mut is_beating = true;
        let mut windows = Windows::new();
        loop {
            tokio::select! {
                accepted = connection.accept() => match accepted {
                    None => return Ok(()),
                    // The server treats the goodbye as the end.
                    Some(Err(_)) if self.ending.is_cancelled() => return Ok(()),
                    Some(Err(error)) => return Err(ServeError::Broken(to_io(error))),
                    Some(Ok((request, respond))) => self.respond_to(request, respond),
                },
                () = self.heard.dead() => return Err(ServeError::Silent),
                () = &mut heartbeat, if is_beating => is_beating = false,
                Some(_) = self.tasks.join_next() => {}
                () = goodbye.cancelled(), if !self.ending.is_cancelled() => {
                    connection.graceful_shutdown();
                    self.ending.cancel();
                }
                () = self.round_trip.changed() => {
                    windows.follow(&self.slots, |size| connection.set_initial_window_size(size));
                }
            }
        }
    }

    fn respond_to(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        if request.method() == Method::CONNECT {
            self.respond_to_connect(request, respond);
            return;
        }
        if request.method() != Method::GET {
            respond_text(
                &mut respond,
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET is supported here",
            );
            return;
        }
        match request.uri().path() {
            PATH_HEALTH => {
                let health = Health {
                    status: "ok".to_owned(),
                    streams: self.slots.open(),
                    uptime_seconds: self.started.elapsed().as_secs(),
                };
                respond_json(&mut respond, &health);
            }
            PATH_VERSION => {
                let agent_version = self.service.agent_version.clone();
                respond_json(
                    &mut respond,
                    &AgentVersion { agent_version, protocol: PROTOCOL_VERSION },
                );
            }
            PATH_CREDENTIALS => {
                let credential = self.service.credential.clone();
                let ending = self.ending.clone();
                self.tasks.spawn(async move {
                    tokio::select! {
                        _ = report_credentials(respond, credential) => {}
                        () = ending.cancelled() => {}
                    }
                });
            }
            _ => respond_text(&mut respond, StatusCode::NOT_FOUND, "no such path"),
        }
    }

    fn respond_to_connect(
        &mut self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let Ok(address) = authority.parse::<Address>() else {
            respond_text(&mut respond, StatusCode::BAD_REQUEST, "the address must be host:port");
            return;
        };
        if !self.service.outbound.allows(&address) {
            tracing::warn!(%address, "refused to dial an address that is not allowed");
            respond_text(&mut respond, StatusCode::FORBIDDEN, "this address is not allowed");
            return;
        }
        let Some(slot) = self.slots.take() else {
            respond_text(&mut respond, StatusCode::TOO_MANY_REQUESTS, "all streams are in use");
            return;
        };
        let outbound = self.service.outbound.clone();
        self.tasks.spawn(async move {
            let dialled = tokio::select! {
                dialled = dial(&*outbound, &address) => dialled,
                // The server stopped waiting.
                _ = std::future::poll_fn(|cx| respond.poll_reset(cx)) => return,
            };
            let target = match dialled {
                Ok(target) => target,
                Err(text) => {
                    respond_text(&mut respond, StatusCode::BAD_GATEWAY, &text);
                    return;
                }
            };
            let Ok(send) = respond.send_response(Response::new(()), false) else { return };
            let stream = Stream::new(send, request.into_body(), slot);
            carry(stream, target).await;
        });
    }
}

async fn dial(outbound: &dyn Outbound, address: &Address) -> Result<Box<dyn Io>, String> {
    match tokio::time::timeout(AGENT_DIAL_TIME_MAX, outbound.dial(address)).await {
        Ok(Ok(target)) => Ok(target),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {} s", AGENT_DIAL_TIME_MAX.as_secs())),
    }
}

fn respond_text(respond: &mut SendResponse<Bytes>, status: StatusCode, text: &str) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    // A stream that is closed already needs no response.
    if let Ok(mut body) = respond.send_response(response, false) {
        let _ = body.send_data(Bytes::copy_from_slice(text.as_bytes()), true);
    }
}

fn respond_json(respond: &mut SendResponse<Bytes>, value: &impl serde::Serialize) {
    let json = serde_json::to_vec(value).expect("plain strings and numbers serialise");
    if let Ok(mut body) = respond.send_response(json_head(), false) {
        let _ = body.send_data(Bytes::from(json), true);
    }
}

fn json_head() -> Response<()> {
    let mut response = Response::new(());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Sends one line at once and one at each change, until the server closes the stream.
async fn report_credentials(
    mut respond: SendResponse<Bytes>,
    mut credential: watch::Receiver<Option<CredentialReport>>,
) -> Result<(), h2::Error> {
    let mut body = respond.send_response(json_head(), false)?;
    loop {
        let line = credential.borrow_and_update().as_ref().map(|credential| {
            let mut line = serde_json::to_vec(credential).expect("plain strings serialise");
            line.push(b'\n');
            line
        });
        if let Some(line) = line {
            send_all(&mut body, line.into()).await?;
        }
        let changed = tokio::select! {
            changed = credential.changed() => changed,
            _ = std::future::poll_fn(|cx| body.poll_reset(cx)) => return Ok(()),
        };
        if changed.is_err() {
            return body.send_data(Bytes::new(), true);
        }
    }
}

/// Sends all bytes, within the window that the peer grants.
async fn send_all(body: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len());
        while body.capacity() == 0 {
            match std::future::poll_fn(|cx| body.poll_capacity(cx)).await {
                None => return Err(Reason::CANCEL.into()),
                Some(granted) => granted?,
            };
        }
        let chunk = bytes.split_to(body.capacity().min(bytes.len()));
        body.send_data(chunk, false)?;
    }
    Ok(())
}
