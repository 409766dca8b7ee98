//! Tests without a second try.
//!
//! A failed test with real components is run once more, alone, and may then pass as flaky. Where
//! Drover guarantees that something never happens, one failure in a thousand runs is a finding.

use std::fmt;

/// Prefix of the line that a marked test prints; the test runner searches the output of failures
/// for it.
pub const NO_SECOND_TRY: &str = "no second try: ";

/// The guarantee that a test checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Acknowledged writes survive.
    Durability,
    /// All clients observe one history.
    Consistency,
    /// Revoked rights and credentials have no effect.
    Revocation,
    /// No caller does more than its rights allow.
    Rights,
    /// No caller reads more than its rights allow.
    Secrecy,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Durability => "durability",
            Self::Consistency => "consistency",
            Self::Revocation => "revocation",
            Self::Rights => "rights",
            Self::Secrecy => "secrecy",
        })
    }
}

/// Marks the running test as one that fails for good when it fails once. Called first in the test,
/// before anything that can fail.
pub fn no_second_try(guarantee: Guarantee) {
    // The test harness captures it, and shows it when the test has failed.
    println!("{NO_SECOND_TRY}{guarantee}");
}
