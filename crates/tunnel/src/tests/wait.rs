//! Waiting for states, and letting a paused clock run.

use std::time::Duration;

use super::harness::SECOND;

/// Polls a predicate over state. Lets other tasks run in between; on a paused clock this takes no
/// time.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    let waiting = tokio::time::timeout(60 * SECOND, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waiting.await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Lets a paused clock run on, with everything that is due meanwhile. Takes no time.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
