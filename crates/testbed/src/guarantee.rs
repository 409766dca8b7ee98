//! Which tests get no second try.
//!
//! A test with real parts that fails is run once more, alone, and may then pass as flaky. Where Drover
//! promises that something never happens, one failure in a thousand runs is the finding.

use std::fmt;

/// Begins the line that a marked test prints; the test runner looks for it in the output of failures.
pub const NO_SECOND_TRY: &str = "no second try: ";

/// What a test guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// What was acknowledged is there.
    Durability,
    /// All see one history.
    Consistency,
    /// A right that ended is not used any more.
    Revocation,
    /// Nobody does what they may not.
    Rights,
    /// Nobody learns what they may not.
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
    // The test program keeps it, and shows it when the test has failed.
    println!("{NO_SECOND_TRY}{guarantee}");
}
