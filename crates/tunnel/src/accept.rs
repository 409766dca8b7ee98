//! The management side's entry point: responds to an agent's upgrade request and runs the session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::ClusterId;
use crate::admission::{Admission, ExpectedKey, Registrar, SessionInfo};
use crate::handshake::{HandshakeError, challenge, conclude};
use crate::hello::Hello;
use crate::limits::{HANDSHAKE_TIME_MAX, HANDSHAKES_MAX};
use crate::refusal::Refusal;
use crate::sessions::Sessions;
use crate::wire::Wire;

/// The result of one agent's attempt to connect.
#[derive(Debug)]
pub struct ConnectAttempt {
    /// What the agent claims about itself; `None` when it sent no readable hello.
    pub hello: Option<Hello>,
    /// The cluster of its key or token, if the registrar knows one.
    pub cluster: Option<ClusterId>,
    /// How the agent was admitted, or why it was refused.
    pub result: Result<Accepted, Refusal>,
}

/// How an agent was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Its key was registered before.
    Known,
    /// Its key was registered with its token.
    Registered,
}

/// Called once with the result of an attempt. Not called when the agent disconnects before there is
/// one.
pub type Observer = Box<dyn FnOnce(ConnectAttempt) + Send>;

/// Handles requests on the tunnel's paths. Cheap to clone.
#[derive(Clone)]
pub struct Acceptor(Arc<AcceptorState>);

struct AcceptorState {
    registrar: Arc<dyn Registrar>,
    sessions: Arc<Sessions>,
    ca_checksum: RwLock<String>,
    handshakes: Arc<Semaphore>,
}

/// An agent that is about to prove its key.
struct Peer {
    hello: Hello,
    admission: Admission,
    remote: Option<SocketAddr>,
    observer: Observer,
}

impl Acceptor {
    /// An acceptor that admits agents by `registrar` and runs their sessions in `sessions`.
    /// `ca_checksum` is what agents pin: the SHA-256 of the CA in lower-case hex, or empty for a
    /// public CA.
    pub fn new(
        registrar: Arc<dyn Registrar>,
        sessions: Arc<Sessions>,
        ca_checksum: impl Into<String>,
    ) -> Self {
        Self(Arc::new(AcceptorState {
            registrar,
            sessions,
            ca_checksum: RwLock::new(ca_checksum.into()),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
        }))
    }

    /// Replaces the checksum after the CA that agents receive has changed. Open sessions are not
    /// affected.
    pub fn set_ca_checksum(&self, ca_checksum: impl Into<String>) {
        *self.0.ca_checksum.write() = ca_checksum.into();
    }

    /// Handles one request. Responds with 101 and runs the session in a task of its own, or
    /// responds with a refusal as a `Status`.
    ///
    /// `request` must come from an HTTP/1.1 server of hyper, which carries the upgrade in the
    /// request's extensions. Its body is not read. `observer` gets the result of the attempt.
    pub async fn handle<B>(
        &self,
        mut request: Request<B>,
        remote: Option<SocketAddr>,
        observer: Observer,
    ) -> Response<Full<Bytes>> {
        let good = match self.prepare(&request, remote).await {
            Ok(good) => good,
            Err((hello, refusal)) => {
                let registrar = &self.0.registrar;
                let cluster = hello.as_ref().and_then(|hello| registrar.claimed_cluster(hello));
                let response = refusal.to_response();
                observer(ConnectAttempt { hello, cluster, result: Err(refusal) });
                return response;
            }
        };
        let (accept, hello, admission, permit) = good;
        let upgrade = hyper::upgrade::on(&mut request);
        let (this, peer) = (self.clone(), Peer { hello, admission, remote, observer });
        tokio::spawn(async move { this.upgrade(upgrade, peer, permit).await });
        let accept = HeaderValue::from_str(&accept).expect("base64 is a header value");
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_ACCEPT, accept)
            .body(Full::default())
            .expect("constant headers make a response")
    }

    /// Everything before the upgrade. A refusal comes with the hello, if it is readable.
    async fn prepare<B>(
        &self,
        request: &Request<B>,
        remote: Option<SocketAddr>,
    ) -> Result<(String, Hello, Admission, OwnedSemaphorePermit), (Option<Hello>, Refusal)> {
        let upgrade = upgrade_key(request);
        let accept = upgrade.map(|key| derive_accept_key(key.as_bytes())).map_err(|r| (None, r))?;
        let hello = Hello::from_headers(request.headers()).map_err(|refusal| (None, refusal))?;
        match self.admit(&hello, remote).await {
            Ok((admission, permit)) => Ok((accept, hello, admission, permit)),
            Err(refusal) => Err((Some(hello), refusal)),
        }
    }

    async fn admit(
        &self,
        hello: &Hello,
        remote: Option<SocketAddr>,
    ) -> Result<(Admission, OwnedSemaphorePermit), Refusal> {
        let permit = self.0.handshakes.clone().try_acquire_owned().map_err(|_| Refusal::busy())?;
        match self.0.registrar.admit(hello).await {
            Ok(admission) if admission.key.public_key().id() == hello.key => {
                Ok((admission, permit))
            }
            Ok(_) => Err(Refusal::internal("the registrar returned another key than the agent's")),
            Err(refusal) => {
                tracing::info!(?remote, key = %hello.key, reason = ?refusal.reason,
                    "an agent was refused");
                Err(refusal)
            }
        }
    }

    async fn upgrade(self, upgrade: OnUpgrade, peer: Peer, permit: OwnedSemaphorePermit) {
        let upgraded = tokio::time::timeout(HANDSHAKE_TIME_MAX, upgrade).await;
        let Ok(Ok(upgraded)) = upgraded else {
            tracing::debug!(remote = ?peer.remote, "an agent requested an upgrade and disconnected");
            return;
        };
        self.accept(TokioIo::new(upgraded), peer, permit).await;
    }

    /// Everything after the upgrade, over any byte stream, until the session ends.
    async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        io: S,
        peer: Peer,
        permit: OwnedSemaphorePermit,
    ) {
        let Peer { hello, admission, remote, observer } = peer;
        let mut wire = Wire::server(io);
        let shaken = self.shake_hands(&mut wire, &hello, &admission);
        let shaken = tokio::time::timeout(HANDSHAKE_TIME_MAX, shaken).await;
        drop(permit);
        let accepted = match &shaken {
            Ok(Ok(_)) if matches!(admission.key, ExpectedKey::First(_)) => {
                Some(Ok(Accepted::Registered))
            }
            Ok(Ok(_)) => Some(Ok(Accepted::Known)),
            Ok(Err(HandshakeError::Refused(refusal))) => Some(Err(refusal.clone())),
            Ok(Err(_)) | Err(_) => None,
        };
        if let Some(result) = accepted {
            let cluster = Some(admission.cluster.clone());
            observer(ConnectAttempt { hello: Some(hello.clone()), cluster, result });
        }
        let id = match shaken {
            Ok(Ok(id)) => id,
            Ok(Err(error)) => {
                tracing::warn!(cluster = %admission.cluster, ?remote, %error,
                    "an agent's handshake failed");
                return;
            }
            Err(_) => {
                tracing::warn!(cluster = %admission.cluster, ?remote,
                    "an agent did not finish its handshake in time");
                return;
            }
        };
        let info = SessionInfo {
            cluster: admission.cluster,
            key: hello.key,
            instance: hello.instance,
            agent_version: hello.agent_version,
            remote,
            connected_at: SystemTime::now(),
        };
        self.0.sessions.run(id, info, wire, &*self.0.registrar).await;
    }

    /// Checks the proof, registers a first key, and sends the decision. Returns the number of the
    /// session.
    async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        wire: &mut Wire<S>,
        hello: &Hello,
        admission: &Admission,
    ) -> Result<u64, HandshakeError> {
        let server = self.0.ca_checksum.read().clone();
        let mut outcome = match challenge(wire, &server, hello, admission).await {
            Ok(()) => Ok(()),
            Err(HandshakeError::Refused(refusal)) => Err(refusal),
            Err(error) => return Err(error),
        };
        if outcome.is_ok() && matches!(admission.key, ExpectedKey::First(_)) {
            outcome = self.0.registrar.enrol(hello, admission).await;
        }
        let decision = outcome.map(|()| self.0.sessions.next_id());
        conclude(wire, decision.clone()).await?;
        if decision.is_err() {
            // Lets the agent read the refusal before the connection closes.
            let _ = tokio::io::AsyncWriteExt::shutdown(wire).await;
        }
        decision.map_err(HandshakeError::Refused)
    }
}

/// Checks that this is a WebSocket upgrade, and returns its key.
fn upgrade_key<B>(request: &Request<B>) -> Result<String, Refusal> {
    let headers = request.headers();
    let has_token = |name, expected: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|t| t.trim().eq_ignore_ascii_case(expected))
    };
    let is_upgrade = request.method() == Method::GET
        && request.version() == http::Version::HTTP_11
        && has_token(header::CONNECTION, "upgrade")
        && has_token(header::UPGRADE, "websocket")
        && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|value| value == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|value| value.to_str().ok());
    match key {
        Some(key) if is_upgrade && key.len() == 24 => Ok(key.to_owned()),
        _ => Err(Refusal::bad_hello(
            "this path is for cluster agents, which connect with a WebSocket over HTTP/1.1",
        )),
    }
}
