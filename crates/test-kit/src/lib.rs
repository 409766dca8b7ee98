//! The management plane with all real features in one process, for tests. No sockets, no mocks.
//!
//! [`KubeApi`] is an API server over its own embedded storage: one stands for the management cluster,
//! further ones for downstream clusters. [`World`] runs all features over a management one;
//! [`Agents`] is the one stand-in: in place of a tunnel it hands out clients of the other servers.
//! [`eventually`] waits for a state and says what it saw last.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod kube_api;
mod world;

use std::fmt::Debug;
use std::time::{Duration, Instant};

pub use kube_api::{KubeApi, Profile};
pub use world::{Agents, World};

/// Longest wait for a state that must come; everything here is in one process.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until `look` answers `Ok`, and gives that. Panics with the last `Err` when it never does.
pub async fn eventually<T, E: Debug>(what: &str, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(value) => return value,
            Err(last) if began.elapsed() > PATIENCE => panic!("{what} never came; last: {last:#?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
