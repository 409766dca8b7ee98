//! Waiting for a state of the server, which follows configurations on its own time.

use std::time::Duration;

const ATTEMPTS: usize = 400;
const INTERVAL: Duration = Duration::from_millis(50);

pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..ATTEMPTS {
        if holds().await {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
    panic!("{what}: not within {:?}", INTERVAL * ATTEMPTS as u32);
}

/// Longer than any timeout of a webhook in these tests.
pub async fn hang() {
    tokio::time::sleep(Duration::from_secs(120)).await;
}
