//! One side of the long way: a network namespace with a loopback device and a TUN device, and with
//! the kernel's default settings.
//!
//! It has no name: the kernel removes it when nothing uses it any more, also after `kill -9`.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns, unshare};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_tun::Tun;

use crate::ProgramOutput;

/// The usual size on the internet.
pub(super) const PACKET_BYTES_MAX: usize = 1500;
/// Packets that wait in the device for this program: more than TCP sends while it does not run.
const DEVICE_PACKETS_MAX: usize = 16_384;
const DEVICE: &str = "link";

/// A network namespace. It exists until this value is dropped and the last process in it has ended.
#[derive(Debug)]
pub struct Network {
    namespace: File,
    address: Ipv4Addr,
}

impl Network {
    pub(super) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 1);
    pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 2);

    /// A network with `address`, and the device to which it sends everything for `peer`.
    pub(super) fn create(
        runtime: &Runtime,
        address: Ipv4Addr,
        peer: Ipv4Addr,
    ) -> Result<(Self, Tun)> {
        let create = || {
            unshare(CloneFlags::CLONE_NEWNET).context("a network namespace needs root")?;
            let device = {
                let _context = runtime.enter();
                let devices = Tun::builder().name(DEVICE).build();
                devices.context("a TUN device needs root and /dev/net/tun (`modprobe tun`)")?
            };
            let device = device.into_iter().next().context("no TUN device was created")?;
            let (address_text, peer_text) = (address.to_string(), peer.to_string());
            let (bytes, packets) = (PACKET_BYTES_MAX.to_string(), DEVICE_PACKETS_MAX.to_string());
            for arguments in [
                &["link", "set", "lo", "up"][..],
                &["link", "set", "dev", DEVICE, "mtu", &bytes, "txqueuelen", &packets, "up"],
                &["address", "add", &address_text, "peer", &peer_text, "dev", DEVICE],
            ] {
                run(Command::new("ip").args(arguments))?;
            }
            let namespace = File::open("/proc/thread-self/ns/net")?;
            Ok((Self { namespace, address }, device))
        };
        // A thread never leaves the namespace that it has moved to.
        thread::scope(|scope| {
            scope.spawn(create).join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Its address, which the other network reaches.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Moves the calling thread into this network. The threads and processes that it starts from
    /// now on are there too; other threads of this process stay where they are.
    ///
    /// # Errors
    /// The kernel refuses; it needs root.
    pub fn enter(&self) -> Result<()> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).context("cannot enter the network")
    }

    /// A command that executes `program` in this network, with the same process id.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let (process, file) = (std::process::id(), self.namespace.as_raw_fd());
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{process}/fd/{file}")).arg("--").arg(program);
        command
    }

    /// Packets that its device dropped since the start because too many waited in it.
    pub(super) fn overflowed(&self) -> Result<u64> {
        let mut command = self.command(Path::new("ip"));
        command.args(["-json", "-statistics", "link", "show", "dev", DEVICE]);
        let shown: Value = serde_json::from_str(&run(&mut command)?).context("`ip -json`")?;
        shown[0]["stats64"]["tx"]["dropped"].as_u64().context("`ip` shows no dropped packets")
    }
}

fn run(command: &mut Command) -> Result<String> {
    let words = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot start {words}"))?;
    ProgramOutput::of(words, output).succeeded()
}
