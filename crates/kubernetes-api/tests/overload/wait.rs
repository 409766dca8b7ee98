//! All pauses of these tests: between two polls of a state, and in slow requests.

use std::time::Duration;

/// Pauses for a time.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Pauses between two polls of a state.
pub async fn pause_between_polls() {
    pause(Duration::from_millis(10)).await;
}
