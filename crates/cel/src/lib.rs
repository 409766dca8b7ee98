//! The Common Expression Language as Kubernetes uses it in validation rules. Pure: no I/O, no clock.
//!
//! [`Program::compile`] parses an expression and checks its types against what is declared of its
//! inputs; [`Program::estimate`] says what evaluating it costs at most; [`Program::evaluate`]
//! evaluates it over JSON, without copying it, within a cost limit. Messages and costs are those of
//! `cel-go` and Kubernetes 1.36. Nothing a rule says can overflow the stack, run without end, or
//! take memory without bound: see [`limits`].
//!
//! What a rule means for an object, where it may stand and how it is reported, is not known here;
//! `structural-schema` does that.

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
pub use value::{Failure, Fields, List, Map, Outcome, Text, Value};

#[cfg(test)]
mod tests;
