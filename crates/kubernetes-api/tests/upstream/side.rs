//! One of the two servers, over HTTP/1.1.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tls_trust::{roots_from_pem, trust_roots};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

pub type Socket = WebSocketStream<TlsStream<TcpStream>>;

pub struct Side {
    pub name: &'static str,
    pub token: String,
    authority: String,
    tls: Arc<ClientConfig>,
}

#[derive(Clone, Debug)]
pub struct TestResponse {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    /// The body; `null` when it is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// # Panics
    /// When it is no success.
    #[track_caller]
    pub fn success(self) -> Value {
        assert!((200..300).contains(&self.code), "{}: {}", self.code, self.text);
        self.json()
    }
}

impl Side {
    pub fn new(name: &'static str, authority: String, ca_pem: &str, token: String) -> Self {
        let tls = trust_roots(roots_from_pem(ca_pem).unwrap()).with_no_client_auth();
        Self { name, token, authority, tls: Arc::new(tls) }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(&self.authority).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(self.tls.clone()).connect(name, stream).await.unwrap()
    }

    /// One request, on a connection of its own.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> TestResponse {
        let exchange = async {
            let stream = TokioIo::new(self.connect().await);
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            let mut request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", &self.authority)
                .header("authorization", format!("Bearer {}", self.token));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Full::new(body.into())).unwrap();
            let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            TestResponse { code: parts.status.as_u16(), headers: parts.headers, text }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> TestResponse {
        let json = [("content-type", "application/json")];
        self.send(Method::POST, path, &json, body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> TestResponse {
        let json = [("content-type", "application/json")];
        self.send(Method::PUT, path, &json, body.to_string()).await
    }

    /// `media` without `application/`.
    pub async fn patch(&self, path: &str, media: &str, body: impl Into<Bytes>) -> TestResponse {
        let media = format!("application/{media}");
        self.send(Method::PATCH, path, &[("content-type", &media)], body).await
    }

    pub async fn delete(&self, path: &str) -> TestResponse {
        self.send(Method::DELETE, path, &[], "").await
    }

    /// Sends a GET with only these headers, and reads the response's head, and its body when that
    /// ends with the connection or has a length.
    pub async fn spell(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.authority);
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += "\r\n";
        let exchange = async {
            let mut stream = self.connect().await;
            stream.write_all(text.as_bytes()).await.unwrap();
            let mut seen = Vec::new();
            loop {
                let mut chunk = [0; 4096];
                match stream.read(&mut chunk).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => seen.extend_from_slice(&chunk[..length]),
                }
                if is_whole(&seen) {
                    break;
                }
            }
            parsed(&seen)
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.unwrap()
    }

    /// Opens a WebSocket from an origin.
    pub async fn socket(&self, path: &str, headers: &[(&str, &str)]) -> Socket {
        let url = format!("wss://{}{path}", self.authority);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {}", self.token);
        let own = [("authorization", bearer.as_str()), ("origin", "https://example.org")];
        for (name, value) in own.iter().chain(headers) {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        let stream = self.connect().await;
        tokio_tungstenite::client_async(request, stream).await.unwrap().0
    }
}

fn split(seen: &[u8]) -> Option<(&str, &[u8])> {
    let end = seen.windows(4).position(|part| part == b"\r\n\r\n")?;
    Some((std::str::from_utf8(&seen[..end]).unwrap(), &seen[end + 4..]))
}

fn is_whole(seen: &[u8]) -> bool {
    let Some((head, body)) = split(seen) else { return false };
    let response = parsed(seen);
    match response.header("content-length").parse::<usize>() {
        Ok(length) => body.len() >= length,
        // A watch that is not over a WebSocket does not end.
        Err(_) => head.contains(" 101 ") || !response.header("transfer-encoding").is_empty(),
    }
}

fn parsed(seen: &[u8]) -> TestResponse {
    let (head, body) = split(seen).unwrap_or_else(|| panic!("no response: {seen:?}"));
    let mut lines = head.lines();
    let code = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers.append(name.parse::<HeaderName>().unwrap(), value.trim().parse().unwrap());
    }
    TestResponse { code, headers, text: String::from_utf8_lossy(body).into_owned() }
}
