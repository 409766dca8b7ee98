//! RBAC rules evaluated against requests and grants. Pure: no lookups, no clock, no knowledge of
//! who holds which rule.
//!
//! [`rule`] decides whether a rule allows a request. [`cover`] decides whether the rules of a user
//! cover the rules that the user wants to grant, and describes what is missing in the text that
//! clients know. [`text`] quotes like Go, because tests and tools compare that text.

pub mod cover;
pub mod rule;
pub mod text;

pub use cover::covers;
pub use rule::{PolicyRule, RequestedAction, rules_allow};

#[cfg(test)]
mod tests;
