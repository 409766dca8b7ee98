//! Waits for a state by polling, with a deadline.

use std::time::Duration;

/// Longest wait for an expected state.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two polls.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Polls until `holds` is true.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let reached = async {
        while !holds().await {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}
