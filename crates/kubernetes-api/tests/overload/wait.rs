//! The one place where these tests pause: between two looks at a state, and to be slow on purpose.

use std::time::Duration;

/// Does nothing for a while.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Between two looks at a state.
pub async fn look_again() {
    pause(Duration::from_millis(10)).await;
}
