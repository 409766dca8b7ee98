//! The agent's connect: upgrade request and proof, over a byte stream that is already connected
//! and, except in tests, encrypted.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::ClusterId;
use crate::handshake::{HandshakeError, prove};
use crate::hello::Hello;
use crate::key::AgentKey;
use crate::limits::{HANDSHAKE_TIME_MAX, REFUSAL_TEXT_MAX_BYTES};
use crate::refusal::Refusal;
use crate::wire::Wire;

/// Path of an agent that registers. The server treats both paths alike.
pub const PATH_REGISTER: &str = "/v3/connect/register";
/// Path of an agent that is registered.
pub const PATH_CONNECT: &str = "/v3/connect";

/// Why an agent could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server refused the agent, with a message for the agent's log.
    #[error("the server refused this agent: {0}")]
    Refused(Refusal),
    /// Something other than a Drover server responded, such as a load balancer.
    #[error("the server responded {status} instead of opening the tunnel: {text}")]
    Answer { status: StatusCode, text: String },
    #[error("send the tunnel request")]
    Http(#[from] hyper::Error),
    #[error("prove the agent's key to the server")]
    Handshake(#[source] HandshakeError),
    #[error("the server did not finish the handshake within {} s", HANDSHAKE_TIME_MAX.as_secs())]
    TimedOut,
}

/// An open session on the agent's side, ready for [`crate::serve::serve`].
pub struct Established {
    pub(crate) wire: Wire<TokioIo<Upgraded>>,
    /// The id of this cluster on the server.
    pub cluster: ClusterId,
    /// The server's number of the session, for logs.
    pub session: u64,
}

/// Sends the upgrade request and proves the key.
///
/// - `io`: a connection to the server.
/// - `host`: value of the `Host` header.
/// - `pinned_server`: checksum of the server's CA, when the agent has pinned one.
///
/// # Errors
/// [`ConnectError::Refused`] persists until the key, the token or the server's records change,
/// unless [`Refusal::is_transient`]. Retry after the other errors, with a backoff.
pub async fn open<S>(
    io: S,
    host: &str,
    hello: &Hello,
    key: &AgentKey,
    pinned_server: Option<&str>,
) -> Result<Established, ConnectError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let opening = async {
        let upgraded = upgrade(io, host, hello).await?;
        let mut wire = Wire::client(TokioIo::new(upgraded));
        match prove(&mut wire, key, &hello.instance, pinned_server).await {
            Ok((cluster, session)) => Ok(Established { wire, cluster, session }),
            Err(HandshakeError::Refused(refusal)) => Err(ConnectError::Refused(refusal)),
            Err(error) => Err(ConnectError::Handshake(error)),
        }
    };
    tokio::time::timeout(HANDSHAKE_TIME_MAX, opening).await.map_err(|_| ConnectError::TimedOut)?
}

async fn upgrade<S>(io: S, host: &str, hello: &Hello) -> Result<Upgraded, ConnectError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(TokioIo::new(io)).await?;
    tokio::spawn(connection.with_upgrades());
    let mut nonce = [0; 16];
    rand::fill(&mut nonce);
    let key = STANDARD.encode(nonce);
    let path = if hello.token.is_some() { PATH_REGISTER } else { PATH_CONNECT };
    let mut request = Request::builder()
        .uri(path)
        .header(header::HOST, host)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key)
        .body(Empty::new())
        .map_err(|error| unexpected_response(StatusCode::BAD_REQUEST, &error.to_string()))?;
    hello.write_headers(request.headers_mut());
    let response = sender.send_request(request).await?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(response.into_body(), REFUSAL_TEXT_MAX_BYTES).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        return Err(match Refusal::from_body(&body) {
            Some(refusal) => ConnectError::Refused(refusal),
            None => unexpected_response(status, &String::from_utf8_lossy(&body)),
        });
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|value| value.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err(unexpected_response(status, "the response does not belong to this request"));
    }
    Ok(hyper::upgrade::on(response).await?)
}

/// The first line of the response, without control characters, because it is logged.
fn unexpected_response(status: StatusCode, text: &str) -> ConnectError {
    const TEXT_CHARS_MAX: usize = 200;
    let line = text.lines().next().unwrap_or_default();
    let text = line.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
    ConnectError::Answer { status, text }
}
