//! What a machine allows on this way at most: the same three hops of TLS over loopback, in one
//! process that does nothing but encrypt, copy and decrypt.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tls_trust::{crypto_provider, trust_roots};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::super::Samples;

/// Client to server, agent to server, and server to API server.
const HOPS: usize = 3;
/// The machine that the targets speak of.
const CORES: usize = 2;
const BLOCK_BYTES: usize = 64 * 1024;
const REQUEST_BYTES: usize = 300;
const ANSWER_BYTES: usize = 1200;
const MEGABYTE: f64 = 1e6;

/// Buffered, so that one call of the system reads several TLS records.
type Tcp = BufReader<TcpStream>;

/// Megabytes per second that come through.
///
/// # Errors
/// A connection breaks.
pub(super) fn bulk(time: Duration) -> Result<f64> {
    over_hops(async |mut near, mut far| {
        let began = Instant::now();
        let sending = tokio::spawn(async move {
            let block = [0; BLOCK_BYTES];
            while far.write_all(&block).await.is_ok() {}
        });
        let mut block = vec![0; BLOCK_BYTES];
        let mut bytes = 0;
        while began.elapsed() < time {
            bytes += near.read(&mut block).await?;
        }
        sending.abort();
        Ok(bytes as f64 / MEGABYTE / began.elapsed().as_secs_f64())
    })
}

/// How long small requests take, one after the other.
///
/// # Errors
/// A connection breaks.
pub(super) fn calls(time: Duration) -> Result<Samples> {
    over_hops(async |mut near, mut far| {
        let answering = tokio::spawn(async move {
            let mut request = [0; REQUEST_BYTES];
            while far.read_exact(&mut request).await.is_ok()
                && far.write_all(&[0; ANSWER_BYTES]).await.is_ok()
            {}
        });
        let mut samples = Samples::default();
        let mut response = [0; ANSWER_BYTES];
        let until = Instant::now() + time;
        while Instant::now() < until {
            let since = Instant::now();
            near.write_all(&[0; REQUEST_BYTES]).await?;
            near.read_exact(&mut response).await?;
            samples.push(since.elapsed());
        }
        answering.abort();
        Ok(samples)
    })
}

/// Gives `load` both ends of a chain.
fn over_hops<T>(
    load: impl AsyncFnOnce(client::TlsStream<Tcp>, server::TlsStream<Tcp>) -> Result<T>,
) -> Result<T> {
    let tls = Tls::new()?;
    let runtime = Builder::new_multi_thread().worker_threads(CORES).enable_all().build()?;
    runtime.block_on(async {
        let (near, mut far) = tls.hop().await?;
        let mut relays = JoinSet::new();
        for _ in 1..HOPS {
            let (mut next_near, next_far) = tls.hop().await?;
            let mut from = std::mem::replace(&mut far, next_far);
            relays.spawn(async move {
                let (a, b) = (&mut from, &mut next_near);
                copy_bidirectional_with_sizes(a, b, BLOCK_BYTES, BLOCK_BYTES).await
            });
        }
        load(near, far).await
    })
}

struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    fn new() -> Result<Self> {
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let certificate = issued.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der());
        let server = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], PrivateKeyDer::Pkcs8(key))?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let client = trust_roots(roots).with_no_client_auth();
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
            name: ServerName::try_from("localhost")?,
        })
    }

    async fn hop(&self) -> Result<(client::TlsStream<Tcp>, server::TlsStream<Tcp>)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (near, far) = tokio::try_join!(TcpStream::connect(address), listener.accept())?;
        let far = far.0;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let buffered = |tcp| BufReader::with_capacity(BLOCK_BYTES, tcp);
        let connecting = self.connector.connect(self.name.clone(), buffered(near));
        let both = tokio::try_join!(connecting, self.acceptor.accept(buffered(far)));
        both.context("a hop of TLS")
    }
}
