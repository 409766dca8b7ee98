//! Requests to a TLS server in this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use pki::CertificateAuthority;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

struct Server {
    url: String,
    authority: CertificateAuthority,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Responds to each request with its own head. Closes each connection after `responses` of
    /// them.
    async fn start(responses: usize) -> Self {
        let now = SystemTime::now();
        let authority = CertificateAuthority::generate("test", now).unwrap();
        let issued = authority.issue_serving("server", &[], now).unwrap();
        let chain: Vec<_> = CertificateDer::pem_slice_iter(issued.certificate_pem.as_bytes())
            .map(Result::unwrap)
            .collect();
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(tls_trust::crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    for _ in 0..responses {
                        let head = read_head(&mut stream).await;
                        let length = head.len();
                        let response =
                            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                        stream.write_all(response.as_bytes()).await.unwrap();
                        stream.write_all(head.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Self { url, authority, connections }
    }

    fn trust(&self) -> Trust {
        Trust::Authority(self.authority.certificate_pem().to_owned())
    }
}

async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

async fn head(http: &Http, path: &str) -> String {
    let response = http.send(Method::GET, path, None).await.unwrap();
    String::from_utf8(response.body.to_vec()).unwrap()
}

#[tokio::test]
async fn requests_carry_the_token_and_share_a_connection() {
    let server = Server::start(usize::MAX).await;
    let http = Http::new(&server.url, &server.trust(), "name:key").unwrap();
    let first = head(&http, "/v3/clusters?name=a").await;
    assert!(first.starts_with("GET /v3/clusters?name=a HTTP/1.1\r\n"), "{first}");
    assert!(first.contains("authorization: Bearer name:key\r\n"), "{first}");
    head(&http, "/v3").await;
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let server = Server::start(1).await;
    let http = Http::new(&server.url, &server.trust(), "").unwrap();
    for _ in 0..3 {
        let head = head(&http, "/ping").await;
        assert!(!head.contains("authorization"), "{head}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (server, other) = (Server::start(1).await, Server::start(1).await);
    for trust in [other.trust(), Trust::System] {
        let http = Http::new(&server.url, &trust, "name:key").unwrap();
        let error = http.send(Method::GET, "/", None).await.err().expect("refused");
        assert!(matches!(error, HttpError::Untrusted(..)), "{error}");
        assert_eq!(CliError::from(error).failure, Failure::Unreachable);
    }
    let http = Http::new(&server.url, &Trust::AnyCertificate, "").unwrap();
    assert!(http.send(Method::GET, "/", None).await.is_ok());
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    drop(listener);
    let http = Http::new(&url, &Trust::System, "").unwrap();
    let error = CliError::from(http.send(Method::GET, "/", None).await.err().expect("refused"));
    assert_eq!(error.failure, Failure::Unreachable);
    assert!(error.message.contains(&url), "{}", error.message);
}
