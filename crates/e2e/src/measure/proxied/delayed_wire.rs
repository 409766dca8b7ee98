//! A long way between two programs of this machine: a TCP relay that hands on every byte some time
//! after it came.
//!
//! Not `tc netem`, which needs a kernel module and root; there is no loss and no congestion, only
//! the time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::http::runtime;
use crate::wait::pace;

const CHUNK_BYTES: usize = 64 * 1024;
/// More than is under way at 1 GB/s over 300 ms.
const CHUNKS_MAX: usize = 8192;

/// A running relay. Dropping it ends it; its connections end with their programs.
#[derive(Debug)]
pub struct DelayedWire {
    address: SocketAddr,
    target: Arc<OnceLock<SocketAddr>>,
    accepting: AbortHandle,
}

impl DelayedWire {
    /// `one_way`: half of what it adds to a round trip.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(one_way: Duration) -> Result<Self> {
        let listener = runtime().block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let target = Arc::new(OnceLock::new());
        let known = Arc::clone(&target);
        let accepting = runtime().spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Some(target) = known.get().copied() else { continue };
                tokio::spawn(async move {
                    // A connection that cannot be made ends, as over a real way.
                    let _ = carry(near, target, one_way).await;
                });
            }
        });
        Ok(Self { address, target, accepting: accepting.abort_handle() })
    }

    /// The address whose connections are relayed with the delay.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// To which port of this machine it leads from now on. Connections that come before are closed.
    ///
    /// # Errors
    /// `authority` has no port, or it leads somewhere already.
    pub fn lead_to(&self, authority: &str) -> Result<()> {
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.with_context(|| format!("'{authority}' has no port"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        ensure!(self.target.set(address).is_ok(), "it leads somewhere already");
        Ok(())
    }
}

impl Drop for DelayedWire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(near: TcpStream, target: SocketAddr, one_way: Duration) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (from_near, to_near) = near.into_split();
    let (from_far, to_far) = far.into_split();
    tokio::try_join!(pass(from_near, to_far, one_way), pass(from_far, to_near, one_way))?;
    Ok(())
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    one_way: Duration,
) -> io::Result<()> {
    let (under_way, mut arriving) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS_MAX);
    let reading = async move {
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            let read = from.read_buf(&mut chunk).await?;
            if read == 0 || under_way.send((Instant::now() + one_way, chunk)).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    let writing = async move {
        while let Some((due, chunk)) = arriving.recv().await {
            pace(due.saturating_duration_since(Instant::now())).await;
            to.write_all(&chunk).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(reading, writing)?;
    Ok(())
}
