//! One change of one object, as the cache stores it and as it is sent to watchers.

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
    /// The revision of the change.
    pub revision: Revision,
    /// When the change was applied.
    pub at: Instant,
    /// The object before the change; `None` for a creation.
    pub previous: Option<Arc<Stored>>,
    /// The object after the change. For a deletion: its last state, with the revision of the
    /// deletion.
    pub current: Arc<Stored>,
    /// Whether the object was deleted.
    pub deleted: bool,
    /// The shared views by version. There are as many as versions of the resource are watched: a
    /// changed definition gets a new cache.
    views: OnceMap<ViewKey, View>,
}

/// Which state of an object a view shows, and in which version.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ViewKey {
    /// The address of the resource. The view holds a weak reference, so the address is not reused.
    resource: usize,
    /// Whether the view shows the last selected state of an object that left a selection.
    former: bool,
}

/// The type of a watch event; it depends on the watcher's selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEventType {
    Added,
    Modified,
    Deleted,
}

impl WatchEventType {
    /// The type on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl CacheEvent {
    /// Creates an event. `current` is `None` for a deletion. Returns `None` if both states are.
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

    /// The view that all watchers of `resource` share, for which the event has the type `change`.
    ///
    /// A `Deleted` event of an existing object means that it left the selection. The view then
    /// shows its last selected state, with the event's revision.
    pub fn view(&self, change: WatchEventType, resource: &Arc<Resource>) -> &View {
        let former =
            self.previous.as_ref().filter(|_| change == WatchEventType::Deleted && !self.deleted);
        let key = ViewKey { resource: Arc::as_ptr(resource).addr(), former: former.is_some() };
        self.views.get_or_create(key, || {
            let object = match former {
                Some(former) => Arc::new(former.at_revision(self.revision)),
                None => self.current.clone(),
            };
            View::new(resource, object)
        })
    }
}

/// The framing of watch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `{"type":…,"object":…}` and a newline.
    Json,
    /// The length, the type and the encoded object.
    Protobuf,
}

impl Framing {
    /// Frames one event. `object` is JSON; an object that cannot be encoded becomes an `ERROR`
    /// event.
    pub fn frame(self, event: &str, object: &[u8]) -> Bytes {
        match self {
            Self::Json => json_frame(event, object),
            Self::Protobuf => match kubernetes_protobuf::encode(object) {
                Ok(encoded) => kubernetes_protobuf::watch_frame(event, &encoded).into(),
                Err(error) => {
                    let status = Status::internal(format!("{error}; watch in JSON")).to_json();
                    let encoded = kubernetes_protobuf::encode(status.to_string().as_bytes())
                        .expect("a Status has a protobuf encoding");
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
