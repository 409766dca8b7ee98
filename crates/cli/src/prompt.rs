//! Questions to the person at the terminal. Without a terminal there is nobody to ask.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use crate::error::{CliError, Failure};
use crate::output;

/// Longest secret on stdin, in bytes.
const SECRET_SIZE_MAX: u64 = 64 * 1024;

/// Whether somebody can be asked.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a line. `instead`: what to give when nobody can be asked.
pub fn line(question: &str, instead: &str) -> Result<String, CliError> {
    if !is_interactive() {
        return Err(CliError::usage(format!("there is no terminal to ask for the {question}"))
            .hint(format!("give {instead}")));
    }
    eprint!("{}: ", output::harmless(question));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer)? == 0 {
        return Err(CliError::new(Failure::Other, format!("no {question} was given")));
    }
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}

/// As [`line`], without showing what is typed.
pub fn secret(question: &str, instead: &str) -> Result<String, CliError> {
    if !is_interactive() {
        return line(question, instead);
    }
    let quiet = Echo::off();
    let answer = line(question, instead);
    drop(quiet);
    eprintln!();
    answer
}

/// A secret given as a value, on stdin, or asked for, in this order.
pub fn given_or_asked(
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

/// A secret that is new: as [`given_or_asked`], but asked for twice, since nobody sees what is typed.
pub fn new_secret(
    given: Option<String>,
    on_stdin: bool,
    question: &str,
    instead: &str,
) -> Result<String, CliError> {
    if given.is_some() || on_stdin {
        return given_or_asked(given, on_stdin, question, instead);
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

/// Asks yes or no; anything but yes is no.
pub fn confirm(question: &str, instead: &str) -> Result<bool, CliError> {
    let answer = line(&format!("{question} [y/N]"), instead).map_err(|mut error| {
        if error.failure == Failure::Usage {
            error.message = format!("there is no terminal to ask: {question}");
        }
        error
    })?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The terminal does not show what is typed until this is dropped.
struct Echo;

impl Echo {
    fn off() -> Self {
        Self::stty("-echo");
        Self
    }
    /// A terminal without stty shows the input: a pity, not a failure.
    fn stty(mode: &str) {
        let status = Command::new("stty").arg(mode).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) && mode == "-echo" {
            tell!("warning: what you type will be shown");
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        Self::stty("echo");
    }
}
