//! Runs other programs and says which one failed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Runs `command` with our standard streams; anything but success is an error with its name.
pub fn succeed(command: &mut Command) -> Result<()> {
    let line = shown(command);
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// The command as one would type it.
pub fn shown(command: &Command) -> String {
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
pub fn length(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1} s") } else { format!("{:.1} min", seconds / 60.0) }
}
