//! What a driver may not do, whoever it runs as: limits of the kernel, capabilities, system calls,
//! paths.

mod paths;
mod system_calls;

use std::fs;

use anyhow::Context as _;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// Limits of the driver and of each process that it starts. Memory is what it may write to: Go and
/// Java reserve more addresses than they use.
const LIMITS: [(Resource, u64); 6] = [
    (Resource::RLIMIT_CORE, 0),
    (Resource::RLIMIT_DATA, 2 << 30),
    (Resource::RLIMIT_FSIZE, 64 << 20),
    (Resource::RLIMIT_MEMLOCK, 64 << 10),
    (Resource::RLIMIT_NOFILE, 1024),
    (Resource::RLIMIT_NPROC, 256),
];
/// Of -1000 to 1000: when the machine is out of memory, drivers go before the server.
const OUT_OF_MEMORY_SCORE: &str = "700";

/// Makes the kernel choose this process and its children when memory runs out.
pub(super) fn be_killed_first() {
    // Without it a driver is chosen by its size.
    let _ = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
}

/// Runs `start` in a thread that may do no more than a driver, and so may what it starts. The
/// thread of process 1 may more: it ends the driver.
pub(super) fn as_driver<T: Send>(start: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    std::thread::scope(|scope| {
        let restricted = scope.spawn(|| {
            paths::restrict()?;
            limit()?;
            Ok(start())
        });
        restricted.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Limits this thread and what it starts, and what they can get back.
pub(super) fn limit() -> anyhow::Result<()> {
    for (resource, limit) in LIMITS {
        // Lower limits of the server stay.
        let (_, max) = nix::sys::resource::getrlimit(resource)?;
        let limit = limit.min(max);
        setrlimit(resource, limit, limit).with_context(|| format!("cannot limit {resource:?}"))?;
    }
    for capability in CapabilitySet::all().iter() {
        // The kernel may know fewer of them.
        let _ = remove_capability_from_bounding_set(capability);
    }
    clear_ambient_capability_set().context("cannot drop capabilities")?;
    set_no_new_privs().context("cannot forbid new rights")?;
    system_calls::filter().context("cannot filter system calls")
}

/// Drops the capabilities of this process once it has started the driver, but the one to end it.
pub(super) fn give_up() -> anyhow::Result<()> {
    let left = CapabilitySets {
        effective: CapabilitySet::KILL,
        permitted: CapabilitySet::KILL,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, left).context("cannot drop capabilities")
}
