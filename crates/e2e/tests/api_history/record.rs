//! Invocations of clients and the responses, in the order in which they happened.
//!
//! An invocation is recorded before it is sent, a response after it arrived.

use std::sync::Mutex;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields of an object that the check compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// Unique for each write.
    pub value: String,
    /// The value that selectors request.
    pub label: String,
    pub version: u64,
    pub uid: String,
}

impl Object {
    /// # Errors
    /// A field is missing.
    pub fn read(object: &Value) -> Result<Self> {
        let text = |path: &str| {
            let found = object.pointer(path).and_then(Value::as_str).map(str::to_owned);
            found.with_context(|| format!("no {path} in {object}"))
        };
        Ok(Self {
            key: format!("{}/{}", text("/metadata/namespace")?, text("/metadata/name")?),
            value: text("/spec/podSelector/matchLabels/value")?,
            label: text("/metadata/labels/side")?,
            version: version(object)?,
            uid: text("/metadata/uid")?,
        })
    }
}

/// # Errors
/// There is none.
pub fn version(object: &Value) -> Result<u64> {
    let text = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let text = text.with_context(|| format!("no resourceVersion in {object}"))?;
    text.parse().with_context(|| format!("resourceVersion '{text}'"))
}

/// The scope of a list or watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub namespace: Option<String>,
    pub label: Option<String>,
}

impl Scope {
    pub const ALL: Self = Self { namespace: None, label: None };

    pub fn takes(&self, object: &Object) -> bool {
        let namespace = object.key.split('/').next();
        self.namespace.as_deref().is_none_or(|requested| Some(requested) == namespace)
            && self.label.as_ref().is_none_or(|requested| *requested == object.label)
    }
}

/// How fresh a list must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    Latest,
    /// `resourceVersion=0`
    Any,
    NotOlderThan(u64),
    Exact(u64),
    /// The newest version, in pages of this size.
    Pages(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    Create {
        key: String,
        value: String,
        label: String,
    },
    Update {
        key: String,
        value: String,
        label: String,
        expected: u64,
    },
    Patch {
        key: String,
        value: String,
    },
    Delete {
        key: String,
        expected: u64,
    },
    DeleteNamespace {
        name: String,
    },
    Get {
        key: String,
    },
    List {
        scope: Scope,
        mode: Mode,
    },
    /// `witness`: a watch of everything. Each continues the one before without a gap, so that
    /// together they deliver every commit.
    Watch {
        scope: Scope,
        after: u64,
        witness: bool,
    },
    /// A watch that begins with the current state.
    WatchList {
        scope: Scope,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Written(Object),
    Deleted,
    Found(Object),
    Absent,
    /// The object exists, or exists in another version.
    Conflict,
    Listed {
        version: u64,
        items: Vec<Object>,
    },
    /// `newest`: the version of a list that was requested afterwards.
    Expired {
        newest: Option<u64>,
    },
    /// It did not happen.
    Refused(String),
    /// It may have happened, or may happen later.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Added(Object),
    Modified(Object),
    Deleted(Object),
    Bookmark { version: u64, is_end_of_state: bool },
    Expired { newest: Option<u64> },
}

impl Event {
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                Some(object.version)
            }
            Self::Bookmark { version, .. } => Some(*version),
            Self::Expired { newest } => *newest,
        }
    }
}

/// One line. Numbers identify invocations; a watch has the number of the invocation that opened it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    Invoked(usize, Operation),
    Returned(usize, Outcome),
    Delivered(usize, Event),
    /// The server was killed and restarted.
    Killed,
}

impl Entry {
    /// The newest version that it proves to exist.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Returned(_, Outcome::Written(object) | Outcome::Found(object)) => {
                Some(object.version)
            }
            Self::Returned(_, Outcome::Listed { version, .. }) => Some(*version),
            Self::Delivered(_, event) => event.version(),
            _ => None,
        }
    }
}

#[derive(Default)]
pub struct Recorder {
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    entries: Vec<Entry>,
    /// Number of the server's life: entries of earlier lives are too late and are dropped.
    life: u64,
}

impl Recorder {
    pub fn record_invocation(&self, life: u64, operation: Operation) -> usize {
        let mut lines = self.lines.lock().unwrap();
        let number = lines.entries.len();
        if lines.life == life {
            lines.entries.push(Entry::Invoked(number, operation));
        }
        number
    }

    pub fn write(&self, life: u64, entry: Entry) {
        let mut lines = self.lines.lock().unwrap();
        if lines.life == life {
            lines.entries.push(entry);
        }
    }

    /// Ends the current life.
    pub fn kill(&self) {
        let mut lines = self.lines.lock().unwrap();
        lines.entries.push(Entry::Killed);
        lines.life += 1;
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.lines.lock().unwrap().entries.len()
    }

    /// The version up to which watches of everything delivered. `None` before the first.
    pub fn witnessed(&self) -> Option<u64> {
        let entries = &self.lines.lock().unwrap().entries;
        let mut witness = None;
        let mut witnessed = None;
        for entry in entries.iter() {
            match entry {
                Entry::Invoked(number, Operation::Watch { witness: true, after, .. }) => {
                    (witness, witnessed) = (Some(*number), Some(*after));
                }
                Entry::Delivered(number, event) if Some(*number) == witness => {
                    witnessed = witnessed.max(event.version());
                }
                _ => {}
            }
        }
        witnessed
    }

    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.lines.lock().unwrap().entries)
    }
}
