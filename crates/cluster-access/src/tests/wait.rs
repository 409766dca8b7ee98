//! Waiting for states, and letting a paused clock run.

use std::time::Duration;

/// Lets a paused clock run on, with everything that is due meanwhile. Takes no time.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
