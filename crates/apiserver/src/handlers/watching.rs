//! Watches: the current state, then each change as it is committed, in the representation of the
//! client.

mod catch_up;
mod rights;
mod socket;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::status::Status;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Response, StatusCode};
use prometheus::IntCounter;
use serde_json::{Value, json};
use storage::Revision;
use tokio::sync::watch;
use tokio::time::Instant;

use self::rights::Rights;
use super::options::WatchQuery;
use super::present::{self, IncludeObject};
use super::{HandlerContext, options};
use crate::body::negotiate::{Offer, ResponseFormat, Transform};
use crate::body::respond::{self, Body};
use crate::cache::{Cache, CacheEvent, Encoding, Framing, Since, View, WatchEventType};
use crate::registry::served_bytes;
use crate::registry::{Registry, key_prefix, matches};
use crate::resource::Resource;
use crate::schemas::unset;
use crate::stored::Stored;

/// Pause between bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark is sent this long before the watch's deadline.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// When the server stops, each watch ends at a random moment within this, so that clients do not
/// reconnect all at once.
pub const WATCH_END_SPREAD: Duration = Duration::from_secs(1);
/// Bytes of frames joined into one chunk.
const CHUNK_SIZE_MAX: usize = 64 * 1024;
/// Bytes of frames of the initial state that are encoded ahead.
const STATE_AHEAD: usize = 4 * CHUNK_SIZE_MAX;

/// How events represent their objects.
enum EventRepresentation {
    Plain,
    /// `version` is that of `meta.k8s.io`; columns are sent with the first event only.
    Table {
        version: &'static str,
        include: IncludeObject,
        columns_sent: bool,
    },
    Metadata {
        version: &'static str,
    },
}

struct Watcher {
    registry: Weak<Registry>,
    resource: Arc<Resource>,
    cache: Arc<Cache>,
    prefix: String,
    query: WatchQuery,
    representation: EventRepresentation,
    framing: Framing,
    cursor: Revision,
    newest: watch::Receiver<Revision>,
    progress: watch::Receiver<Revision>,
    /// Events sent, counted for all watches of the resource.
    sent: IntCounter,
    /// Events encoded, counted for all watches of the resource.
    encoded: IntCounter,
    /// Becomes `true` when the server stops; `None` once that was seen.
    ending: Option<watch::Receiver<bool>>,
    deadline: Instant,
    next_bookmark: Instant,
    /// Objects of the initial state that are not encoded yet: otherwise many watches that begin at
    /// once would each hold all of it encoded.
    state: VecDeque<Arc<Stored>>,
    /// Encoded frames that are not sent yet.
    ready: VecDeque<Bytes>,
    ended: bool,
    rights: Rights,
}

/// Responds with a watch as a stream, or upgrades the connection to a WebSocket.
///
/// # Errors
/// 400, 406 or 422 when the request itself is invalid. A watch that cannot start is no error but a
/// stream of one ERROR event.
pub async fn watch(context: &HandlerContext<'_>) -> Result<Response<Body>, Status> {
    let query = options::watch_query(context)?;
    let refused = || Status::not_acceptable(context.typed().watch_media_types());
    let accepted = context.accept(Offer::Object).or_else(|_| context.accept(Offer::List));
    let accepted = accepted.map_err(|_| refused())?;
    let (framing, content_type) = match accepted.format {
        ResponseFormat::Json => (Framing::Json, "application/json"),
        ResponseFormat::Protobuf => (Framing::Protobuf, kubernetes_protobuf::WATCH_MEDIA_TYPE),
        ResponseFormat::Yaml => return Err(refused()),
    };
    let representation = match accepted.transform {
        Transform::Table(version) => EventRepresentation::Table {
            version,
            include: present::include_object(context.query)?,
            columns_sent: false,
        },
        Transform::PartialObjectMetadata(version)
        | Transform::PartialObjectMetadataList(version) => {
            EventRepresentation::Metadata { version }
        }
        _ => EventRepresentation::Plain,
    };
    let frames = match Watcher::begin(context, query, representation, framing).await {
        Ok(watcher) => watcher.into_frames().left_stream(),
        // Informers expect a stream of one error from a watch that cannot start.
        Err(status) => {
            let frame = framing.frame("ERROR", status.to_json().to_string().as_bytes());
            futures::stream::iter([VecDeque::from([frame])]).right_stream()
        }
    };
    if let Some(upgrade) = socket::upgrade_of(context.parts) {
        return Ok(socket::open(context.parts, upgrade, frames, framing));
    }
    let mut response = Response::new(respond::stream(frames.flat_map(chunks)));
    *response.status_mut() = StatusCode::OK;
    respond::set_content_headers(response.headers_mut(), content_type);
    Ok(response)
}

impl Watcher {
    async fn begin(
        context: &HandlerContext<'_>,
        query: WatchQuery,
        representation: EventRepresentation,
        framing: Framing,
    ) -> Result<Self, Status> {
        let registry = context.registry;
        let resource = context.resource.clone();
        let cache = registry.cache(&resource)?;
        let deadline = Instant::now() + query.timeout;
        let names = [&resource.group, &resource.version, &resource.plural].map(String::as_str);
        let mut watcher = Self {
            prefix: key_prefix(&resource, &context.info.namespace)?,
            newest: cache.subscribe(),
            progress: registry.progress(),
            sent: registry.metrics().watch_events(names),
            encoded: registry.metrics().watch_encodings(names),
            ending: Some(context.ending.subscribe()),
            cursor: 0,
            deadline,
            next_bookmark: next_bookmark(deadline),
            state: VecDeque::new(),
            ready: VecDeque::new(),
            ended: false,
            rights: Rights::of(context),
            registry: Arc::downgrade(registry),
            resource,
            cache,
            query,
            representation,
            framing,
        };
        // The cache may be that of a definition that changed since the request arrived. Such
        // watches end, as they would a moment later.
        if !registry.serves(&watcher.resource) {
            watcher.ended = true;
            return Ok(watcher);
        }
        match watcher.query.after {
            None => watcher.begin_with_state(registry, context).await?,
            Some(Revision::MAX) => watcher.cursor = registry.fresh().await?,
            Some(after) => {
                watcher.cursor = after;
                if after < watcher.cache.complete_after() {
                    watcher.catch_up(registry).await?;
                }
            }
        }
        Ok(watcher)
    }

    async fn begin_with_state(
        &mut self,
        registry: &Registry,
        context: &HandlerContext<'_>,
    ) -> Result<(), Status> {
        match self.query.not_older_than {
            Some(not_older_than) => drop(registry.reach(not_older_than).await?),
            None if context.query.text("resourceVersion") == "0" => {}
            None => drop(registry.fresh().await?),
        }
        let complete = *self.progress.borrow();
        let (objects, newest) = {
            let all = self.cache.read();
            let matching = all.walk(&self.prefix, "").filter(|object| self.matches(object));
            (matching.cloned().collect(), all.newest())
        };
        self.state = registry.serve(&self.resource, objects).await?.into();
        self.cursor = complete.max(newest);
        if self.state.is_empty() {
            self.end_state();
        }
        Ok(())
    }

    /// Encodes and queues the next frames of the initial state, and its end.
    fn queue_state(&mut self) {
        let mut size = 0;
        while size < STATE_AHEAD
            && let Some(object) = self.state.pop_front()
        {
            let frame = self.frame(WatchEventType::Added, &object, None);
            size += frame.len();
            self.sent.inc();
            self.ready.push_back(frame);
        }
        if self.state.is_empty() {
            self.end_state();
        }
    }

    fn end_state(&mut self) {
        if self.query.end_mark {
            let mark = self.bookmark(true);
            self.ready.push_back(mark);
        }
    }

    fn matches(&self, object: &Stored) -> bool {
        object.key.starts_with(&self.prefix)
            && matches(&self.resource, &self.query.labels, &self.query.fields, object)
    }

    /// Queues the frame of an event, if this watch selects the object before or after it.
    async fn queue_event(&mut self, event: &CacheEvent) {
        let before = event.previous.as_ref().is_some_and(|object| self.matches(object));
        let now = !event.deleted && self.matches(&event.current);
        let change = match (before, now) {
            (false, false) => return,
            (false, true) => WatchEventType::Added,
            (true, true) => WatchEventType::Modified,
            // Deleted, or no longer selected by this watch.
            (true, false) => WatchEventType::Deleted,
        };
        let Some(registry) = self.registry.upgrade() else {
            self.ended = true;
            return;
        };
        let view = event.view(change, &self.resource);
        match registry.serve_view(&self.resource, view).await {
            Ok(object) => {
                let frame = self.frame(change, &object, Some(view));
                self.sent.inc();
                self.ready.push_back(frame);
            }
            // The client starts again, and its list reports the same error until the cause is
            // fixed.
            Err(status) => {
                let status = status.to_json().to_string();
                self.ready.push_back(self.framing.frame("ERROR", status.as_bytes()));
                self.ended = true;
            }
        }
    }

    /// The object, in the watched version, as an event. With a `view`, an encoding that several
    /// watches share is made once and cached there.
    fn frame(
        &mut self,
        change: WatchEventType,
        object: &Arc<Stored>,
        view: Option<&View>,
    ) -> Bytes {
        let (framing, kind) = (self.framing, change.as_str());
        let metadata_only = match &mut self.representation {
            EventRepresentation::Plain => None,
            EventRepresentation::Metadata { version } => Some(*version),
            // Not shared: it contains ages, and the columns only once.
            EventRepresentation::Table { version, include, columns_sent } => {
                self.encoded.inc();
                let mut table = present::table_head(&self.resource, version);
                table["metadata"]["resourceVersion"] = object.revision.to_string().into();
                let now = present::unix_now();
                let row = present::row(&self.resource, object, *include, version, now);
                table["rows"] = vec![row].into();
                if std::mem::replace(columns_sent, true) {
                    table["columnDefinitions"] = Value::Null;
                }
                return framing.frame(kind, &crate::stored::to_bytes(&table));
            }
        };
        let make = || {
            self.encoded.inc();
            let bytes = match metadata_only {
                None => served_bytes(&self.resource, object),
                Some(version) => present::partial_metadata(object, version, true),
            };
            framing.frame(kind, &bytes)
        };
        let encoding = Encoding { framing, metadata_only };
        view.map_or_else(make, |view| view.frame(change, encoding, make))
    }

    /// A bookmark: an object of the watched kind that contains only the revision up to which
    /// everything was delivered.
    fn bookmark(&mut self, end_of_state: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.cursor.to_string() });
        if end_of_state {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version): (Cow<'_, str>, Cow<'_, str>) = match &self.representation {
            EventRepresentation::Metadata { version } => {
                ("PartialObjectMetadata".into(), format!("meta.k8s.io/{version}").into())
            }
            _ => (self.resource.kind.as_str().into(), self.resource.api_version().into()),
        };
        let mut object = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        if let (false, Some(object)) = (self.resource.custom, object.as_object_mut()) {
            object.extend(unset::fields(&api_version, &kind));
        }
        if let EventRepresentation::Table { version, include, columns_sent } =
            &mut self.representation
        {
            let mut table = present::table_head(&self.resource, version);
            table["metadata"]["resourceVersion"] = self.cursor.to_string().into();
            // The cells of an object without fields.
            let cells = self.resource.strategy.cells(&object, present::unix_now());
            if *include != IncludeObject::Object {
                object = json!({
                    "kind": "PartialObjectMetadata",
                    "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": object["metadata"],
                });
            }
            table["rows"] = json!([{ "cells": cells, "object": object }]);
            if std::mem::replace(columns_sent, true) {
                table["columnDefinitions"] = Value::Null;
            }
            object = table;
        }
        self.framing.frame("BOOKMARK", &crate::stored::to_bytes(&object))
    }

    /// Waits until there are frames to send; `false` at the end.
    async fn advance(&mut self) -> bool {
        loop {
            if !self.rights.are_held() {
                return false;
            }
            if !self.ready.is_empty() {
                return true;
            }
            if !self.state.is_empty() {
                self.queue_state();
                continue;
            }
            if self.ended {
                return false;
            }
            // Progress first: everything up to it is then among the events.
            let complete = *self.progress.borrow_and_update();
            self.newest.borrow_and_update();
            match self.cache.since(self.cursor) {
                Since::Events(events) => {
                    for event in &events {
                        self.queue_event(event).await;
                        self.cursor = event.revision;
                        if self.ended {
                            break;
                        }
                    }
                    self.cursor = self.cursor.max(complete);
                }
                Since::Gone | Since::Closed => self.ended = true,
            }
            if !self.ready.is_empty() || self.ended {
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => self.ended = changed.is_err(),
                () = self.rights.wait_until_lost() => self.ended = true,
                () = wait_until_ending(&mut self.ending) => {
                    self.ending = None;
                    let spread = WATCH_END_SPREAD.mul_f64(rand::random());
                    self.deadline = self.deadline.min(Instant::now() + spread);
                }
                () = tokio::time::sleep_until(self.next_bookmark.min(self.deadline)) => {
                    let now = Instant::now();
                    self.ended = now >= self.deadline;
                    if !self.ended {
                        self.next_bookmark = next_bookmark(self.deadline);
                        self.cursor = self.cursor.max(complete);
                        if self.query.bookmarks {
                            let mark = self.bookmark(false);
                            self.ready.push_back(mark);
                        }
                    }
                }
            }
        }
    }

    /// The frames as they arrive; those that are ready together are yielded together.
    fn into_frames(self) -> impl Stream<Item = VecDeque<Bytes>> + Send {
        futures::stream::unfold(self, |mut watcher| async move {
            if !watcher.advance().await {
                return None;
            }
            Some((std::mem::take(&mut watcher.ready), watcher))
        })
    }
}

/// Frames as chunks: a single shared frame as it is, several frames joined.
fn chunks(mut frames: VecDeque<Bytes>) -> impl Stream<Item = Bytes> + Send {
    futures::stream::iter(std::iter::from_fn(move || next_chunk(&mut frames)))
}

fn next_chunk(frames: &mut VecDeque<Bytes>) -> Option<Bytes> {
    let first = frames.pop_front()?;
    if frames.is_empty() || first.len() >= CHUNK_SIZE_MAX {
        return Some(first);
    }
    let mut chunk = Vec::from(first);
    while let Some(frame) = frames.front() {
        if chunk.len() + frame.len() > CHUNK_SIZE_MAX {
            break;
        }
        chunk.extend_from_slice(frame);
        frames.pop_front();
    }
    Some(Bytes::from(chunk))
}

/// Waits until the server stops; never returns once that was seen.
async fn wait_until_ending(ending: &mut Option<watch::Receiver<bool>>) {
    match ending {
        Some(ending) => drop(ending.wait_for(|ending| *ending).await),
        None => std::future::pending().await,
    }
}

/// In a minute, or shortly before the deadline if that is earlier and still ahead.
fn next_bookmark(deadline: Instant) -> Instant {
    let now = Instant::now();
    let last = deadline.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
    let regular = now + BOOKMARK_EVERY;
    last.map_or(regular, |last| last.min(regular))
}
