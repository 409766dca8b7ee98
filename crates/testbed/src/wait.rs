//! Waiting for a state by looking at it again and again: the only place of this crate that sleeps.

use std::time::{Duration, Instant};

/// Calls `look` every `interval` until it gives `Ok` or `timeout` has passed.
///
/// `look` is called at least once, and once more at the deadline.
///
/// # Errors
/// What `look` said last, when the time is over.
pub fn poll_until<T, E>(
    timeout: Duration,
    interval: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let deadline = Instant::now() + timeout;
    loop {
        let last_look = Instant::now() >= deadline;
        match look() {
            Ok(found) => return Ok(found),
            Err(last) if last_look => return Err(last),
            Err(_) => pause(interval),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a state")]
fn pause(interval: Duration) {
    std::thread::sleep(interval);
}
