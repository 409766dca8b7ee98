//! Waiting for a state by looking at it again and again: the only place of these tests that sleeps.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between two looks, and between two writes of a writer.
const INTERVAL: Duration = Duration::from_millis(5);

/// What `look` finds, within `wait_max`.
///
/// # Panics
/// With `wanted` when the time is over.
pub async fn until<T>(wait_max: Duration, wanted: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + wait_max;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {wait_max:?}: {wanted}");
        pause().await;
    }
}

pub async fn pause() {
    sleep(INTERVAL).await;
}
