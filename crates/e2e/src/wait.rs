//! Waiting for a state: looks again and again until it is there or the time is over, and then says
//! what was seen last. The only place of this crate that pauses.

use std::fmt::Display;
use std::time::Duration;

pub use testbed::poll_until;

/// Between two looks at a state.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// For states that come true within seconds; a busy machine may need ten times that.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits up to [`SETTLE_TIMEOUT`] until `look` finds `what`.
///
/// # Panics
/// When the time is over, with what `look` said last.
#[track_caller]
pub fn eventually<T, E: Display>(what: &str, look: impl FnMut() -> Result<T, E>) -> T {
    within(SETTLE_TIMEOUT, what, look)
}

/// As [`eventually`], with a time of its own.
///
/// # Panics
/// When the time is over, with what `look` said last.
#[track_caller]
pub fn within<T, E: Display>(
    timeout: Duration,
    what: &str,
    look: impl FnMut() -> Result<T, E>,
) -> T {
    match poll_until(timeout, LOOK_INTERVAL, look) {
        Ok(found) => found,
        Err(last) => panic!("not within {timeout:?}: {what}; seen last: {last:#}"),
    }
}

/// The pace of a load. Not for waiting: see [`poll_until`].
pub async fn pace(time: Duration) {
    tokio::time::sleep(time).await;
}
