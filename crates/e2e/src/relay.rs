//! A way to a TCP address that can be cut, and that counts what goes over it.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use parking_lot::Mutex;

/// See the module. It ends with the process.
#[derive(Clone)]
pub struct Relay {
    /// On 127.0.0.1.
    pub port: u16,
    state: Arc<RelayState>,
}

#[derive(Default)]
struct RelayState {
    is_cut: AtomicBool,
    bytes: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// A way to `target`.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Self { port: listener.local_addr()?.port(), state: Arc::default() };
        let state = relay.state.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if state.is_cut.load(Ordering::SeqCst) {
                    // Dropped: the peer sees the end at once.
                    continue;
                }
                let Ok(far) = TcpStream::connect(target) else { continue };
                let _ = carry(&state, &near, &far);
            }
        });
        Ok(relay)
    }

    /// Ends all connections, and lets no new ones through.
    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }

    /// Bytes that went over it, in both directions.
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Ordering::SeqCst)
    }
}

/// Carries bytes in both directions until one of them ends.
fn carry(state: &Arc<RelayState>, near: &TcpStream, far: &TcpStream) -> io::Result<()> {
    for (from, to) in [(near, far), (far, near)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        state.open.lock().push(from.try_clone()?);
        let state = state.clone();
        std::thread::spawn(move || {
            let mut block = [0; 16 << 10];
            while let Ok(length @ 1..) = from.read(&mut block) {
                state.bytes.fetch_add(length as u64, Ordering::SeqCst);
                if to.write_all(&block[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
