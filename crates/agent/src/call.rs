//! One small HTTP request on a connection of its own, which is all the HTTP client that the agent
//! needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use read_ahead::ReadAhead;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::proxy::{Proxies, ProxyError};

/// Bytes that the kernel accepts beyond those that are on their way. Without this limit it accepts
/// megabytes, and over a slow link a heartbeat waits behind them for minutes.
const UNSENT_MAX_BYTES: u32 = 256 * 1024;
/// Time of the TCP and TLS setup.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time of the request and the whole response.
const CALL_TIME_MAX: Duration = Duration::from_secs(15);
/// Size of a response: a Secret, a CA bundle.
const BODY_MAX_BYTES: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("connect to \"{host}:{port}\": {error}")]
    Connect { host: String, port: u16, error: std::io::Error },
    #[error("reach \"{host}:{port}\" through the proxy \"{proxy}\": {error}")]
    Proxy { host: String, port: u16, proxy: String, error: ProxyError },
    #[error("connect to \"{host}:{port}\": no response within {} s", CONNECT_TIME_MAX.as_secs())]
    ConnectTime { host: String, port: u16 },
    #[error("speak TLS with \"{host}:{port}\": {error}")]
    Tls { host: String, port: u16, error: std::io::Error },
    #[error("call \"{path}\": {error}")]
    Http { path: String, error: Box<dyn std::error::Error + Send + Sync> },
    #[error("call \"{path}\": no response within {} s", CALL_TIME_MAX.as_secs())]
    CallTime { path: String },
}

/// Opens a TLS connection, through a proxy if one is configured for this host.
pub(crate) async fn connect(
    host: &str,
    port: u16,
    name: ServerName<'static>,
    tls: &Arc<ClientConfig>,
    proxies: &Proxies,
) -> Result<TlsStream<ReadAhead>, CallError> {
    let owned = || host.to_owned();
    let connecting = async {
        let failed = |error| CallError::Connect { host: owned(), port, error };
        let tcp = match proxies.towards(host, port) {
            None => TcpStream::connect((host, port)).await.map_err(failed)?,
            Some(proxy) => proxy.connect(host, port).await.map_err(|error| {
                let (host, proxy) = (owned(), proxy.to_string());
                CallError::Proxy { host, port, proxy, error }
            })?,
        };
        tcp.set_nodelay(true).map_err(failed)?;
        SockRef::from(&tcp).set_tcp_notsent_lowat(UNSENT_MAX_BYTES).map_err(failed)?;
        let connector = TlsConnector::from(tls.clone());
        let connected = connector.connect(name, ReadAhead::new(tcp)).await;
        connected.map_err(|error| CallError::Tls { host: owned(), port, error })
    };
    tokio::time::timeout(CONNECT_TIME_MAX, connecting)
        .await
        .map_err(|_| CallError::ConnectTime { host: owned(), port })?
}

/// Sends one request, whose URI is a path, and reads the whole response.
pub(crate) async fn call(
    io: TlsStream<ReadAhead>,
    host: &str,
    mut request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), CallError> {
    let path = request.uri().path().to_owned();
    let host = host.parse().map_err(|_| CallError::Http {
        path: path.clone(),
        error: format!("\"{host}\" is no host name").into(),
    })?;
    request.headers_mut().insert(header::HOST, host);
    let failed = |error| CallError::Http { path: path.clone(), error };
    let calling = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io))
            .await
            .map_err(|error| failed(error.into()))?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| failed(error.into()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), BODY_MAX_BYTES).collect().await;
        connection.abort();
        Ok((status, body.map_err(failed)?.to_bytes()))
    };
    let timed = tokio::time::timeout(CALL_TIME_MAX, calling).await;
    timed.map_err(|_| CallError::CallTime { path: path.clone() })?
}
