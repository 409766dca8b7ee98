//! Reads the log: newest events first, from the end of the files, in chunks. It does not interpret
//! events.
//!
//! An event has a [`Position`], which is valid while its file exists, rotated or not. A search ends
//! at its limits and returns where the next one continues.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::log::backups;

/// The size of one read, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;
/// The size of a line, in bytes. A longer line was not written by this server, and is skipped.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The size of the events in one result, in bytes.
const FOUND_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The position of an event: the inode of its file, and the offset of its line in bytes. As text it
/// is `<file>-<offset>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    file: u64,
    offset: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.file, self.offset)
    }
}

impl std::str::FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (file, offset) = text.split_once('-').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Self { file: number(file)?, offset: number(offset)? })
    }
}

/// The query of a search.
pub struct Search<'a> {
    /// Return only events before this one.
    pub before: Option<Position>,
    /// The maximum number of events.
    pub limit: usize,
    /// The time at which the search ends, whatever it has found.
    pub deadline: Instant,
    /// Texts in JSON that the line of every matching event contains. Other lines are not decoded.
    pub texts: Vec<String>,
    /// Decides about each decoded event.
    pub accept: &'a dyn Fn(&Value) -> Accept,
}

/// Whether an event is returned, and the search continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// The event is returned.
    Yes,
    /// The event is skipped.
    No,
    /// Neither this event nor an earlier one matches: the search ends.
    End,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The matching events, newest first.
    pub events: Vec<(Position, Value)>,
    /// [`Search::before`] of the search that continues this one; `None` when the log has no more
    /// events.
    pub next: Option<Position>,
}

/// The error of a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// [`Search::before`] is in a file that was deleted. Search again without it.
    #[error("the event that the page begins with is no longer in the log; start at the first page")]
    Removed,
    /// A file of the log cannot be read.
    #[error("cannot read the audit log: {0}")]
    Io(#[from] io::Error),
}

/// Searches the log at `path` and its rotated files. Blocks.
///
/// # Errors
/// See [`SearchError`].
pub fn search(path: &Path, search: &Search<'_>) -> Result<SearchResult, SearchError> {
    // Opened before the rotated files are listed: it may be rotated in between.
    let newest = open(path)?;
    let earlier = backups(path)?.into_iter().rev().map(|backup| open(&backup.path));
    let mut found = SearchResult::default();
    let mut bytes = 0;
    let mut begun = search.before.is_none();
    let mut seen = Vec::new();
    for file in std::iter::once(Ok(newest)).chain(earlier) {
        let Some(file) = file? else { continue };
        let metadata = file.metadata()?;
        if seen.contains(&metadata.ino()) {
            continue;
        }
        seen.push(metadata.ino());
        let end = match search.before {
            Some(before) if !begun && before.file == metadata.ino() => before.offset,
            _ if !begun => continue,
            _ => metadata.len(),
        };
        begun = true;
        let mut lines = Backwards::new(&file, end.min(metadata.len()));
        let mut last = Position { file: metadata.ino(), offset: lines.end };
        while let Some((offset, line)) = lines.next()? {
            last.offset = offset;
            let is_full = found.events.len() >= search.limit || bytes >= FOUND_BYTES_MAX;
            if is_full || Instant::now() >= search.deadline {
                found.next = Some(Position { offset: offset + line.len() as u64 + 1, ..last });
                return Ok(found);
            }
            let is_possible = std::str::from_utf8(&line)
                .is_ok_and(|text| search.texts.iter().all(|one| text.contains(one)));
            let event = is_possible.then(|| serde_json::from_slice::<Value>(&line).ok()).flatten();
            let Some(event) = event else { continue };
            match (search.accept)(&event) {
                Accept::Yes => {
                    bytes += line.len();
                    found.events.push((last, event));
                }
                Accept::No => {}
                Accept::End => return Ok(found),
            }
        }
    }
    if begun { Ok(found) } else { Err(SearchError::Removed) }
}

/// `None` when the file was rotated or deleted in between.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Iterates over the lines of a file from its end.
struct Backwards<'a> {
    file: &'a File,
    /// The offset in the file at which `buffer` begins.
    end: u64,
    /// The bytes that were read and not yet returned.
    buffer: Vec<u8>,
}

impl<'a> Backwards<'a> {
    fn new(file: &'a File, end: u64) -> Self {
        Self { file, end, buffer: Vec::new() }
    }

    /// Returns a line without its newline, and its offset. Bytes after the last newline are no line
    /// yet.
    fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        loop {
            let body = self.buffer.strip_suffix(b"\n");
            let start = body.and_then(|body| body.iter().rposition(|byte| *byte == b'\n'));
            match (body, start) {
                (Some(body), Some(start)) => {
                    let line = body[start + 1..].to_vec();
                    self.buffer.truncate(start + 1);
                    return Ok(Some((self.end + start as u64 + 1, line)));
                }
                (Some(body), None) if self.end == 0 => {
                    let line = body.to_vec();
                    self.buffer.clear();
                    return Ok(Some((0, line)));
                }
                (None, _) if self.end == 0 => {
                    return match self.buffer.iter().rposition(|byte| *byte == b'\n') {
                        Some(at) => {
                            self.buffer.truncate(at + 1);
                            continue;
                        }
                        None => Ok(None),
                    };
                }
                _ => {}
            }
            if body.is_none()
                && let Some(at) = self.buffer.iter().rposition(|byte| *byte == b'\n')
            {
                self.buffer.truncate(at + 1);
                continue;
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                // The rest of this line is dropped, like bytes after the last newline.
                self.buffer.clear();
            }
            let size = usize::try_from(self.end).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let mut chunk = vec![0; size];
            self.end -= size as u64;
            self.file.read_exact_at(&mut chunk, self.end)?;
            chunk.append(&mut self.buffer);
            self.buffer = chunk;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn all(path: &Path, before: Option<Position>, limit: usize) -> SearchResult {
        let accept = |event: &Value| if event["n"] == -1 { Accept::End } else { Accept::Yes };
        let deadline = Instant::now() + Duration::from_secs(60);
        let texts = vec!["\"n\"".to_owned()];
        search(path, &Search { before, limit, deadline, texts, accept: &accept }).unwrap()
    }

    fn numbers(found: &SearchResult) -> Vec<i64> {
        found.events.iter().map(|(_, event)| event["n"].as_i64().unwrap()).collect()
    }

    #[test]
    fn pages_over_rotated_files_return_every_event_once_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let line = |n: i64| json!({"n": n, "pad": "x".repeat(700)}).to_string() + "\n";
        let lines = |range: std::ops::Range<i64>| range.map(line).collect::<String>();
        std::fs::write(folder.path().join("audit-2026-01-01T00-00-00.000.log"), lines(0..500))
            .unwrap();
        std::fs::write(folder.path().join("audit-2026-01-02T00-00-00.000.log"), lines(500..900))
            .unwrap();
        std::fs::write(&path, lines(900..1000) + "rubbish\n{\"n\":10").unwrap();
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let found = all(&path, before, 77);
            seen.extend(numbers(&found));
            // A rotation between pages.
            if before.is_none() {
                let later = folder.path().join("audit-2026-01-03T00-00-00.000.log");
                std::fs::rename(&path, later).unwrap();
                std::fs::write(&path, line(5000)).unwrap();
            }
            before = found.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..1000).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_search_ends_at_its_deadline_and_continues_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "{\"n\":1}\n{\"n\":2}\n").unwrap();
        let accept = |_: &Value| Accept::Yes;
        let late = Search {
            before: None,
            limit: 10,
            deadline: Instant::now(),
            texts: Vec::new(),
            accept: &accept,
        };
        let found = search(&path, &late).unwrap();
        assert!(found.events.is_empty());
        assert_eq!(numbers(&all(&path, found.next, 10)), [2, 1]);
        let removed = Search { before: Some(Position { file: 1, offset: 1 }), ..late };
        assert!(matches!(search(&path, &removed), Err(SearchError::Removed)));
    }

    #[test]
    fn an_overlong_line_neither_fills_memory_nor_hides_earlier_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let huge = "x".repeat(3 * LINE_BYTES_MAX);
        std::fs::write(&path, format!("{{\"n\":1}}\n{huge}\n{{\"n\":2}}\n")).unwrap();
        assert_eq!(numbers(&all(&path, None, 10)), [2, 1]);
    }
}
