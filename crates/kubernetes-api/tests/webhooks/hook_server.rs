//! A webhook that responds over HTTPS, correctly or incorrectly in one of many ways. The last
//! segment of the request path selects the way.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// More than this server reads of a response.
const HUGE: usize = apiserver::webhook::RESPONSE_SIZE_MAX + 1;

pub struct HookServer {
    pub address: SocketAddr,
    pub ca_pem: String,
    calls: Arc<Mutex<Vec<Call>>>,
    _task: JoinSet<()>,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    pub query: String,
    pub review: Value,
}

impl HookServer {
    /// Listens on loopback with a certificate for these names by its own authority.
    pub async fn start(names: &[&str]) -> Self {
        Self::start_on("127.0.0.1", names).await
    }

    /// Listens on another address of this machine.
    pub async fn start_on(address: &str, names: &[&str]) -> Self {
        Self::start_at(&format!("{address}:0"), names).await
    }

    /// Listens on an address and a port.
    pub async fn start_at(place: &str, names: &[&str]) -> Self {
        let (ca_pem, config) = certificates(names);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(place).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls: Arc<Mutex<Vec<Call>>> = Arc::default();
        let mut task = JoinSet::new();
        task.spawn(accept(listener, acceptor, calls.clone()));
        Self { address, ca_pem, calls, _task: task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A `clientConfig` for a path of this server.
    pub fn client(&self, path: &str) -> Value {
        json!({"url": self.url(path), "caBundle": STANDARD.encode(&self.ca_pem)})
    }

    /// Removes and returns the calls to paths with this prefix.
    pub fn take(&self, prefix: &str) -> Vec<Call> {
        let mut calls = self.calls.lock();
        let (taken, kept) = calls.drain(..).partition(|call| call.path.starts_with(prefix));
        *calls = kept;
        taken
    }
}

fn certificates(names: &[&str]) -> (String, ServerConfig) {
    let named = |name: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let key = KeyPair::generate().unwrap();
    let mut params = named("webhook authority", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let leaf = named("webhook", names).signed_by(&key, &issuer).unwrap();
    let chain = vec![CertificateDer::from(leaf.der().to_vec())];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (authority.pem(), config)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, calls: Arc<Mutex<Vec<Call>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let (acceptor, calls) = (acceptor.clone(), calls.clone());
        connections.spawn(async move {
            // A client that does not trust this server disconnects.
            let Ok(tls) = acceptor.accept(tcp).await else { return };
            let service = service_fn(move |request| respond(request, calls.clone()));
            let connection = hyper::server::conn::http1::Builder::new();
            // It may also close at any time.
            connection.serve_connection(TokioIo::new(tls), service).await.ok();
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    calls: Arc<Mutex<Vec<Call>>>,
) -> Result<Response<BoxBody<Bytes, std::io::Error>>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    calls.lock().push(Call { path: path.clone(), query, review: review.clone() });
    let behaviour = path.rsplit('/').next().unwrap();
    let (code, body) = match behaviour {
        "hang" => std::future::pending().await,
        "status-500" => (500, "boom".to_owned()),
        "status-404" => (404, "not here".to_owned()),
        "empty" | "truncated" => (200, String::new()),
        "not-json" => (200, "this is no JSON".to_owned()),
        "huge" => (200, " ".repeat(HUGE)),
        "rename" => (200, super::field_owners::respond(&review).to_string()),
        _ if review["kind"] == "ConversionReview" => {
            (200, super::conversion::respond(&review).to_string())
        }
        behaviour => (200, super::behaviours::respond(behaviour, &review).to_string()),
    };
    let mut response = Response::new(match behaviour {
        "truncated" => {
            let frames = [
                Ok(Frame::data(Bytes::from_static(b"{\"kind\":"))),
                Err(std::io::Error::other("the connection ends here")),
            ];
            BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)))
        }
        _ => Full::from(body).map_err(|never| match never {}).boxed(),
    });
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}
