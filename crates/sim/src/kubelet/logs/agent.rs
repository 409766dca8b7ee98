//! The log of an agent, which runs as a real process: the file with its output.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::LogLine;
use crate::agent::{LOG_FILE, PREVIOUS_LOG_FILE};

/// Only the end of a longer file is shown, in bytes.
const SHOWN_SIZE_MAX: u64 = 1024 * 1024;
/// How often a followed log is polled.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// The log file of an agent, read from its start.
pub struct AgentLog {
    path: PathBuf,
    /// Offset up to which the file was read.
    offset: u64,
    /// The unfinished last line.
    begun: String,
    /// Time of the last line that has one.
    at: Timestamp,
    /// Lines that were read and not yet returned.
    waiting: std::collections::VecDeque<LogLine>,
}

impl AgentLog {
    /// The log of the pod with this UID, if it runs as a real process.
    pub fn find(pods: &Path, uid: &str) -> Option<Self> {
        let path = pods.join(uid).join(LOG_FILE);
        path.exists().then(|| Self::at(path))
    }

    /// The lines of the previous run.
    pub async fn previous(pods: &Path, uid: &str) -> std::io::Result<Option<Vec<LogLine>>> {
        let path = pods.join(uid).join(PREVIOUS_LOG_FILE);
        if !path.exists() {
            return Ok(None);
        }
        Self::at(path).read().await.map(Some)
    }

    fn at(path: PathBuf) -> Self {
        let begun = String::new();
        let waiting = std::collections::VecDeque::new();
        Self { path, offset: 0, begun, at: Timestamp::UNIX_EPOCH, waiting }
    }

    /// Reads all lines that were written since the last call.
    pub async fn read(&mut self) -> std::io::Result<Vec<LogLine>> {
        let mut file = tokio::fs::File::open(&self.path).await?;
        let size = file.metadata().await?.len();
        if size < self.offset {
            // The file was truncated.
            (self.offset, self.begun) = (0, String::new());
        }
        let from = self.offset.max(size.saturating_sub(SHOWN_SIZE_MAX));
        let skips = from > self.offset;
        file.seek(SeekFrom::Start(from)).await?;
        let mut bytes = Vec::new();
        file.take(SHOWN_SIZE_MAX).read_to_end(&mut bytes).await?;
        self.offset = from + bytes.len() as u64;
        self.begun.push_str(&String::from_utf8_lossy(&bytes));
        let text = std::mem::take(&mut self.begun);
        let mut lines: Vec<&str> = text.split('\n').collect();
        self.begun = lines.pop().unwrap_or_default().to_owned();
        let lines = lines.into_iter().skip(usize::from(skips));
        Ok(lines.map(|line| self.line(line)).collect())
    }

    /// Agents begin a line with its time.
    fn line(&mut self, text: &str) -> LogLine {
        let time = text.split(' ').next().unwrap_or_default().parse::<Timestamp>();
        self.at = time.unwrap_or(self.at);
        LogLine { at: self.at, text: text.to_owned() }
    }

    /// Waits for the next line; `None` when the file has been removed.
    pub async fn next_line(&mut self) -> Option<LogLine> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Some(line);
            }
            self.waiting = self.read().await.ok()?.into();
            if self.waiting.is_empty() {
                tokio::time::sleep(POLL_EVERY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn an_agents_log_is_its_file_with_the_times_of_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let pod = folder.path().join("uid");
        std::fs::create_dir(&pod).unwrap();
        assert!(AgentLog::find(folder.path(), "uid").is_none());
        let mut file = std::fs::File::create(pod.join(LOG_FILE)).unwrap();
        write!(file, "panic\n2026-01-01T00:00:01.5Z INFO up\n  more\nha").unwrap();
        let mut log = AgentLog::find(folder.path(), "uid").unwrap();
        let up: Timestamp = "2026-01-01T00:00:01.5Z".parse().unwrap();
        let line = |at, text: &str| LogLine { at, text: text.to_owned() };
        let expected = [
            line(Timestamp::UNIX_EPOCH, "panic"),
            line(up, "2026-01-01T00:00:01.5Z INFO up"),
            line(up, "  more"),
        ];
        assert_eq!(log.read().await.unwrap(), expected);
        writeln!(file, "lf").unwrap();
        assert_eq!(log.next_line().await, Some(line(up, "half")));
        assert_eq!(AgentLog::previous(folder.path(), "uid").await.unwrap(), None);
        std::fs::rename(pod.join(LOG_FILE), pod.join(PREVIOUS_LOG_FILE)).unwrap();
        let previous = AgentLog::previous(folder.path(), "uid").await.unwrap().unwrap();
        assert_eq!(previous.len(), 4);
    }
}
