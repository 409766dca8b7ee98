//! The one place where this test pauses: between two looks at a state.

use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(5);

pub async fn look_again() {
    tokio::time::sleep(LOOK_EVERY).await;
}
