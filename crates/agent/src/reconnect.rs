//! When to connect again.

use std::time::Duration;

use backoff::Backoff;

/// Longest pause after a session that worked. It is random from zero on, so that a thousand agents
/// do not reconnect at once.
const RESUME_MAX: Duration = Duration::from_millis(500);
/// Pauses while the server may be back at any moment.
const RETRY: Backoff =
    Backoff::new(Duration::from_secs(1), Duration::from_secs(8)).with_jitter(0.5);
/// Longest pause after a refusal, which only a user or a new manifest can change.
const REFUSED_MAX: Duration = Duration::from_secs(60);
const REFUSED: Backoff = Backoff::new(REFUSED_MAX, REFUSED_MAX).with_jitter(0.5);

/// Counts consecutive failures.
#[derive(Debug, Default)]
pub(crate) struct ReconnectPauses {
    failures: u32,
}

impl ReconnectPauses {
    /// A session was open: the next attempt follows soon.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause after a transient error.
    pub(crate) fn soon(&mut self) -> Duration {
        let pause = match self.failures {
            0 => RESUME_MAX.mul_f64(rand::random()),
            failures => RETRY.delay(failures),
        };
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// The pause after a refusal.
    pub(crate) fn late(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        REFUSED.delay(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_start_again_after_success() {
        let mut pauses = ReconnectPauses::default();
        assert!(pauses.soon() <= RESUME_MAX);
        for seconds in [1, 2, 4, 8, 8, 8] {
            let longest = Duration::from_secs(seconds);
            let pause = pauses.soon();
            assert!((longest / 2..=longest).contains(&pause), "{pause:?} of {longest:?}");
        }
        let late = pauses.late();
        assert!((REFUSED_MAX / 2..=REFUSED_MAX).contains(&late), "{late:?}");
        pauses.reset();
        assert!(pauses.soon() <= RESUME_MAX, "soon after a session that worked");
    }
}
