//! The only pause of this test: between two polls of a state.

use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(5);

pub async fn pause_between_polls() {
    tokio::time::sleep(LOOK_EVERY).await;
}
