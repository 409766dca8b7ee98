//! Waiting for what a server does in its own time: the one way of all these tests.

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for a state that must come, on a machine that has much else to do.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// What a look at a state says.
pub trait Look {
    type Found;

    /// What was waited for.
    ///
    /// # Errors
    /// What there is instead.
    fn verdict(self) -> Result<Self::Found, String>;
}

impl Look for bool {
    type Found = ();

    fn verdict(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("a no".to_owned()) }
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn verdict(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T> Look for Result<T, String> {
    type Found = T;

    fn verdict(self) -> Self {
        self
    }
}

/// Looks again and again until it is as it must be, and gives what was found.
///
/// # Panics
/// When it never is: with what there was last.
pub async fn until<L: Look>(what: &str, mut look: impl AsyncFnMut() -> L) -> L::Found {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match look().await.verdict() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < end, "{what}: not in time, but {last}"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
