//! One management side and any number of agents, joined by in-memory pipes.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::wait::until;
use crate::admission::decide;
use crate::connect::{ConnectError, Established, open};
use crate::serve::{Outbound, ServeError, Service, serve};
use crate::*;

pub const CA: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
pub const SECOND: Duration = Duration::from_secs(1);

/// Tokens and keys in memory, with the rule that features use.
#[derive(Default)]
pub struct MemoryRegistrar(Mutex<Records>);

#[derive(Default)]
struct Records {
    tokens: HashMap<String, TokenRecord>,
    keys: HashMap<KeyId, KeyRecord>,
    reports: Vec<(ClusterId, ApiCredential)>,
    events: Vec<String>,
}

impl MemoryRegistrar {
    /// Adds an unused registration token, valid for this long.
    pub fn add_token(&self, token: &str, cluster: &str, valid: Duration) {
        let expires_at = SystemTime::now() + valid;
        let record = TokenRecord { cluster: cluster.into(), expires_at, used_by: None };
        self.0.lock().tokens.insert(token.to_owned(), record);
    }

    /// Makes a token expire now.
    pub fn expire(&self, token: &str) {
        self.0.lock().tokens.get_mut(token).unwrap().expires_at = SystemTime::UNIX_EPOCH;
    }

    /// What agents have reported, in order.
    pub fn reports(&self) -> Vec<(ClusterId, ApiCredential)> {
        self.0.lock().reports.clone()
    }

    /// The calls of the registrar, in order.
    pub fn events(&self) -> Vec<String> {
        self.0.lock().events.clone()
    }

    /// The number of registered keys.
    pub fn key_count(&self) -> usize {
        self.0.lock().keys.len()
    }

    fn evaluate(records: &Records, hello: &Hello) -> Result<Admission, Refusal> {
        let token = hello.token.as_ref().and_then(|token| records.tokens.get(token.reveal()));
        decide(hello, records.keys.get(&hello.key), token, SystemTime::now())
    }
}

impl Registrar for MemoryRegistrar {
    fn admit<'a>(&'a self, hello: &'a Hello) -> BoxFuture<'a, Result<Admission, Refusal>> {
        Box::pin(async move { Self::evaluate(&self.0.lock(), hello) })
    }

    fn enrol<'a>(
        &'a self,
        hello: &'a Hello,
        admission: &'a Admission,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let mut records = self.0.lock();
            Self::evaluate(&records, hello)?;
            let token = hello.token.as_ref().unwrap().reveal().to_owned();
            records.tokens.get_mut(&token).unwrap().used_by = Some(hello.key.clone());
            let public_key = admission.key.public_key().clone();
            let record = KeyRecord { cluster: admission.cluster.clone(), public_key };
            records.keys.insert(hello.key.clone(), record);
            Ok(())
        })
    }

    fn on_connect(&self, session: &SessionInfo) {
        self.0.lock().events.push(format!("{} connected", session.cluster));
    }

    fn on_disconnect(&self, session: &SessionInfo, cause: &str) {
        self.0.lock().events.push(format!("{} disconnected: {cause}", session.cluster));
    }

    fn on_credential(&self, session: &SessionInfo, credential: ApiCredential) {
        self.0.lock().reports.push((session.cluster.clone(), credential));
    }

    fn on_credential_problem(&self, session: &SessionInfo, trouble: &str) {
        self.0.lock().events.push(format!("{} troubled: {trouble}", session.cluster));
    }
}

/// A pipe whose end can vanish without closing: reads hang, writes are lost.
pub struct Severable {
    /// Present until dropped.
    inner: Option<DuplexStream>,
    is_severed: Arc<AtomicBool>,
}

impl Severable {
    fn inner(&mut self) -> Pin<&mut DuplexStream> {
        Pin::new(self.inner.as_mut().unwrap())
    }
}

impl Drop for Severable {
    fn drop(&mut self) {
        // A cut cable sends nothing to the other end, so the pipe must not close.
        if self.is_severed.load(Ordering::SeqCst) {
            std::mem::forget(self.inner.take());
        }
    }
}

impl AsyncRead for Severable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_severed.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.inner().poll_read(cx, out)
    }
}

impl AsyncWrite for Severable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_severed.load(Ordering::SeqCst) {
            return Poll::Ready(Ok(bytes.len()));
        }
        self.inner().poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }
}

/// Addresses with a behaviour: `echo:1` sends back what it gets, `flood:1` sends without end,
/// `sink:1` reads to the end and then sends the count, `refused:1` cannot be reached, `hole:1`
/// never responds.
pub struct Playground {
    pub cluster: &'static str,
}

impl Outbound for Playground {
    fn allows(&self, address: &Address) -> bool {
        ["echo", "flood", "sink", "refused", "hole", "who"].contains(&address.host())
    }

    fn dial<'a>(&'a self, address: &'a Address) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let name = self.cluster;
        match address.host() {
            "refused" => {
                return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
            }
            "hole" => return Box::pin(std::future::pending()),
            "flood" => drop(tokio::spawn(async move {
                let zeros = vec![0; 32 * 1024];
                while far.write_all(&zeros).await.is_ok() {}
            })),
            "sink" => drop(tokio::spawn(async move {
                let count = tokio::io::copy(&mut far, &mut tokio::io::sink()).await.unwrap();
                let _ = far.write_all(count.to_string().as_bytes()).await;
            })),
            "who" => drop(tokio::spawn(async move {
                let _ = far.write_all(name.as_bytes()).await;
            })),
            _ => drop(tokio::spawn(async move {
                let (mut read, mut write) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            })),
        }
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Io>) })
    }
}

/// The management side.
pub struct World {
    pub registrar: Arc<MemoryRegistrar>,
    pub sessions: Arc<Sessions>,
    pub acceptor: Acceptor,
}

/// An agent with its key, which can connect several times.
pub struct Agent {
    pub cluster: &'static str,
    pub key: AgentKey,
    pub token: Option<RegistrationToken>,
    pub instance: String,
    pub credential: watch::Sender<Option<CredentialReport>>,
    pub pinned: Option<&'static str>,
}

/// One session as its agent runs it.
pub struct Running {
    pub task: JoinHandle<Result<(), ServeError>>,
    pub goodbye: CancellationToken,
    is_severed: Arc<AtomicBool>,
}

impl Running {
    /// Breaks the connection, without a message to either side.
    pub fn sever(&self) {
        self.is_severed.store(true, Ordering::SeqCst);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Agent {
    /// An agent with a new key and no token.
    pub fn new(cluster: &'static str) -> Self {
        Self {
            cluster,
            key: AgentKey::generate().unwrap(),
            token: None,
            instance: format!("{cluster}-1"),
            credential: watch::Sender::new(None),
            pinned: Some(CA),
        }
    }

    /// Makes it register with a token.
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = RegistrationToken::new(token);
        self
    }

    /// The first message of the agent.
    pub fn hello(&self) -> Hello {
        Hello {
            key: self.key.id(),
            public_key: self.token.as_ref().map(|_| self.key.public_key()),
            token: self.token.clone(),
            instance: self.instance.clone(),
            agent_version: "test".to_owned(),
            cluster_uid: None,
        }
    }

    fn service(&self) -> Service {
        Service {
            outbound: Arc::new(Playground { cluster: self.cluster }),
            credential: self.credential.subscribe(),
            agent_version: "test".to_owned(),
        }
    }
}

impl World {
    /// A management side without tokens, keys and sessions.
    pub fn new() -> Self {
        let registrar = Arc::new(MemoryRegistrar::default());
        let sessions = Sessions::new();
        let acceptor = Acceptor::new(registrar.clone(), sessions.clone(), CA);
        Self { registrar, sessions, acceptor }
    }

    /// A pipe to the management side's HTTP server.
    pub fn pipe(&self) -> (DuplexStream, JoinHandle<()>) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let acceptor = self.acceptor.clone();
        let service = hyper::service::service_fn(move |request| {
            let acceptor = acceptor.clone();
            async move {
                Ok::<_, std::convert::Infallible>(
                    acceptor.handle(request, None, Box::new(drop)).await,
                )
            }
        });
        let task = tokio::spawn(async move {
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(far), service).with_upgrades().await;
        });
        (near, task)
    }

    /// Connects an agent, up to its acceptance. The flag breaks the connection.
    ///
    /// # Errors
    /// The management side rejects the agent.
    pub async fn open(
        &self,
        agent: &Agent,
    ) -> Result<(Established, Arc<AtomicBool>), ConnectError> {
        let is_severed = Arc::new(AtomicBool::new(false));
        let (inner, _) = self.pipe();
        let io = Severable { inner: Some(inner), is_severed: is_severed.clone() };
        let opened = open(io, "drover", &agent.hello(), &agent.key, agent.pinned).await?;
        Ok((opened, is_severed))
    }

    /// Connects and waits until the management side counts the session.
    pub async fn connect(&self, agent: &Agent) -> Running {
        let before = self.sessions.health(agent.cluster).len();
        let (established, is_severed) = self.open(agent).await.unwrap();
        let mut running = self.run(agent, established, CancellationToken::new());
        running.is_severed = is_severed;
        until("the session to count", || self.sessions.health(agent.cluster).len() > before).await;
        running
    }

    /// Serves streams on an accepted connection, until `goodbye` fires or the value is dropped.
    pub fn run(&self, agent: &Agent, on: Established, goodbye: CancellationToken) -> Running {
        let task = tokio::spawn(serve(on, agent.service(), goodbye.clone()));
        Running { task, goodbye, is_severed: Arc::default() }
    }

    /// A registered and connected agent of `cluster`.
    pub async fn join(&self, cluster: &'static str) -> (Agent, Running) {
        self.registrar.add_token(cluster, cluster, 60 * SECOND);
        let agent = Agent::new(cluster).with_token(cluster);
        let running = self.connect(&agent).await;
        (agent, running)
    }

    /// Opens a stream to `address` in a cluster, within 20 seconds.
    ///
    /// # Errors
    /// No session is there, or the agent cannot dial.
    pub async fn dial(&self, cluster: &str, address: &str) -> Result<Stream, DialError> {
        self.sessions.dial(cluster, &address.parse().unwrap(), 20 * SECOND).await
    }
}

/// Sends `text` and reads as much back.
pub async fn echo(stream: &mut Stream, text: &[u8]) -> Vec<u8> {
    stream.write_all(text).await.unwrap();
    let mut reply = vec![0; text.len()];
    stream.read_exact(&mut reply).await.unwrap();
    reply
}
