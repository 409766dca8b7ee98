//! What a driver writes to its standard output and its standard error: the last lines, whatever it
//! writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Lines that stay; older ones are dropped.
const LINES_MAX: usize = 500;
/// Of one line; the rest of a longer one is the next line.
const LINE_BYTES_MAX: usize = 4096;
/// Lines in an error.
const ENDING_LINES: usize = 5;
/// What was written before the end may not have been read yet.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// The last lines of a driver's output. Clones have the same lines.
#[derive(Clone, Debug, Default)]
pub struct DriverLog {
    lines: Arc<Mutex<LastLines>>,
}

#[derive(Debug, Default)]
struct LastLines {
    /// Lines that were dropped before these.
    dropped: u64,
    lines: VecDeque<String>,
}

impl DriverLog {
    /// The lines so far, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().lines.iter().cloned().collect()
    }

    /// The lines after the first `seen` of all that were ever written, as far as they are not
    /// dropped; and the number of all.
    pub fn since(&self, seen: u64) -> (Vec<String>, u64) {
        let LastLines { dropped, lines } = &*self.lines.lock();
        let skipped = usize::try_from(seen.saturating_sub(*dropped)).unwrap_or(usize::MAX);
        (lines.iter().skip(skipped).cloned().collect(), dropped + lines.len() as u64)
    }

    /// Adds what comes from the output, until it ends.
    pub(crate) fn follow(&self, output: Option<impl AsyncRead + Send + Unpin + 'static>) {
        let Some(output) = output else { return };
        let log = self.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::with_capacity(LINE_BYTES_MAX, output);
            let mut line = Vec::new();
            loop {
                let (used, ends_line) = match reader.fill_buf().await {
                    Ok([]) | Err(_) => break,
                    Ok(bytes) => match bytes.iter().position(|&byte| byte == b'\n') {
                        Some(end) => {
                            line.extend_from_slice(&bytes[..end]);
                            (end + 1, true)
                        }
                        None => {
                            line.extend_from_slice(bytes);
                            (bytes.len(), line.len() >= LINE_BYTES_MAX)
                        }
                    },
                };
                reader.consume(used);
                if ends_line {
                    log.push(&std::mem::take(&mut line));
                }
            }
            if !line.is_empty() {
                log.push(&line);
            }
        });
    }

    /// Adds a line about the driver that it did not write itself.
    pub(crate) fn note(&self, line: &str) {
        self.push(line.as_bytes());
    }

    fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let LastLines { dropped, lines } = &mut *self.lines.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
            *dropped += 1;
        }
        // Sequences for terminals must not reach the terminal of who reads this.
        lines.push_back(line.trim_end().replace(|c: char| c.is_control() && c != '\t', "\u{fffd}"));
    }

    /// The last lines as a part of a sentence.
    pub(crate) async fn ending(&self) -> String {
        tokio::time::sleep(SETTLE_TIME).await;
        let lines = self.lines();
        let last = &lines[lines.len().saturating_sub(ENDING_LINES)..];
        if last.is_empty() {
            return "; it wrote no log".to_owned();
        }
        format!("; it wrote last: {}", last.join(" | "))
    }
}
