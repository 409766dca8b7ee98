//! The Common Expression Language as Kubernetes uses it in validation rules. Pure: no I/O, no
//! clock.
//!
//! [`Program::compile`] parses an expression and checks its types against the declared types of its
//! inputs. [`Program::estimate`] returns the maximum cost of an evaluation. [`Program::evaluate`]
//! evaluates it over JSON, without a copy, within a cost limit. Messages and costs are those of
//! `cel-go` and Kubernetes 1.36. No expression can overflow the stack, run without an end, or use
//! unbounded memory: see [`limits`].
//!
//! The crate does not know the meaning of a rule for an object, where rules are allowed, or how
//! they are reported; `structural-schema` does.

mod ast;
pub mod authorization;
mod build;
mod check;
pub mod compose;
pub mod declared;
mod equality;
pub mod estimate;
mod eval;
mod format;
mod functions;
mod json;
mod lexer;
mod library;
pub mod limits;
mod macros;
pub mod message;
mod operators;
mod parser;
pub mod pattern;
mod program;
mod runtime_cost;
pub mod source;
mod time;
pub mod types;
mod unify;
mod value;

pub use declared::{Declared, DeclaredKind, escape, is_reserved};
pub use estimate::Estimate;
pub use program::{EvalError, Given, Input, Program};
pub use source::CompileError;
pub use types::Type;
pub use value::{EvalFailure, EvalResult, Fields, List, Map, Text, Value};

#[cfg(test)]
mod tests;
