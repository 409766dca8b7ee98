//! Polls a state: the only file of these tests that sleeps.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Pause between two polls, and between two writes of a writer.
const INTERVAL: Duration = Duration::from_millis(5);

/// The value that `find` finds, within `wait_max`.
///
/// # Panics
/// With `expected` after that time.
pub async fn until<T>(wait_max: Duration, expected: &str, find: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + wait_max;
    loop {
        if let Some(found) = find().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {wait_max:?}: {expected}");
        pause().await;
    }
}

pub async fn pause() {
    sleep(INTERVAL).await;
}
