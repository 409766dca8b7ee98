//! Waits for a state by polling: the only module of this crate that sleeps.

use std::time::{Duration, Instant};

/// Calls `probe` every `interval` until it returns `Ok` or `timeout` has passed.
///
/// `probe` is called at least once, and once more at the deadline.
///
/// # Errors
/// The last error of `probe`, when `timeout` has passed.
pub fn poll_until<T, E>(
    timeout: Duration,
    interval: Duration,
    mut probe: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let deadline = Instant::now() + timeout;
    loop {
        let last_look = Instant::now() >= deadline;
        match probe() {
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
