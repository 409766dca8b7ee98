//! The management plane with all real features in one process, for tests. No sockets, no mocks.
//!
//! [`KubeApi`] is an API server over its own embedded storage: one is the management cluster,
//! others are downstream clusters. [`World`] runs all features over a management one; [`Agents`] is
//! the only fake: instead of a tunnel it returns clients of the other servers. [`proxied`] sends
//! requests to them like the proxy. [`eventually`] waits for a state and reports the last one.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod kube_api;
pub mod proxied;
mod world;

use std::fmt::Debug;
use std::time::{Duration, Instant};

pub use kube_api::{KubeApi, Profile};
pub use world::{Agents, World, kube_system_uid};

/// Longest wait for an expected state; everything here is in one process.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until `probe` returns `Ok`, and returns that. Panics with the last `Err` after the
/// timeout.
pub async fn eventually<T, E: Debug>(what: &str, probe: impl AsyncFnMut() -> Result<T, E>) -> T {
    let found = poll(Duration::from_millis(10), PATIENCE, probe).await;
    found.unwrap_or_else(|last| panic!("{what} never came; last: {last:#?}"))
}

/// Polls until `probe` returns `expected`. Panics with the last value after the timeout.
pub async fn until<T: Debug + PartialEq>(
    what: &str,
    expected: T,
    mut probe: impl AsyncFnMut() -> T,
) {
    eventually(what, async || {
        let found = probe().await;
        if found == expected { Ok(()) } else { Err(found) }
    })
    .await;
}

/// Like [`eventually`], for callers that handle the error: polls every `interval`, for `time_max`.
///
/// # Errors
/// The last error, after `time_max`.
pub async fn poll<T, E>(
    interval: Duration,
    time_max: Duration,
    mut probe: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    loop {
        match probe().await {
            Err(_) if began.elapsed() <= time_max => tokio::time::sleep(interval).await,
            ended => return ended,
        }
    }
}
