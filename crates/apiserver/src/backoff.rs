//! Waiting between attempts: exponential, with a ceiling.

use std::time::Duration;

/// First pause after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// The pause before attempt number `failures`, counted from one.
pub fn pause_after(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX)).min(PAUSE_MAX)
}
