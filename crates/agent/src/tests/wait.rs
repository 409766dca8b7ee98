//! Waiting for states.

use std::time::Duration;

/// Polls a predicate over state.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = tokio::time::timeout(Duration::from_secs(20), async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waiting.await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}
