//! Waits for a state by asking for it, with a deadline.

use std::time::Duration;

/// Longest wait for a state that must come.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Asks again and again until the answer is a yes.
pub async fn until<F: Future<Output = bool>>(what: &str, mut state: impl FnMut() -> F) {
    let reached = async {
        while !state().await {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}
