//! Waiting for what comes on another server's time.

use std::time::Duration;

use tokio::time::Instant;

const WAIT_MAX: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(50);

/// Asks again and again until the answer is a yes.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let told = async || if holds().await { Ok(()) } else { Err("not yet".to_owned()) };
    state(what, told).await;
}

/// As [`until`]; a no comes with what is there instead.
pub async fn state(what: &str, mut holds: impl AsyncFnMut() -> Result<(), String>) {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match holds().await {
            Ok(()) => return,
            Err(last) => assert!(Instant::now() < end, "{what}: not in time, but {last}"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
