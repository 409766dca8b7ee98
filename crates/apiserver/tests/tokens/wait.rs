//! Waiting for a state that comes on somebody else's time.

use std::time::Duration;

const ATTEMPTS: usize = 500;
const INTERVAL: Duration = Duration::from_millis(20);

/// Asks again and again until the answer is a yes.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..ATTEMPTS {
        if holds().await {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    panic!("{what}: not within {:?}", INTERVAL * ATTEMPTS as u32);
}
