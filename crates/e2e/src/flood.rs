//! Attacks of unauthenticated clients on a server: silent connections, endless heads and bodies,
//! very long names and wrong passwords, from many addresses of the loopback network. One thread
//! does all of it, so that it uses at most one core.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::RngExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::Client;
use crate::wait::pace;

const LOGIN: &str = "/v3-public/localProviders/local?action=login";
/// Announced size of a slow body, of which half is sent at once.
const SLOW_BODY_BYTES: usize = 60_000;
/// Bytes of a slow head that are sent at once.
const SLOW_HEAD_BYTES: usize = 12_000;
const SLOW_PAUSE: Duration = Duration::from_secs(3);
/// Length of the longest name that fits into the body of a login.
const LONG_NAME_BYTES: usize = 60_000;
/// Pause before a closed connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// Longest wait for the response to a login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of each kind of attack.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub addresses: u8,
    pub silent: usize,
    pub slow_heads: usize,
    pub slow_bodies: usize,
    pub logins_per_second: u32,
}

/// Counts of the results.
#[derive(Debug, Default)]
pub struct Counts {
    pub connections: AtomicU64,
    /// Guesses that were compared with a password.
    pub compared: AtomicU64,
    /// Guesses that were rejected with 429.
    pub turned_away: AtomicU64,
}

/// A flood that lasts until it is dropped.
#[derive(Debug)]
pub struct Flood {
    stop: Arc<AtomicBool>,
    pub counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Starts the flood.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn begin(server: &Client, sizes: Sizes) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (server, until, counted) = (server.clone(), stop.clone(), counts.clone());
        let thread = std::thread::Builder::new().name("flood".to_owned()).spawn(move || {
            runtime.block_on(async {
                begin_all(&server, sizes, &counted);
                while !until.load(Ordering::Relaxed) {
                    pace(Duration::from_millis(50)).await;
                }
            });
            runtime.shutdown_background();
        });
        Ok(Self { stop, counts, thread: Some(thread.context("no thread for the flood")?) })
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One of `count` addresses, none of which ordinary clients use.
fn address(number: usize, sizes: Sizes) -> IpAddr {
    let host = u8::try_from(number % usize::from(sizes.addresses)).unwrap_or_default();
    IpAddr::V4(Ipv4Addr::new(127, 0, 7, host + 1))
}

fn begin_all(server: &Client, sizes: Sizes, counts: &Arc<Counts>) {
    let from = |number| server.from(address(number, sizes));
    let kinds = [
        (sizes.silent, Vec::new()),
        (sizes.slow_heads, slow_head()),
        (sizes.slow_bodies, slow_body()),
    ];
    for (count, opening) in kinds {
        for number in 0..count {
            tokio::spawn(hold(from(number), opening.clone(), counts.clone()));
        }
    }
    if sizes.logins_per_second == 0 {
        return;
    }
    let (server, counts) = (server.clone(), counts.clone());
    tokio::spawn(async move {
        let mut every = tokio::time::interval(Duration::from_secs(1) / sizes.logins_per_second);
        for number in 0.. {
            every.tick().await;
            tokio::spawn(guess(server.from(address(number, sizes)), number, counts.clone()));
        }
    });
}

fn slow_head() -> Vec<u8> {
    let mut text = b"GET /v3-public HTTP/1.1\r\nHost: drover\r\nX-Long: ".to_vec();
    text.resize(SLOW_HEAD_BYTES, b'x');
    text
}

fn slow_body() -> Vec<u8> {
    let mut text = format!(
        "POST {LOGIN} HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\n\
         Content-Length: {SLOW_BODY_BYTES}\r\n\r\n"
    )
    .into_bytes();
    text.resize(text.len() + SLOW_BODY_BYTES / 2, b' ');
    text
}

/// Keeps a connection open, byte by byte, and opens it again when it is closed.
async fn hold(client: Client, opening: Vec<u8>, counts: Arc<Counts>) {
    loop {
        if let Ok(mut stream) = client.handshake().await {
            counts.connections.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(&opening).await;
            let _ = stream.flush().await;
            let mut chunk = [0; 512];
            loop {
                match timeout(SLOW_PAUSE, stream.read(&mut chunk)).await {
                    Ok(Ok(0) | Err(_)) => break,
                    Ok(Ok(_)) => {}
                    Err(_) if opening.is_empty() => {}
                    Err(_) => {
                        if stream.write_all(b" ").await.is_err() || stream.flush().await.is_err() {
                            break;
                        }
                    }
                }
            }
        }
        pace(AGAIN).await;
    }
}

/// A wrong password: for the administrator, for an unknown name, or for a very long one.
async fn guess(client: Client, number: usize, counts: Arc<Counts>) {
    let name = match number % 3 {
        0 => "admin".to_owned(),
        1 => format!("nobody-{number}"),
        _ => "n".repeat(LONG_NAME_BYTES - usize::from(rand::rng().random::<u8>())),
    };
    let body = serde_json::json!({"username": name, "password": format!("wrong-{number}")});
    let sent = async {
        let request = http::Request::post(LOGIN).header("content-type", "application/json");
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
        let request = request.body(http_body_util::BodyExt::boxed_unsync(body))?;
        client.connect().await?.send(request).await
    };
    match timeout(LOGIN_TIMEOUT, sent).await {
        Ok(Ok(response)) if response.status == 401 => {
            counts.compared.fetch_add(1, Ordering::Relaxed)
        }
        _ => counts.turned_away.fetch_add(1, Ordering::Relaxed),
    };
}

/// Opens `count` requests at once on one HTTP/2 connection, whose bodies are never sent, and
/// returns the statuses of the responses within a second.
///
/// # Errors
/// The server is unreachable.
pub fn open_streams(client: &Client, count: usize) -> Result<Vec<u16>> {
    crate::http::runtime().block_on(async {
        let stream = client.handshake().await?;
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await?;
        tokio::spawn(connection);
        let url = format!("https://{}{LOGIN}", client.authority());
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..count {
            let mut sender = sender.clone();
            let never = http_body_util::StreamBody::new(futures::stream::pending::<
                Result<hyper::body::Frame<bytes::Bytes>, std::convert::Infallible>,
            >());
            let request = http::Request::post(&url).body(never)?;
            all.spawn(async move { sender.send_request(request).await });
        }
        let mut statuses = Vec::new();
        let answered = async {
            while let Some(response) = all.join_next().await {
                statuses
                    .extend(response.ok().and_then(Result::ok).map(|one| one.status().as_u16()));
            }
        };
        let _ = timeout(Duration::from_secs(1), answered).await;
        Ok(statuses)
    })
}
