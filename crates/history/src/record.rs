//! Invocations and responses, in the order in which they happened.
//!
//! An invocation is recorded before the call is made, a response after it arrived. So a response
//! that is recorded before an invocation had arrived before that call was made.

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

/// One commit, as a watcher receives it.
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

/// A call of the storage.
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

/// The precondition of a write for `storage`, from its recorded form.
pub fn expect(expected: Option<Revision>) -> Expect {
    expected.map_or(Expect::Absent, Expect::Revision)
}

/// The bytes of a value.
pub fn value(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The response to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Put(State),
    Deleted {
        revision: Revision,
        last: State,
    },
    /// The comparison failed; this is the state that was found instead.
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
    /// The requested revision is compacted.
    TooOld {
        oldest: Revision,
    },
    /// The requested revision is in the future.
    Future {
        newest: Revision,
    },
    /// It did not happen.
    Failed(String),
    /// It did not happen because the disk is full. From here on, history may be compacted without a
    /// request.
    Full(String),
    /// It may have happened, or may happen later.
    Unknown(String),
}

impl From<StorageError> for Outcome {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unexpected { current } => {
                Self::Refused(current.as_ref().map(State::from))
            }
            StorageError::Compacted { oldest, .. } => Self::TooOld { oldest },
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

/// One item that a watch delivered.
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
                Self::Ended(Outcome::TooOld { oldest: *oldest })
            }
            Err(error) => Self::Ended(Outcome::Failed(error.to_string())),
        }
    }
}

/// One line of a history. Numbers identify invocations; a watch has the number of the invocation
/// that opened it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    Invoked(u64, Operation),
    Returned(u64, Outcome),
    Delivered(u64, Item),
    /// The storage crashed. The outcome of every call without a response is unknown.
    Crashed,
}

/// Records a history.
#[derive(Default)]
pub struct Recorder {
    lines: Mutex<Lines>,
    next: AtomicU64,
    /// Newest revision in any response or delivery.
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
    /// Continues the history `entries`.
    pub fn after(entries: Vec<Entry>) -> Self {
        let next = next_number(&entries);
        let known = entries.iter().filter_map(reported_revision).max().unwrap_or(0);
        let lines = Lines { entries, ..Lines::default() };
        Self { lines: Mutex::new(lines), next: AtomicU64::new(next), known: AtomicU64::new(known) }
    }

    /// Prints each line instead of storing it, and numbers invocations from `first` on.
    pub fn printing(first: u64, known: Revision) -> Self {
        let lines = Lines { printed: true, ..Lines::default() };
        Self { lines: Mutex::new(lines), next: AtomicU64::new(first), known: AtomicU64::new(known) }
    }

    /// Records an invocation; returns its number.
    pub fn record_invocation(&self, operation: Operation) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(Entry::Invoked(number, operation));
        number
    }

    /// Records the response to the invocation `number`.
    pub fn record_response(&self, number: u64, outcome: Outcome) {
        self.write(Entry::Returned(number, outcome));
    }

    /// Records an item of the watch `number`; returns whether the item counts. After
    /// [`Self::silence`] and after the end of the history no item does.
    pub fn record_delivery(&self, number: u64, item: Item) -> bool {
        self.write(Entry::Delivered(number, item))
    }

    fn write(&self, entry: Entry) -> bool {
        let mut lines = self.lines.lock();
        if lines.over || lines.silent && !matches!(entry, Entry::Invoked(..)) {
            return false;
        }
        self.known.fetch_max(reported_revision(&entry).unwrap_or(0), Ordering::Relaxed);
        if lines.printed {
            let mut line = serde_json::to_vec(&entry).expect("an entry is plain data");
            line.push(b'\n');
            // This fails when the reader has closed the pipe: the history is over.
            lines.over = std::io::stdout().write_all(&line).is_err();
        } else {
            lines.entries.push(entry);
        }
        !lines.over
    }

    /// The newest revision in any response or delivery.
    pub fn newest_reported(&self) -> Revision {
        self.known.load(Ordering::Relaxed)
    }

    /// Lines so far.
    pub fn len(&self) -> usize {
        self.lines.lock().entries.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From here on, responses and deliveries are no longer recorded. Invocations still are, since
    /// they may take effect. Returns the history up to here.
    pub fn silence(&self) -> Vec<Entry> {
        let mut lines = self.lines.lock();
        lines.silent = true;
        lines.entries.clone()
    }

    /// Ends the history here, even while clients still work.
    pub fn finish(&self) -> Vec<Entry> {
        let mut lines = self.lines.lock();
        lines.over = true;
        std::mem::take(&mut lines.entries)
    }
}

/// The newest revision that an entry proves to exist.
pub(crate) fn reported_revision(entry: &Entry) -> Option<Revision> {
    match entry {
        Entry::Returned(_, outcome) => match outcome {
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

/// A history as JSON, one entry per line, for inspection.
pub fn lines(entries: &[Entry]) -> String {
    let line = |entry| serde_json::to_string(entry).expect("an entry is plain data") + "\n";
    entries.iter().map(line).collect()
}

/// A number above those of all invocations.
pub fn next_number(entries: &[Entry]) -> u64 {
    let numbers = entries.iter().filter_map(|entry| match entry {
        Entry::Invoked(number, _) => Some(number + 1),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// The revision up to which watches of `prefix`, one after another, delivered everything.
pub fn covered_revision(entries: &[Entry], prefix: &str) -> Revision {
    let mut watches = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Invoked(number, Operation::Watch { prefix: watched, after })
                if watched == prefix =>
            {
                watches.insert(number, (*after, *after));
            }
            Entry::Delivered(number, _) => {
                if let (Some(watch), Some(revision)) =
                    (watches.get_mut(number), reported_revision(entry))
                {
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
