//! Waits for a state by asking for it, with a deadline.

use std::time::Duration;

/// Longest wait for a state that must come.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(10);

/// Asks again and again until the answer is a yes.
pub async fn until<F: Future<Output = bool>>(what: &str, mut state: impl FnMut() -> F) {
    until_some(what, || {
        let state = state();
        async { state.await.then_some(()) }
    })
    .await;
}

/// Asks again and again until there is an answer.
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
