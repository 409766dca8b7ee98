//! The commands that users type: log in, import and use clusters, manage projects, users and their
//! roles, and objects of any type.
//!
//! All of them are clients of the public API `/v3` and of nothing else; `cluster import` also
//! connects to the cluster that it imports. Data goes to stdout, everything else to stderr, and the
//! exit code gives the kind of failure ([`error::Failure`]). [`args`] defines the command line,
//! [`commands`] runs it. `docs/reference/cli.md` is the reference for users.

#[macro_use]
mod output;

mod api;
mod apply;
pub mod args;
pub mod browser;
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
pub use completion::complete_line;
pub use error::{CliError, Failure};

/// Runs one command to its end and reports a failure on stderr.
///
/// A process-wide TLS provider must be installed already. Exit codes: 0 for success, the code of
/// [`Failure`], or for `kubectl` the exit code of the program that ran.
pub async fn run(args: CliArgs) -> ExitCode {
    match commands::run(args).await {
        Ok(code) => code,
        Err(error) => {
            notify!("error: {}", error.message);
            if let Some(hint) = &error.hint {
                notify!("hint: {hint}");
            }
            if let Some(denied) = &error.denied {
                notify!("hint: {}", denied.explain().await);
            }
            ExitCode::from(error.failure.exit_code())
        }
    }
}

#[cfg(test)]
mod tests;
