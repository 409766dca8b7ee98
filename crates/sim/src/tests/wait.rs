//! Waits for a state by polling, with a deadline.

use std::time::Duration;

/// Longest wait for an expected state.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Time between two polls.
const INTERVAL: Duration = Duration::from_millis(10);

/// Polls until the state holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut state: impl FnMut() -> F) {
    until_some(what, || {
        let state = state();
        async { state.await.then_some(()) }
    })
    .await;
}

/// Polls until there is a value.
pub async fn until_some<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut state: impl FnMut() -> F,
) -> T {
    let reached = async {
        loop {
            if let Some(found) = state().await {
                return found;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, reached).await.unwrap_or_else(|_| panic!("never: {what}"))
}
