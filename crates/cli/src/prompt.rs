//! Prompts at the terminal. Without a terminal, each prompt is a usage error.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use crate::error::{CliError, Failure};
use crate::output;

/// Longest secret on stdin, in bytes.
const SECRET_SIZE_MAX: u64 = 64 * 1024;

/// Whether a user can be prompted: stdin and stderr are terminals.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prompts for a line. `instead`: the argument that the error suggests when there is no terminal.
pub fn line(question: &str, instead: &str) -> Result<String, CliError> {
    if !is_interactive() {
        return Err(CliError::usage(format!("there is no terminal to prompt for the {question}"))
            .hint(format!("give {instead}")));
    }
    eprint!("{}: ", output::harmless(question));
    std::io::stderr().flush()?;
    let mut input = String::new();
    if std::io::stdin().lock().read_line(&mut input)? == 0 {
        return Err(CliError::new(Failure::Other, format!("no {question} was given")));
    }
    Ok(input.trim_end_matches(['\r', '\n']).to_owned())
}

/// Like [`line`], without echoing the input.
pub fn secret(question: &str, instead: &str) -> Result<String, CliError> {
    if !is_interactive() {
        return line(question, instead);
    }
    let quiet = Echo::off();
    let input = line(question, instead);
    drop(quiet);
    eprintln!();
    input
}

/// Reads a secret: the given value, else stdin, else a prompt.
pub fn read_secret(
    given: Option<String>,
    on_stdin: bool,
    question: &str,
    instead: &str,
) -> Result<String, CliError> {
    match given {
        Some(secret) => Ok(secret),
        None if on_stdin => secret_on_stdin(question),
        None => secret(question, instead),
    }
}

/// Reads a new secret: like [`read_secret`], but prompts twice, because the input is not echoed.
pub fn new_secret(
    given: Option<String>,
    on_stdin: bool,
    question: &str,
    instead: &str,
) -> Result<String, CliError> {
    if given.is_some() || on_stdin {
        return read_secret(given, on_stdin, question, instead);
    }
    let typed = secret(question, instead)?;
    if secret(&format!("{question}, again"), instead)? == typed {
        return Ok(typed);
    }
    Err(CliError::new(Failure::Other, format!("the two entries of the {question} differ"))
        .hint("nothing was changed; try again"))
}

/// The next line of stdin.
pub fn secret_on_stdin(what: &str) -> Result<String, CliError> {
    let mut text = String::new();
    std::io::stdin().lock().take(SECRET_SIZE_MAX).read_line(&mut text)?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(CliError::usage(format!("stdin has no {what}"))
            .hint("write it to stdin, such as: drover ... < FILE"));
    }
    Ok(secret.to_owned())
}

/// Prompts for yes or no; anything but yes is no.
pub fn confirm(question: &str, instead: &str) -> Result<bool, CliError> {
    let input = line(&format!("{question} [y/N]"), instead).map_err(|mut error| {
        if error.failure == Failure::Usage {
            error.message = format!("there is no terminal for the question: {question}");
        }
        error
    })?;
    Ok(matches!(input.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The terminal does not echo input until this is dropped.
struct Echo;

impl Echo {
    fn off() -> Self {
        Self::stty("-echo");
        Self
    }
    /// Without stty the terminal echoes the input: a warning, not an error.
    fn stty(mode: &str) {
        let status = Command::new("stty").arg(mode).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) && mode == "-echo" {
            notify!("warning: what you type will be shown");
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        Self::stty("echo");
    }
}
