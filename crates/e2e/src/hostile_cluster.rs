//! The API server of an attacker who imports a cluster to harm the management server. It responds
//! to every request in one malicious way, except to those by which an agent stores its key.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::http::runtime;
use crate::wait::pace;

/// Longest response: ten gigabytes.
const BYTES_MAX: u64 = 10_000_000_000;
const CHUNK_BYTES: usize = 64 * 1024;
const TRICKLE: Duration = Duration::from_millis(500);

/// Path prefix below which the agent stores its key.
const SECRETS: &str = "/api/v1/namespaces/cattle-system/secrets";

/// The way in which it responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Endless whitespace.
    EndlessBody,
    /// Endless header lines.
    EndlessHeaders,
    /// A list of ten gigabytes of objects.
    HugeList,
    /// One byte at long intervals.
    Trickle,
    /// Bytes that are not HTTP.
    Garbage,
    /// A redirect to another host.
    Redirect,
}

impl Manner {
    pub const ALL: [Self; 6] = [
        Self::EndlessBody,
        Self::EndlessHeaders,
        Self::HugeList,
        Self::Trickle,
        Self::Garbage,
        Self::Redirect,
    ];

    fn opening(self) -> &'static str {
        match self {
            Self::EndlessBody | Self::Trickle => {
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
            }
            Self::EndlessHeaders => "HTTP/1.1 200 OK\r\n",
            Self::HugeList => {
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"kind\":\"List\",\
                 \"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":["
            }
            Self::Garbage => "\u{1}\u{2}\u{3} this is no HTTP at all\r\n\r\n",
            Self::Redirect => {
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1:1/\r\n\
                 Content-Length: 0\r\n\r\n"
            }
        }
    }

    /// The chunk that is repeated.
    fn piece(self) -> &'static str {
        match self {
            Self::EndlessBody | Self::Trickle => " ",
            Self::EndlessHeaders => "X-More: and more and more and more and more and more\r\n",
            Self::HugeList => {
                "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"again\",\
                 \"labels\":{\"a\":\"b\"}}},"
            }
            Self::Garbage | Self::Redirect => "",
        }
    }
}

/// A running hostile API server. It ends with the process.
#[derive(Debug)]
pub struct HostileCluster {
    address: SocketAddr,
    ca_pem: String,
    requests: Arc<AtomicU64>,
}

impl HostileCluster {
    /// Listens on a free port.
    ///
    /// # Errors
    /// No certificate can be issued, or no port is free.
    pub fn start(manner: Manner) -> Result<Self> {
        let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let key = PrivateKeyDer::from_pem_slice(issued.signing_key.serialize_pem().as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = runtime().block_on(listening)?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicU64::new(0));
        let counted = requests.clone();
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counted) = (acceptor.clone(), counted.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    while let Some((head, body)) = request(&mut stream).await {
                        if head.split(' ').nth(1).is_some_and(|path| path.starts_with(SECRETS)) {
                            if answer_agent(&mut stream, &head, &body).await.is_err() {
                                return;
                            }
                            continue;
                        }
                        counted.fetch_add(1, Ordering::Relaxed);
                        let answered = response(&mut stream, manner).await;
                        if answered.is_err() || manner != Manner::Redirect {
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { address, ca_pem: issued.cert.pem(), requests })
    }

    /// The number of received requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Writes a kubeconfig for its agent.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, file: &Path) -> Result<()> {
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "hostile",
            "contexts": [{"name": "hostile", "context": {"cluster": "hostile", "user": "agent"}}],
            "clusters": [{"name": "hostile", "cluster": {
                "server": format!("https://{}", self.address),
                "certificate-authority-data": STANDARD.encode(&self.ca_pem),
            }}],
            "users": [{"name": "agent", "user": {"token": "made-up"}}],
        });
        Ok(std::fs::write(file, text.to_string())?)
    }
}

/// Reads a whole request, head and body. `None`: the connection has ended.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut seen = Vec::new();
    loop {
        let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&seen[..end]).into_owned();
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
            if seen.len() >= end + 4 + length {
                return Some((head, seen[end + 4..].to_vec()));
            }
        }
        if stream.read_buf(&mut seen).await.ok()? == 0 {
            return None;
        }
    }
}

/// Responds like an API server without Secrets that accepts every write of one.
async fn answer_agent(
    stream: &mut (impl AsyncWrite + Unpin),
    head: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let absent =
        br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
    let is_read = head.starts_with("GET");
    let (status, body) =
        if is_read { ("404 Not Found", &absent[..]) } else { ("201 Created", body) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

async fn response(stream: &mut (impl AsyncWrite + Unpin), manner: Manner) -> std::io::Result<()> {
    stream.write_all(manner.opening().as_bytes()).await?;
    stream.flush().await?;
    let piece = manner.piece();
    if piece.is_empty() {
        return Ok(());
    }
    if manner == Manner::Trickle {
        loop {
            pace(TRICKLE).await;
            stream.write_all(piece.as_bytes()).await?;
            stream.flush().await?;
        }
    }
    let chunk = piece.repeat(CHUNK_BYTES / piece.len());
    let mut sent = 0;
    while sent < BYTES_MAX {
        stream.write_all(chunk.as_bytes()).await?;
        sent += chunk.len() as u64;
    }
    Ok(())
}
