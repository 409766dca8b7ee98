//! What was asked and what was told, in the order in which it happened.
//!
//! A question is written down before it is asked, an answer after it came. So an answer that stands
//! before a question was there before the question was asked.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use storage::{Event, Expect, KeyValue, RangeResponse, Revision, StorageError, WatchItem};

/// A live key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub key: String,
    /// Names the write: no two writes have the same.
    pub value: String,
    pub created: Revision,
    pub modified: Revision,
}

impl From<&KeyValue> for State {
    fn from(state: &KeyValue) -> Self {
        Self {
            key: state.key.to_string(),
            value: String::from_utf8_lossy(&state.value).into_owned(),
            created: state.create_revision,
            modified: state.mod_revision,
        }
    }
}

/// One commit, as a watcher is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub revision: Revision,
    pub key: String,
    pub previous: Option<State>,
    pub current: Option<State>,
}

impl From<&Event> for Change {
    fn from(event: &Event) -> Self {
        Self {
            revision: event.revision,
            key: event.key.to_string(),
            previous: event.previous.as_ref().map(State::from),
            current: event.current.as_ref().map(State::from),
        }
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// `expected`: the revision of the key's newest write, `None` when it must not exist.
    Put {
        key: String,
        value: String,
        expected: Option<Revision>,
    },
    Delete {
        key: String,
        expected: Revision,
    },
    Get {
        key: String,
        at: Option<Revision>,
    },
    List {
        prefix: String,
        at: Option<Revision>,
        limit: Option<usize>,
    },
    /// The newest revision.
    Newest,
    Watch {
        prefix: String,
        after: Revision,
    },
    Compact {
        to: Revision,
    },
}

impl Operation {
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Delete { .. })
    }
}

/// What `storage` expects, as it is written down.
pub fn expect(expected: Option<Revision>) -> Expect {
    expected.map_or(Expect::Absent, Expect::Revision)
}

/// The bytes of a value.
pub fn value(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Put(State),
    Deleted {
        revision: Revision,
        last: State,
    },
    /// The comparison did not hold; this was there.
    Refused(Option<State>),
    Found {
        revision: Revision,
        state: Option<State>,
    },
    Listed {
        revision: Revision,
        items: Vec<State>,
        remaining: u64,
    },
    Newest(Revision),
    Watching,
    Compacted,
    /// The revision asked for is gone.
    Gone {
        oldest: Revision,
    },
    /// The revision asked for is to come.
    Future {
        newest: Revision,
    },
    /// It did not happen.
    Failed(String),
    /// It did not happen for want of space. From here on the past may be forgotten unasked.
    Full(String),
    /// It may have happened, or happen yet.
    Unknown(String),
}

impl From<StorageError> for Outcome {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unexpected { current } => {
                Self::Refused(current.as_ref().map(State::from))
            }
            StorageError::Compacted { oldest, .. } => Self::Gone { oldest },
            StorageError::Future { current, .. } => Self::Future { newest: current },
            StorageError::Unknown { reason } => Self::Unknown(reason),
            StorageError::Full { reason } => Self::Full(reason),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<&RangeResponse> for Outcome {
    fn from(response: &RangeResponse) -> Self {
        Self::Listed {
            revision: response.revision,
            items: response.items.iter().map(State::from).collect(),
            remaining: response.remaining,
        }
    }
}

/// What came out of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    Changes(Vec<Change>),
    Progress(Revision),
    Ended(Outcome),
}

impl From<&Result<WatchItem, StorageError>> for Item {
    fn from(item: &Result<WatchItem, StorageError>) -> Self {
        match item {
            Ok(WatchItem::Events(events)) => {
                Self::Changes(events.iter().map(|event| Change::from(&**event)).collect())
            }
            Ok(WatchItem::Progress(revision)) => Self::Progress(*revision),
            Err(StorageError::Compacted { oldest, .. }) => {
                Self::Ended(Outcome::Gone { oldest: *oldest })
            }
            Err(error) => Self::Ended(Outcome::Failed(error.to_string())),
        }
    }
}

/// One line of a history. Numbers name questions; a watch goes by that of the question that opened
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    Asked(u64, Operation),
    Told(u64, Outcome),
    Delivered(u64, Item),
    /// The storage ended without notice. What was not answered by now is unknown.
    Crashed,
}

/// Writes a history down.
#[derive(Default)]
pub struct Recorder {
    lines: Mutex<Lines>,
    next: AtomicU64,
    /// Newest revision that anybody was told.
    known: AtomicU64,
}

#[derive(Default)]
struct Lines {
    entries: Vec<Entry>,
    silent: bool,
    over: bool,
    printed: bool,
}

impl Recorder {
    /// Goes on behind `entries`.
    pub fn after(entries: Vec<Entry>) -> Self {
        let next = next_number(&entries);
        let known = entries.iter().filter_map(told).max().unwrap_or(0);
        let lines = Lines { entries, ..Lines::default() };
        Self { lines: Mutex::new(lines), next: AtomicU64::new(next), known: AtomicU64::new(known) }
    }

    /// Prints each line instead of keeping it, numbering questions from `first` on.
    pub fn printing(first: u64, known: Revision) -> Self {
        let lines = Lines { printed: true, ..Lines::default() };
        Self { lines: Mutex::new(lines), next: AtomicU64::new(first), known: AtomicU64::new(known) }
    }

    pub fn ask(&self, operation: Operation) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(Entry::Asked(number, operation));
        number
    }

    pub fn tell(&self, number: u64, outcome: Outcome) {
        self.write(Entry::Told(number, outcome));
    }

    /// Whether it counts: after [`Self::silence`] and the end of the history nothing does.
    pub fn deliver(&self, number: u64, item: Item) -> bool {
        self.write(Entry::Delivered(number, item))
    }

    fn write(&self, entry: Entry) -> bool {
        let mut lines = self.lines.lock();
        if lines.over || lines.silent && !matches!(entry, Entry::Asked(..)) {
            return false;
        }
        self.known.fetch_max(told(&entry).unwrap_or(0), Ordering::Relaxed);
        if lines.printed {
            let mut line = serde_json::to_vec(&entry).expect("an entry is plain data");
            line.push(b'\n');
            // Nobody reads any more when this fails: the history is over.
            lines.over = std::io::stdout().write_all(&line).is_err();
        } else {
            lines.entries.push(entry);
        }
        !lines.over
    }

    /// The newest revision that anybody was told.
    pub fn known(&self) -> Revision {
        self.known.load(Ordering::Relaxed)
    }

    /// Lines so far.
    pub fn len(&self) -> usize {
        self.lines.lock().entries.len()
    }

    /// Whether nothing was written down.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From here on nobody is told anything, while what is asked is still written down: it may
    /// happen. Answers the history up to here.
    pub fn silence(&self) -> Vec<Entry> {
        let mut lines = self.lines.lock();
        lines.silent = true;
        lines.entries.clone()
    }

    /// Ends the history here, whoever still works.
    pub fn finish(&self) -> Vec<Entry> {
        let mut lines = self.lines.lock();
        lines.over = true;
        std::mem::take(&mut lines.entries)
    }
}

/// The newest revision that an entry proves to be there.
pub(crate) fn told(entry: &Entry) -> Option<Revision> {
    match entry {
        Entry::Told(_, outcome) => match outcome {
            Outcome::Put(state) => Some(state.modified),
            Outcome::Refused(state) => state.as_ref().map(|state| state.modified),
            Outcome::Deleted { revision, .. }
            | Outcome::Found { revision, .. }
            | Outcome::Listed { revision, .. }
            | Outcome::Newest(revision) => Some(*revision),
            Outcome::Future { newest } => Some(*newest),
            _ => None,
        },
        Entry::Delivered(_, Item::Progress(revision)) => Some(*revision),
        Entry::Delivered(_, Item::Changes(changes)) => changes.iter().map(|one| one.revision).max(),
        _ => None,
    }
}

/// A history as JSON, an entry a line, to be read by people.
pub fn lines(entries: &[Entry]) -> String {
    let line = |entry| serde_json::to_string(entry).expect("an entry is plain data") + "\n";
    entries.iter().map(line).collect()
}

/// A number that no question has.
pub fn next_number(entries: &[Entry]) -> u64 {
    let numbers = entries.iter().filter_map(|entry| match entry {
        Entry::Asked(number, _) => Some(number + 1),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// Up to where watches of `prefix` delivered everything from the beginning on, one after another.
pub fn covered(entries: &[Entry], prefix: &str) -> Revision {
    let mut watches = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Asked(number, Operation::Watch { prefix: watched, after })
                if watched == prefix =>
            {
                watches.insert(number, (*after, *after));
            }
            Entry::Delivered(number, _) => {
                if let (Some(watch), Some(revision)) = (watches.get_mut(number), told(entry)) {
                    watch.1 = revision.max(watch.1);
                }
            }
            _ => {}
        }
    }
    let mut watches: Vec<_> = watches.into_values().collect();
    watches.sort_unstable();
    watches.into_iter().fold(
        0,
        |covered, (after, until)| {
            if after <= covered { until.max(covered) } else { covered }
        },
    )
}
