//! The pod's end of a shell: `exec` of its API server, as a WebSocket through the tunnel.

use api_management::keys;
use cluster_access::access::{UpgradedIo, UpgradedStream};
use cluster_access::body::empty;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::{Request, StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_util::sync::CancellationToken;

use super::OLD_RIGHTS;
use super::objects::CONTAINER;
use super::terminal::Ending;
use crate::connections::Connections;

/// Every API server since Kubernetes 1.4 has it.
const PROTOCOL: &str = "v4.channel.k8s.io";

type Socket = WebSocketStream<UpgradedIo>;

/// What is typed in the pod.
pub(super) struct Input(SplitSink<Socket, Message>);

impl Input {
    /// # Errors
    /// The connection to the pod broke.
    pub(super) async fn send(&mut self, frame: Bytes) -> Result<(), Ending> {
        self.0.send(Message::Binary(frame)).await.map_err(|_| broken())
    }
}

/// What the pod says.
pub(super) struct Output {
    stream: SplitStream<Socket>,
    cut: CancellationToken,
    _held: OwnedSemaphorePermit,
}

impl Output {
    /// The next frame. Cancel safe.
    ///
    /// # Errors
    /// The program ended, or the connection broke.
    pub(super) async fn next(&mut self) -> Result<Bytes, Ending> {
        loop {
            let next = tokio::select! {
                next = self.stream.next() => next,
                () = self.cut.cancelled() => return Err(broken()),
            };
            match next {
                Some(Ok(Message::Binary(frame))) => return Ok(frame),
                Some(Ok(Message::Close(_))) => return Err(Ending::Finished),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(broken()),
            }
        }
    }
}

fn broken() -> Ending {
    Ending::failed("the connection to the cluster broke; open the shell again")
}

/// Starts a shell in the pod.
///
/// # Errors
/// The cluster refused it or cannot be reached.
pub(super) async fn open(
    connections: &Connections,
    cluster: &str,
    pod: &str,
) -> Result<(Input, Output), Ending> {
    let namespace = keys::SYSTEM_NS;
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods/{pod}/exec?container={CONTAINER}&stdin=true\
         &stdout=true&stderr=false&tty=true&command=sh"
    );
    let request = Request::get(path)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, generate_key())
        .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .body(empty())
        .map_err(|error| Ending::failed(error.to_string()))?;
    let upgraded = connections.upgrade(cluster, request).await;
    let upgraded = upgraded.map_err(|error| Ending::failed(error.to_string()))?;
    let response = &upgraded.response;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status();
        let next = if status == StatusCode::FORBIDDEN { OLD_RIGHTS } else { "" };
        let text = format!("the cluster refused a terminal in its pod: {status}{next}");
        return Err(Ending::Failed(text));
    }
    let UpgradedStream { io, held, cut } = upgraded.into_stream().await.ok_or_else(broken)?;
    let (sink, stream) = WebSocketStream::from_raw_socket(io, Role::Client, None).await.split();
    Ok((Input(sink), Output { stream, cut, _held: held }))
}
