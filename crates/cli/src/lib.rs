//! The commands people type: log in, import and use clusters, projects, people and their roles, and
//! objects of any type.
//!
//! All of them are clients of the public API `/v3` and of nothing else; `cluster import` also talks
//! to the cluster it imports. Data goes to stdout, everything else to stderr, and the exit code
//! says what kind of failure it was ([`error::Failure`]). [`args`] is what can be typed, [`commands`]
//! what it does. `docs/reference/cli.md` is the reference for people.

#[macro_use]
mod output;

mod api;
mod apply;
pub mod args;
mod checklist;
mod commands;
mod completion;
mod config;
mod denied;
mod effect;
pub mod error;
mod http;
mod prompt;
mod similar;
mod tls;
mod types;

use std::process::ExitCode;

pub use args::CliArgs;
pub use completion::answer_shell;
pub use error::{CliError, Failure};

/// Runs one command to its end and reports a failure on stderr.
///
/// A process-wide TLS provider must be installed already. Exit codes: 0 for success, the code of [`Failure`], or for `kubectl`
/// the code of the program that ran.
pub async fn run(args: CliArgs) -> ExitCode {
    match commands::run(args).await {
        Ok(code) => code,
        Err(error) => {
            tell!("error: {}", error.message);
            if let Some(hint) = &error.hint {
                tell!("hint: {hint}");
            }
            if let Some(denied) = &error.denied {
                tell!("hint: {}", denied.explain().await);
            }
            ExitCode::from(error.failure.exit_code())
        }
    }
}

#[cfg(test)]
mod tests;
