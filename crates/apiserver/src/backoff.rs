//! Backoff between attempts: exponential, with a maximum.

use std::time::Duration;

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The maximum pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// The pause after `failures` consecutive failures: it doubles with each, from twice [`PAUSE_MIN`]
/// to [`PAUSE_MAX`].
pub fn pause_after(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX)).min(PAUSE_MAX)
}
