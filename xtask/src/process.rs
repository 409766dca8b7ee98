//! Runs other programs, and reports which one failed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Runs `command` with the standard streams of this process. Anything but success is an error with
/// its command line.
pub fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// The command line, for messages.
pub fn command_line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    if let Some((_, name)) = line.rsplit_once('/') {
        line = name.to_owned();
    }
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// `3.4 min` or `12.0 s`.
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1} s") } else { format!("{:.1} min", seconds / 60.0) }
}
