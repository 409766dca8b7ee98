//! Pauses between requests to the server, and between writes whose times must differ.

use std::time::Duration;

pub async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}
