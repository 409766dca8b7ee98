//! System commands that run to completion: their output, or why they failed.

use std::process::Command;

use crate::Error;

/// Runs `command` and returns its standard output.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let outcome = match command.output() {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("{}: {}", output.status, said.trim())
        }
        Err(cause) => cause.to_string(),
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Err(Error::Command { command: words.join(" "), outcome })
}
