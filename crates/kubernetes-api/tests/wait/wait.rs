//! Waits for asynchronous effects of a server: all these tests use it.

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for a state, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Time between two polls.
const INTERVAL: Duration = Duration::from_millis(20);

/// The result of a poll.
pub trait PollResult {
    type Value;

    /// The value that was waited for.
    ///
    /// # Errors
    /// Describes the current state when it is another one.
    fn into_result(self) -> Result<Self::Value, String>;
}

impl PollResult for bool {
    type Value = ();

    fn into_result(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("a no".to_owned()) }
    }
}

impl<T> PollResult for Option<T> {
    type Value = T;

    fn into_result(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T> PollResult for Result<T, String> {
    type Value = T;

    fn into_result(self) -> Self {
        self
    }
}

/// Polls until the state is as expected, and returns the value.
///
/// # Panics
/// When the state does not become so in time; prints the last one.
pub async fn until<L: PollResult>(what: &str, mut poll: impl AsyncFnMut() -> L) -> L::Value {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match poll().await.into_result() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < end, "{what}: not in time, but {last}"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
