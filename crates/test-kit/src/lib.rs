//! The management plane with all real features in one process, for tests. No sockets, no mocks.
//!
//! [`KubeApi`] is an API server over its own embedded storage: one stands for the management cluster,
//! further ones for downstream clusters. [`World`] runs all features over a management one;
//! [`Agents`] is the one stand-in: in place of a tunnel it hands out clients of the other servers.
//! [`proxied`] sends into one of them as the proxy does. [`eventually`] waits for a state and says what it saw last.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod kube_api;
pub mod proxied;
mod world;

use std::fmt::Debug;
use std::time::{Duration, Instant};

pub use kube_api::{KubeApi, Profile};
pub use world::{Agents, World, kube_system_uid};

/// Longest wait for a state that must come; everything here is in one process.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `look` returns `Ok`, and returns that. Panics with the last `Err` when it never does.
pub async fn eventually<T, E: Debug>(what: &str, look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let found = reached(Duration::from_millis(10), PATIENCE, look).await;
    found.unwrap_or_else(|last| panic!("{what} never came; last: {last:#?}"))
}

/// As [`eventually`], for who has more to say than the last `Err`: looks every `interval`, for `time_max`.
///
/// # Errors
/// The last one, when the time is over.
pub async fn reached<T, E>(
    interval: Duration,
    time_max: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    loop {
        match look().await {
            Err(_) if began.elapsed() <= time_max => tokio::time::sleep(interval).await,
            ended => return ended,
        }
    }
}
