//! One change of one object, as the cache keeps it and as it is written to those who watch.

use std::sync::Arc;
use std::time::Instant;

use api_meta::status::Status;
use bytes::Bytes;
use storage::Revision;

use super::once_map::OnceMap;
use super::view::View;
use crate::resource::Resource;
use crate::stored::Stored;

/// One change of one object.
pub struct CacheEvent {
    pub revision: Revision,
    pub at: Instant,
    pub previous: Option<Arc<Stored>>,
    /// For a deletion: the last state under the deletion's revision.
    pub current: Arc<Stored>,
    pub deleted: bool,
    /// By what is shown. There are as many as versions of the resource are watched: a definition that
    /// changes gets a new cache.
    views: OnceMap<Shown, View>,
}

/// Which state of an object is shown, and as what.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    /// Address of the resource, which the view keeps from becoming another's.
    resource: usize,
    /// The last state that was selected, of an object that left a selection.
    former: bool,
}

/// The event type a watcher sees; depends on its selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl CacheEvent {
    pub fn new(
        revision: Revision,
        previous: Option<Arc<Stored>>,
        current: Option<Arc<Stored>>,
    ) -> Option<Self> {
        let deleted = current.is_none();
        let current = match (current, &previous) {
            (Some(current), _) => current,
            (None, Some(previous)) => Arc::new(previous.at_revision(revision)),
            (None, None) => return None,
        };
        let (at, views) = (Instant::now(), OnceMap::default());
        Some(Self { revision, at, previous, current, deleted, views })
    }

    /// What all who watch `resource` share of the event, when it is this `change` to them.
    ///
    /// An object that is deleted without being gone has left the selection: its last selected state
    /// is shown, under the event's revision.
    pub fn view(&self, change: Change, resource: &Arc<Resource>) -> &View {
        let former = self.previous.as_ref().filter(|_| change == Change::Deleted && !self.deleted);
        let shown = Shown { resource: Arc::as_ptr(resource).addr(), former: former.is_some() };
        self.views.get_or_make(shown, || {
            let object = match former {
                Some(former) => Arc::new(former.at_revision(self.revision)),
                None => self.current.clone(),
            };
            View::new(resource, object)
        })
    }
}

/// How the events of a watch are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `{"type":…,"object":…}` and a line end.
    Json,
    /// Length, type and encoded object.
    Protobuf,
}

impl Framing {
    /// One event, of a JSON object.
    pub fn frame(self, event: &str, object: &[u8]) -> Bytes {
        match self {
            Self::Json => json_frame(event, object),
            Self::Protobuf => match kubernetes_protobuf::encode(object) {
                Ok(encoded) => kubernetes_protobuf::watch_frame(event, &encoded).into(),
                Err(error) => {
                    let status = Status::internal(format!("{error}; watch in JSON")).to_json();
                    let encoded = kubernetes_protobuf::encode(status.to_string().as_bytes())
                        .expect("a Status has a protobuf form");
                    kubernetes_protobuf::watch_frame("ERROR", &encoded).into()
                }
            },
        }
    }
}

fn json_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(object.len() + kind.len() + 24);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    Bytes::from(frame)
}
