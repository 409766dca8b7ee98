//! Delays between attempts that fail: exponential, up to a maximum, with jitter.
//!
//! A [`Backoff`] is a constant of its user. The user counts consecutive failures, per key if it has
//! keys, and sets the count to 0 after a success. The crate `backon` is not used, because its
//! iterators have to be stored per key, and its jitter lengthens delays beyond their maximum.

use std::time::Duration;

/// The delays after consecutive failures.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    initial: Duration,
    maximum: Duration,
    factor: f64,
    jitter: f64,
}

impl Backoff {
    /// `initial` after the first failure, twice as long after each further one, at most `maximum`.
    /// Without jitter.
    pub const fn new(initial: Duration, maximum: Duration) -> Self {
        Self { initial, maximum, factor: 2.0, jitter: 0.0 }
    }

    /// Each delay is `factor` times the one before instead of twice.
    ///
    /// # Panics
    /// `factor` is below 1.
    #[must_use]
    pub const fn with_factor(self, factor: f64) -> Self {
        assert!(factor >= 1.0, "delays do not get shorter");
        Self { factor, ..self }
    }

    /// Subtracts a random part of up to `share` (0 to 1) from each delay, so that those that failed
    /// together do not retry together.
    ///
    /// # Panics
    /// `share` is not from 0 to 1.
    #[must_use]
    pub const fn with_jitter(self, share: f64) -> Self {
        assert!(0.0 <= share && share <= 1.0, "a delay is not negative");
        Self { jitter: share, ..self }
    }

    /// The delay after this many consecutive failures. 0 counts as 1.
    pub fn delay(&self, failures: u32) -> Duration {
        let random = if self.jitter > 0.0 { rand::random() } else { 0.0 };
        self.delay_at(failures, random)
    }

    /// `random` from 0 to 1 is the part of the jitter that is subtracted.
    fn delay_at(&self, failures: u32, random: f64) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        // Infinite at worst, which the maximum limits.
        let grown = self.initial.as_secs_f64() * self.factor.powi(exponent);
        let full = if grown < self.maximum.as_secs_f64() {
            Duration::from_secs_f64(grown)
        } else {
            self.maximum
        };
        full.mul_f64(1.0 - self.jitter * random)
    }
}

#[cfg(test)]
mod tests;
