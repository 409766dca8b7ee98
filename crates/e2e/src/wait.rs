//! Waits for a state: polls until it holds or the timeout has passed, and then reports the last
//! observation. The only module of this crate that pauses.

use std::fmt::Display;
use std::time::Duration;

pub use testbed::poll_until;

/// Time between two polls.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout for states that are reached within seconds; a busy machine may need ten times that.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits up to [`SETTLE_TIMEOUT`] until `probe` finds `what`.
///
/// # Panics
/// When the timeout has passed, with the last error of `probe`.
#[track_caller]
pub fn eventually<T, E: Display>(what: &str, probe: impl FnMut() -> Result<T, E>) -> T {
    within(SETTLE_TIMEOUT, what, probe)
}

/// Like [`eventually`], with its own timeout.
///
/// # Panics
/// When the timeout has passed, with the last error of `probe`.
#[track_caller]
pub fn within<T, E: Display>(
    timeout: Duration,
    what: &str,
    probe: impl FnMut() -> Result<T, E>,
) -> T {
    match poll_until(timeout, LOOK_INTERVAL, probe) {
        Ok(found) => found,
        Err(last) => panic!("not within {timeout:?}: {what}; seen last: {last:#}"),
    }
}

/// Pauses between the requests of a load. Not for waiting: see [`poll_until`].
pub async fn pace(time: Duration) {
    tokio::time::sleep(time).await;
}
