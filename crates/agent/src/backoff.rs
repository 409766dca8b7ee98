//! When to retry. Pure: the caller supplies the random number.

use std::time::Duration;

/// Longest pause after a session that worked. It is random, so that a thousand agents do not
/// reconnect at once.
const FIRST: Duration = Duration::from_millis(500);
/// Longest pause while the server may be back at any moment.
const LONGEST: Duration = Duration::from_secs(8);
/// Pause after a refusal, which only a user or a new manifest can change.
const REFUSED: Duration = Duration::from_secs(60);

/// Counts consecutive failures.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A session was open: the next attempt follows soon.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause after a transient error. `random` in 0..1 spreads agents over the pause.
    pub(crate) fn soon(&mut self, random: f64) -> Duration {
        let pause = FIRST * 2_u32.saturating_pow(self.failures.min(16));
        let is_first = self.failures == 0;
        self.failures = self.failures.saturating_add(1);
        // The first pause may be zero; the others are at least half, so that the load falls.
        let share = if is_first { random } else { 0.5 + random / 2.0 };
        pause.min(LONGEST).mul_f64(share)
    }

    /// The pause after a refusal.
    pub(crate) fn late(&mut self, random: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        REFUSED.mul_f64(0.5 + random / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_start_again_after_success() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..8).map(|_| backoff.soon(0.999)).collect();
        assert!(pauses[0] < FIRST && pauses.is_sorted(), "{pauses:?}");
        assert!(pauses[7] <= LONGEST);
        backoff.reset();
        assert_eq!(backoff.soon(0.0), Duration::ZERO, "at once after a session that worked");
        assert!(backoff.soon(0.0) >= FIRST / 2);
        assert!(backoff.late(0.0) >= REFUSED / 2);
    }
}
