//! What clients asked and were told, in the order in which it happened.
//!
//! A question is written down before it is sent, an answer after it came.

use std::sync::Mutex;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One object, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// Names the write: no two writes have the same.
    pub value: String,
    /// What selectors ask for.
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

/// What is listed and watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub namespace: Option<String>,
    pub label: Option<String>,
}

impl Scope {
    pub const ALL: Self = Self { namespace: None, label: None };

    pub fn takes(&self, object: &Object) -> bool {
        let namespace = object.key.split('/').next();
        self.namespace.as_deref().is_none_or(|wanted| Some(wanted) == namespace)
            && self.label.as_ref().is_none_or(|wanted| *wanted == object.label)
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
    /// The newest, so many at once.
    Pages(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
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
    /// One of all follows the other without a gap: they tell every commit.
    Watch {
        scope: Scope,
        after: u64,
        witness: bool,
    },
    /// With the present state first.
    WatchList {
        scope: Scope,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Written(Object),
    Deleted,
    Found(Object),
    Absent,
    /// It is there, or there in another version.
    Conflict,
    Listed {
        version: u64,
        items: Vec<Object>,
    },
    /// `newest`: of a list asked for afterwards.
    Gone {
        newest: Option<u64>,
    },
    /// It did not happen.
    Refused(String),
    /// It may have happened, or happen yet.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Added(Object),
    Modified(Object),
    Deleted(Object),
    Bookmark { version: u64, is_end_of_state: bool },
    Gone { newest: Option<u64> },
}

impl Event {
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                Some(object.version)
            }
            Self::Bookmark { version, .. } => Some(*version),
            Self::Gone { newest } => *newest,
        }
    }
}

/// One line. Numbers name questions; a watch goes by that of the question that opened it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    Asked(usize, Question),
    Told(usize, Answer),
    Delivered(usize, Event),
    /// The server was killed and came back.
    Killed,
}

impl Entry {
    /// The newest version that it proves to be there.
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Told(_, Answer::Written(object) | Answer::Found(object)) => Some(object.version),
            Self::Told(_, Answer::Listed { version, .. }) => Some(*version),
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
    /// Which life of the server it is: what somebody of a former one says comes too late.
    life: u64,
}

impl Recorder {
    pub fn ask(&self, life: u64, question: Question) -> usize {
        let mut lines = self.lines.lock().unwrap();
        let number = lines.entries.len();
        if lines.life == life {
            lines.entries.push(Entry::Asked(number, question));
        }
        number
    }

    pub fn write(&self, life: u64, entry: Entry) {
        let mut lines = self.lines.lock().unwrap();
        if lines.life == life {
            lines.entries.push(entry);
        }
    }

    /// Ends a life.
    pub fn kill(&self) {
        let mut lines = self.lines.lock().unwrap();
        lines.entries.push(Entry::Killed);
        lines.life += 1;
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.lock().unwrap().entries.len()
    }

    /// Up to where watches of everything delivered, one after another. `None` before the first.
    pub fn witnessed(&self) -> Option<u64> {
        let entries = &self.lines.lock().unwrap().entries;
        let mut witness = None;
        let mut witnessed = None;
        for entry in entries.iter() {
            match entry {
                Entry::Asked(number, Question::Watch { witness: true, after, .. }) => {
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
