//! RBAC rules held against requests. Pure: no lookups, no clock, no knowledge of who holds which
//! rule.
//!
//! [`rule`] decides whether a rule allows a request. [`cover`] decides whether the rules somebody
//! holds cover the rules he wants to grant, and puts what is missing into the words that clients
//! know. [`text`] quotes as Go does, because those words are compared by tests and tools.

pub mod cover;
pub mod rule;
pub mod text;

pub use cover::covers;
pub use rule::{Action, PolicyRule, rules_allow};

#[cfg(test)]
mod tests;
