//! A live checklist on stderr: one line per step, the current one redrawn on terminals.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output;

/// Steps that complete one after the other.
pub struct Checklist<W> {
    out: W,
    live: bool,
    quiet: bool,
    current: Option<(String, Instant, String)>,
}

impl Checklist<std::io::Stderr> {
    /// A checklist on stderr, redrawn if that is a terminal.
    pub fn on_stderr() -> Self {
        let out = std::io::stderr();
        let live = out.is_terminal();
        Self::new(out, live)
    }
    /// Shows nothing unless stderr is a terminal.
    pub fn on_terminal() -> Self {
        let list = Self::on_stderr();
        Self { quiet: !list.live, ..list }
    }
}

impl<W: Write> Checklist<W> {
    /// `live`: the current line is drawn at once and redrawn. Otherwise lines are written when they
    /// are final, and details when they change.
    pub fn new(out: W, live: bool) -> Self {
        Self { out, live, quiet: false, current: None }
    }

    /// Begins a step.
    pub fn begin(&mut self, step: &str) {
        self.current = Some((step.to_owned(), Instant::now(), String::new()));
        if self.live {
            self.draw(&format!("… {step}"), false);
        }
    }
    /// Shows the progress of the current step. An unchanged detail is not repeated.
    pub fn detail(&mut self, detail: &str) {
        let Some((step, _, last)) = &mut self.current else { return };
        if detail.is_empty() || last == detail {
            return;
        }
        detail.clone_into(last);
        let line = format!("… {step}: {detail}");
        self.draw(&line, !self.live);
    }
    /// Completes the current step.
    pub fn done(&mut self, result: &str) {
        if let Some((step, since, _)) = self.current.take() {
            let result = if result.is_empty() { String::new() } else { format!(": {result}") };
            let line = format!("✓ {step}{result}{}", elapsed_text(since.elapsed()));
            self.draw(&line, true);
        }
    }
    /// Marks the current step as failed.
    pub fn fail(&mut self) {
        if let Some((step, since, _)) = self.current.take() {
            let line = format!("✗ {step}{}", elapsed_text(since.elapsed()));
            self.draw(&line, true);
        }
    }
    /// The step under way.
    pub fn current(&self) -> &str {
        self.current.as_ref().map_or("", |(step, ..)| step)
    }

    /// Stderr may have no reader; a failed write is only logged.
    fn draw(&mut self, line: &str, end: bool) {
        if self.quiet {
            return;
        }
        let line = output::harmless(line).replace('\n', " ");
        let (start, end) = (if self.live { "\r\x1b[2K" } else { "" }, if end { "\n" } else { "" });
        let written = write!(self.out, "{start}{line}{end}").and_then(|()| self.out.flush());
        if let Err(error) = written {
            tracing::debug!(%error, "writing progress");
        }
    }
}

/// The elapsed time for a line; empty below half a second.
fn elapsed_text(elapsed: Duration) -> String {
    if elapsed < Duration::from_millis(500) {
        return String::new();
    }
    format!(" ({:.1} s)", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_only_final_lines_and_changed_details_are_written() {
        let mut out = Vec::new();
        let mut list = Checklist::new(&mut out, false);
        list.begin("agent");
        list.detail("waiting");
        list.detail("waiting");
        list.done("connected");
        list.begin("nodes");
        assert_eq!(list.current(), "nodes");
        list.fail();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "… agent: waiting\n✓ agent: connected\n✗ nodes\n");
    }
}
