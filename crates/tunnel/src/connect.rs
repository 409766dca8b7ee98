//! The agent's way in: upgrade request and proof, over a byte stream that is already connected and,
//! unless it is a test, encrypted.

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

/// Where first contact goes; both paths are answered alike.
pub const PATH_REGISTER: &str = "/v3/connect/register";
pub const PATH_CONNECT: &str = "/v3/connect";

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server said no, in words for the agent's log.
    #[error("the server refused this agent: {0}")]
    Refused(Refusal),
    /// Something that is not our server answered, such as a load balancer.
    #[error("the server answered {status} instead of opening the tunnel: {text}")]
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
    /// What the server takes this cluster for.
    pub cluster: ClusterId,
    /// The server's number of the session, for logs.
    pub session: u64,
}

/// Sends the upgrade request and proves the key.
///
/// - `host`: value of the `Host` header.
/// - `pinned_server`: checksum of the server's CA, when the agent has pinned one.
///
/// # Errors
/// [`ConnectError::Refused`] is final until something changes, unless [`Refusal::is_transient`];
/// the others may pass.
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
        .map_err(|error| answer(StatusCode::BAD_REQUEST, &error.to_string()))?;
    hello.write_headers(request.headers_mut());
    let response = sender.send_request(request).await?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(response.into_body(), REFUSAL_TEXT_MAX_BYTES).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        return Err(match Refusal::from_body(&body) {
            Some(refusal) => ConnectError::Refused(refusal),
            None => answer(status, &String::from_utf8_lossy(&body)),
        });
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|value| value.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err(answer(status, "the answer does not belong to this request"));
    }
    Ok(hyper::upgrade::on(response).await?)
}

/// The first line of what came, without control characters: it ends up in a log.
fn answer(status: StatusCode, text: &str) -> ConnectError {
    const TEXT_CHARS_MAX: usize = 200;
    let line = text.lines().next().unwrap_or_default();
    let text = line.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
    ConnectError::Answer { status, text }
}
