//! A long way between two networks of this machine: this program carries the IP packets from one
//! to the other, late, and loses some of them.
//!
//! TCP is the kernel's on both sides, and meets the delay and the loss of a real path. `tc netem`
//! would do the same, but few kernels have it. The rate has no limit but the processor's. Without
//! loss, packets stay in order, because all of them take equally long.

mod network;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::Instant;
use tokio_tun::Tun;

pub use self::network::Network;
use self::network::PACKET_BYTES_MAX;
use crate::wait::pace;

/// On their way in one direction: 98 MB, more than TCP's largest windows.
const PACKETS_MAX: usize = 65_536;
/// Of the choice of the packets that are lost; each direction counts on from it.
const SEED: u64 = 1;

/// Two networks and the way between them. Dropping it ends the way at once; the kernel removes the
/// networks and their devices after the last process in them.
#[derive(Debug)]
pub struct Link {
    near: Network,
    far: Network,
    loss: Arc<AtomicU32>,
    packets: Arc<Packets>,
    // Dropped last: it carries the packets.
    _runtime: Runtime,
}

/// Packets of both directions since the start.
#[derive(Debug, Default)]
struct Packets {
    sent: AtomicU64,
    lost: AtomicU64,
    overflowed: AtomicU64,
}

/// Packets of both directions in some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCounts {
    pub sent: u64,
    /// As requested by [`Link::lose`].
    pub lost: u64,
    /// Dropped because a queue was full: of this way, or of a device.
    pub overflowed: u64,
}

impl Link {
    /// Creates both networks, and a way between them that takes `one_way` in each direction and
    /// loses nothing. Needs root and `/dev/net/tun`.
    ///
    /// # Errors
    /// The kernel refuses a network or a device; the message has what it needs.
    pub fn start(one_way: Duration) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (near, near_device) = Network::create(&runtime, Network::NEAR, Network::FAR)?;
        let (far, far_device) = Network::create(&runtime, Network::FAR, Network::NEAR)?;
        let (near_device, far_device) = (Arc::new(near_device), Arc::new(far_device));
        let (loss, packets) = (Arc::<AtomicU32>::default(), Arc::<Packets>::default());
        for (seed, from, to) in
            [(SEED, &near_device, &far_device), (SEED + 1, &far_device, &near_device)]
        {
            let (queue, arriving) = mpsc::channel(PACKETS_MAX);
            let entrance = Entrance {
                device: Arc::clone(from),
                one_way,
                random: StdRng::seed_from_u64(seed),
                loss: Arc::clone(&loss),
                packets: Arc::clone(&packets),
                queue,
            };
            runtime.spawn(entrance.accept());
            runtime.spawn(deliver(Arc::clone(to), arriving));
        }
        Ok(Self { near, far, loss, packets, _runtime: runtime })
    }

    /// The network of servers and their clients.
    #[must_use]
    pub fn near(&self) -> &Network {
        &self.near
    }

    /// The network of clusters and their agents.
    #[must_use]
    pub fn far(&self) -> &Network {
        &self.far
    }

    /// Loses `per_thousand` of 1,000 packets of each direction from now on, each independently of
    /// the others. At most 1,000.
    pub fn lose(&self, per_thousand: u32) {
        self.loss.store(per_thousand.min(1000), Ordering::Relaxed);
    }

    /// What became of the packets since the start.
    ///
    /// # Errors
    /// `ip` does not show the devices.
    pub fn counts(&self) -> Result<PacketCounts> {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let at_devices = self.near.overflowed()? + self.far.overflowed()?;
        Ok(PacketCounts {
            sent: number(&self.packets.sent),
            lost: number(&self.packets.lost),
            overflowed: number(&self.packets.overflowed) + at_devices,
        })
    }
}

impl PacketCounts {
    /// The packets since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            lost: self.lost - earlier.lost,
            overflowed: self.overflowed - earlier.overflowed,
        }
    }
}

/// A packet and the time at which it arrives.
type Underway = (Instant, Box<[u8]>);

/// Where packets of one direction enter the way.
struct Entrance {
    device: Arc<Tun>,
    one_way: Duration,
    random: StdRng,
    loss: Arc<AtomicU32>,
    packets: Arc<Packets>,
    queue: Sender<Underway>,
}

impl Entrance {
    /// Ends when the other side does, or the device.
    async fn accept(mut self) -> Result<()> {
        let mut buffer = [0; PACKET_BYTES_MAX];
        loop {
            let length = self.device.recv(&mut buffer).await.context("no packets")?;
            self.packets.sent.fetch_add(1, Ordering::Relaxed);
            if self.random.random_ratio(self.loss.load(Ordering::Relaxed), 1000) {
                self.packets.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let packet = (Instant::now() + self.one_way, Box::from(&buffer[..length]));
            if self.queue.try_send(packet).is_err() {
                self.packets.overflowed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

async fn deliver(device: Arc<Tun>, mut arriving: Receiver<Underway>) -> Result<()> {
    while let Some((due, packet)) = arriving.recv().await {
        let early = due.saturating_duration_since(Instant::now());
        // The timer waits a millisecond even for no time.
        if !early.is_zero() {
            pace(early).await;
        }
        device.send(&packet).await?;
    }
    Ok(())
}
