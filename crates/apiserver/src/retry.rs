//! The backoff of all controllers inside the API server.

use std::time::Duration;

use backoff::Backoff;

/// Delays before failed work is retried.
pub const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(15));
