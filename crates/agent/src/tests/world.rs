//! The agents' endpoint of a server, and an API server that stores Secrets: real sockets, real TLS.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tls_trust::{ca_checksum, crypto_provider};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tunnel::admission::decide;
use tunnel::{
    Acceptor, Admission, ApiCredential, Hello, KeyId, KeyRecord, Refusal, Registrar,
    RegistrationToken, SessionInfo, Sessions, TokenRecord,
};

use crate::home::Home;
use crate::proxy::Proxies;
use crate::run::{Agent, AttemptError};
use crate::server_url::ServerUrl;
use crate::settings::Settings;
use crate::status::StatusReporter;

/// Identifies the cluster of [`HomeApi`].
pub const KUBE_SYSTEM_UID: &str = "7a4f1c1e-55d3-4f2f-9d1c-1f2e3d4c5b6a";
/// The address of all listeners.
const LOOPBACK: &str = "127.0.0.1";

/// A certificate for one name that is its own CA, and how to serve with it.
pub struct Certificate {
    pub pem: String,
    pub acceptor: TlsAcceptor,
}

impl Certificate {
    /// A self-signed certificate for one host name.
    pub fn new(name: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self { pem: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

/// Serves HTTP/1.1 over TLS on a free port until aborted.
async fn listen<F, A>(tls: TlsAcceptor, respond: F) -> (u16, JoinHandle<()>)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, respond) = (tls.clone(), respond.clone());
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let service = hyper::service::service_fn(move |request| {
                    let respond = respond(request);
                    async move { Ok::<_, Infallible>(respond.await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            });
        }
    });
    (port, task)
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response
}

/// An API server with Secrets and nothing else.
pub struct HomeApi {
    pub secrets: Arc<Mutex<HashMap<String, Value>>>,
    pub directory: tempfile::TempDir,
    port: u16,
    task: JoinHandle<()>,
}

impl HomeApi {
    /// Starts it, with the files that a pod of the agent has mounted.
    pub async fn start() -> Self {
        let certificate = Certificate::new(LOOPBACK);
        let secrets = Arc::<Mutex<HashMap<String, Value>>>::default();
        let stored = secrets.clone();
        let (port, task) = listen(certificate.acceptor, move |request| {
            let stored = stored.clone();
            async move { Self::respond(&stored, request).await }
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in
            [("ca.crt", &*certificate.pem), ("token", "sa-token"), ("namespace", "cattle-system")]
        {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        Self { secrets, directory, port, task }
    }

    async fn respond(
        secrets: &Mutex<HashMap<String, Value>>,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        let is_agent =
            request.headers().get("authorization").is_some_and(|v| v == "Bearer sa-token");
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let body = body.collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !is_agent {
            return respond(StatusCode::UNAUTHORIZED, &json!({"message": "Unauthorized"}));
        }
        let mut secrets = secrets.lock();
        let prefix = "/api/v1/namespaces/cattle-system/secrets";
        let name = path.strip_prefix(prefix).map(|rest| rest.trim_start_matches('/').to_owned());
        match (parts.method, name) {
            (Method::GET, Some(name)) => match secrets.get(&name) {
                Some(secret) => respond(StatusCode::OK, secret),
                None => respond(StatusCode::NOT_FOUND, &json!({"message": "not found"})),
            },
            (Method::POST, Some(_)) => {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                secrets.insert(name, body.clone());
                respond(StatusCode::CREATED, &body)
            }
            (Method::PUT, Some(name)) => {
                secrets.insert(name, body.clone());
                respond(StatusCode::OK, &body)
            }
            (Method::GET, None) if path == "/api/v1/namespaces/kube-system" => {
                respond(StatusCode::OK, &json!({"metadata": {"uid": KUBE_SYSTEM_UID}}))
            }
            _ => respond(StatusCode::OK, &json!({"gitVersion": "v1.37.0"})),
        }
    }

    /// The agent's own cluster, as a pod in it sees it.
    pub fn home(&self) -> Home {
        let directory = self.directory.path().to_owned();
        Home::mounted("127.0.0.1", &self.port.to_string(), directory).unwrap()
    }

    /// The address of the API server.
    pub fn address(&self) -> tunnel::Address {
        tunnel::Address::new("127.0.0.1", self.port).unwrap()
    }

    /// The authority of the API server, as PEM.
    pub fn ca_pem(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("ca.crt")).unwrap()
    }
}

impl Drop for HomeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Tokens and keys in memory.
#[derive(Default)]
pub struct Records {
    pub tokens: HashMap<String, TokenRecord>,
    pub keys: HashMap<KeyId, KeyRecord>,
    pub reports: Vec<ApiCredential>,
    pub refusals: Vec<Refusal>,
    /// Refuses all agents with this.
    pub refuse_with: Option<Refusal>,
    /// The cluster uid of each hello.
    pub cluster_uids: Vec<Option<String>>,
    /// Whether each admitted hello had a token.
    pub admitted_with_token: Vec<bool>,
}

/// A registrar whose records are in memory.
#[derive(Default)]
pub struct MemoryRegistrar(pub Mutex<Records>);

impl MemoryRegistrar {
    /// Adds an unused registration token, valid for an hour.
    pub fn add_token(&self, token: &str, cluster: &str) {
        let expires_at = SystemTime::now() + Duration::from_secs(3600);
        let record = TokenRecord { cluster: cluster.into(), expires_at, used_by: None };
        self.0.lock().tokens.insert(token.to_owned(), record);
    }
}

impl Registrar for MemoryRegistrar {
    fn admit<'a>(&'a self, hello: &'a Hello) -> BoxFuture<'a, Result<Admission, Refusal>> {
        Box::pin(async move {
            let mut records = self.0.lock();
            let token = hello.token.as_ref().and_then(|token| records.tokens.get(token.reveal()));
            let decided = decide(hello, records.keys.get(&hello.key), token, SystemTime::now());
            let decided = records.refuse_with.clone().map_or(decided, Err);
            records.cluster_uids.push(hello.cluster_uid.clone());
            match &decided {
                Ok(_) => records.admitted_with_token.push(hello.token.is_some()),
                Err(refusal) => records.refusals.push(refusal.clone()),
            }
            decided
        })
    }

    fn enrol<'a>(
        &'a self,
        hello: &'a Hello,
        admission: &'a Admission,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let mut records = self.0.lock();
            let token = hello.token.as_ref().unwrap().reveal();
            records.tokens.get_mut(token).unwrap().used_by = Some(hello.key.clone());
            let public_key = admission.key.public_key().clone();
            let record = KeyRecord { cluster: admission.cluster.clone(), public_key };
            records.keys.insert(hello.key.clone(), record);
            Ok(())
        })
    }

    fn on_connect(&self, _: &SessionInfo) {}
    fn on_disconnect(&self, _: &SessionInfo, _: &str) {}

    fn on_credential(&self, _: &SessionInfo, credential: ApiCredential) {
        self.0.lock().reports.push(credential);
    }

    fn on_credential_problem(&self, _: &SessionInfo, _: &str) {}
}

/// The endpoints of a management server that an agent uses.
pub struct Server {
    pub registrar: Arc<MemoryRegistrar>,
    pub sessions: Arc<Sessions>,
    pub ca_pem: String,
    port: u16,
    task: JoinHandle<()>,
}

impl Server {
    /// A server whose certificate is for the loopback address.
    pub async fn start() -> Self {
        Self::named(LOOPBACK).await
    }

    /// A server whose certificate is for `name`.
    pub async fn named(name: &str) -> Self {
        let certificate = Certificate::new(name);
        let registrar = Arc::<MemoryRegistrar>::default();
        let sessions = Sessions::new();
        let ca_pem = certificate.pem.clone();
        let acceptor = Acceptor::new(registrar.clone(), sessions.clone(), ca_checksum(&ca_pem));
        let value = ca_pem.trim_end().to_owned();
        let (port, task) = listen(certificate.acceptor, move |request| {
            let (acceptor, value) = (acceptor.clone(), value.clone());
            async move {
                match request.uri().path() {
                    "/v3/settings/cacerts" => respond(StatusCode::OK, &json!({ "value": value })),
                    _ => acceptor.handle(request, None, Box::new(drop)).await,
                }
            }
        })
        .await;
        Self { registrar, sessions, ca_pem, port, task }
    }

    /// The port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// URL of the server, without a path.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Settings of an agent that registers here with `token`, and trusts the server's certificate.
    pub fn settings(&self, token: &str) -> Settings {
        Settings {
            server: ServerUrl::parse(&self.url()).unwrap(),
            token: RegistrationToken::new(token),
            ca_checksum: Some(ca_checksum(&self.ca_pem)),
            proxies: Proxies::default(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The reporter of an agent that no kubelet runs.
pub fn unread_status() -> StatusReporter {
    StatusReporter::at("/nonexistent".into())
}

/// A running agent.
pub struct Running {
    task: JoinHandle<Result<(), AttemptError>>,
}

impl Running {
    /// Starts an agent whose status nobody reads.
    pub fn start(settings: Settings, home: Home) -> Self {
        Self::start_with(settings, home, unread_status())
    }

    /// Starts an agent that reports to `status`. It ends when the value is dropped.
    pub fn start_with(settings: Settings, home: Home, status: StatusReporter) -> Self {
        let agent = Agent::new(settings, home, status);
        Self { task: tokio::spawn(agent.run(CancellationToken::new())) }
    }

    /// Whether the agent ended by itself.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
