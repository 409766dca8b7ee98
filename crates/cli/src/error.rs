//! Failures, by exit code.

use std::fmt;

use crate::denied::Denied;

/// Kinds of failure. Scripts depend on the exit code, so a code never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No more specific kind applies.
    Other,
    /// The command line is invalid.
    Usage,
    /// Not logged in, or the login is not valid any more.
    Unauthenticated,
    /// Logged in, but not authorized.
    Forbidden,
    /// No such object.
    NotFound,
    /// The name is taken, or names several objects.
    Conflict,
    /// The server rejected the request as invalid.
    Invalid,
    /// The server or the cluster does not respond.
    Unreachable,
    /// The timeout expired.
    Timeout,
}

impl Failure {
    /// All failures with their meaning, as the reference lists them.
    pub const TABLE: &[(Failure, &str)] = &[
        (Self::Other, "the command failed"),
        (Self::Usage, "the command line is wrong"),
        (Self::Unauthenticated, "not logged in, or the login has expired"),
        (Self::Forbidden, "not allowed"),
        (Self::NotFound, "no such object"),
        (Self::Conflict, "the name is taken or ambiguous"),
        (Self::Invalid, "the server refused the input"),
        (Self::Unreachable, "the server or the cluster does not respond"),
        (Self::Timeout, "timed out"),
    ];

    /// The exit code of the program. Each failure has its own, and none ever changes.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Other => 1,
            Self::Usage => 2,
            Self::Unauthenticated => 3,
            Self::Forbidden => 4,
            Self::NotFound => 5,
            Self::Conflict => 6,
            Self::Invalid => 7,
            Self::Unreachable => 8,
            Self::Timeout => 9,
        }
    }
}

/// A failure as the user reads it: what was attempted on which object, and what to do next.
#[derive(Debug)]
pub struct CliError {
    pub failure: Failure,
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The forbidden request, to find out who can grant the right.
    pub denied: Option<Box<Denied>>,
}

impl CliError {
    /// An error without a hint. `message` says what happened and why.
    pub fn new(failure: Failure, message: impl Into<String>) -> Self {
        Self { failure, message: message.into(), hint: None, denied: None }
    }
    /// Adds the next step of the user.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Prefixes the message with the step during which it happened.
    pub fn during(mut self, step: &str) -> Self {
        self.message = format!("{step}: {}", self.message);
        self
    }
    /// An invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Failure::Usage, message)
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Failure::Other, error.to_string())
    }
}
