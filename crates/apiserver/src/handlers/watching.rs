//! Watches: the present state, then each change as it comes, in the client's form.

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
use super::{Context, options};
use crate::body::negotiate::{Format, Offer, Transform};
use crate::body::respond::{self, Body};
use crate::cache::{Cache, CacheEvent, Change, Encoding, Framing, Since, View};
use crate::registry::served_bytes;
use crate::registry::{Registry, key_prefix, matches};
use crate::resource::Resource;
use crate::schemas::unset;
use crate::stored::Stored;

/// Pause between bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark is sent this long before the watch's deadline.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// When the server ends, each watch ends at a moment of its own within this, so that the clients do
/// not all come back at once.
pub const WATCH_END_SPREAD: Duration = Duration::from_secs(1);
/// Frames put together into one chunk.
const CHUNK_SIZE_MAX: usize = 64 * 1024;
/// Frames of the present state that are encoded ahead.
const STATE_AHEAD: usize = 4 * CHUNK_SIZE_MAX;

/// The form of the objects in events.
enum Form {
    Plain,
    /// With the version of `meta.k8s.io`; columns come with the first event only.
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
    form: Form,
    framing: Framing,
    cursor: Revision,
    newest: watch::Receiver<Revision>,
    progress: watch::Receiver<Revision>,
    /// Events sent, counted for all watches of the resource.
    sent: IntCounter,
    /// Events encoded, counted for all watches of the resource.
    encoded: IntCounter,
    /// Turns true when the server ends; absent once that was seen.
    ending: Option<watch::Receiver<bool>>,
    deadline: Instant,
    next_bookmark: Instant,
    /// What there is from the start and is not encoded yet: many watches that begin at once would
    /// else hold all of it many times.
    state: VecDeque<Arc<Stored>>,
    /// Frames that wait to be sent.
    ready: VecDeque<Bytes>,
    ended: bool,
    rights: Rights,
}

pub async fn watch(context: &Context<'_>) -> Result<Response<Body>, Status> {
    let query = options::watch_query(context)?;
    let refused = || Status::not_acceptable(context.typed().watch_media_types());
    let accepted = context.accept(Offer::Object).or_else(|_| context.accept(Offer::List));
    let accepted = accepted.map_err(|_| refused())?;
    let (framing, content_type) = match accepted.format {
        Format::Json => (Framing::Json, "application/json"),
        Format::Protobuf => (Framing::Protobuf, kubernetes_protobuf::WATCH_MEDIA_TYPE),
        Format::Yaml => return Err(refused()),
    };
    let form = match accepted.transform {
        Transform::Table(version) => Form::Table {
            version,
            include: present::include_object(context.query)?,
            columns_sent: false,
        },
        Transform::PartialObjectMetadata(version)
        | Transform::PartialObjectMetadataList(version) => Form::Metadata { version },
        _ => Form::Plain,
    };
    let frames = match Watcher::begin(context, query, form, framing).await {
        Ok(watcher) => watcher.into_frames().left_stream(),
        // A watch that cannot start is a stream of one error, which is what informers expect.
        Err(status) => {
            let frame = framing.frame("ERROR", status.to_json().to_string().as_bytes());
            futures::stream::iter([VecDeque::from([frame])]).right_stream()
        }
    };
    if let Some(upgrade) = socket::wanted(context.parts) {
        return Ok(socket::open(context.parts, upgrade, frames, framing));
    }
    let mut response = Response::new(respond::stream(frames.flat_map(chunks)));
    *response.status_mut() = StatusCode::OK;
    respond::mark(response.headers_mut(), content_type);
    Ok(response)
}

impl Watcher {
    async fn begin(
        context: &Context<'_>,
        query: WatchQuery,
        form: Form,
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
            form,
            framing,
        };
        // The cache may be one for a definition that has changed since the request came: its watches
        // end, as they would have a moment later.
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
        context: &Context<'_>,
    ) -> Result<(), Status> {
        match self.query.not_older_than {
            Some(wanted) => drop(registry.reach(wanted).await?),
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

    /// Queues the next frames of the state, and its end.
    fn take_state(&mut self) {
        let mut size = 0;
        while size < STATE_AHEAD
            && let Some(object) = self.state.pop_front()
        {
            let frame = self.frame(Change::Added, &object, None);
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

    /// Queues the frame, if any, that the event means to this watcher.
    async fn take(&mut self, event: &CacheEvent) {
        let before = event.previous.as_ref().is_some_and(|object| self.matches(object));
        let now = !event.deleted && self.matches(&event.current);
        let change = match (before, now) {
            (false, false) => return,
            (false, true) => Change::Added,
            (true, true) => Change::Modified,
            // Gone, or gone for this watcher.
            (true, false) => Change::Deleted,
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
            // The client starts again, and is told the same by its list until this is mended.
            Err(status) => {
                let status = status.to_json().to_string();
                self.ready.push_back(self.framing.frame("ERROR", status.as_bytes()));
                self.ended = true;
            }
        }
    }

    /// The object, in the version that is watched, as an event. What is the same for all who want it
    /// in this form is encoded once, when there is a `view` to keep it in.
    fn frame(&mut self, change: Change, object: &Arc<Stored>, view: Option<&View>) -> Bytes {
        let (framing, kind) = (self.framing, change.as_str());
        let metadata_only = match &mut self.form {
            Form::Plain => None,
            Form::Metadata { version } => Some(*version),
            // Each watcher's own: it tells ages, and the columns only once.
            Form::Table { version, include, columns_sent } => {
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

    /// An object of the watched kind with nothing but the revision that everything before was delivered up to.
    fn bookmark(&mut self, end_of_state: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.cursor.to_string() });
        if end_of_state {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version): (Cow<'_, str>, Cow<'_, str>) = match &self.form {
            Form::Metadata { version } => {
                ("PartialObjectMetadata".into(), format!("meta.k8s.io/{version}").into())
            }
            _ => (self.resource.kind.as_str().into(), self.resource.api_version().into()),
        };
        let mut object = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
        if let (false, Some(object)) = (self.resource.custom, object.as_object_mut()) {
            object.extend(unset::fields(&api_version, &kind));
        }
        if let Form::Table { version, include, columns_sent } = &mut self.form {
            let mut table = present::table_head(&self.resource, version);
            table["metadata"]["resourceVersion"] = self.cursor.to_string().into();
            // The cells of an object that has nothing yet.
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

    /// Waits until there is something to send; `false` at the end.
    async fn advance(&mut self) -> bool {
        loop {
            if !self.rights.hold() {
                return false;
            }
            if !self.ready.is_empty() {
                return true;
            }
            if !self.state.is_empty() {
                self.take_state();
                continue;
            }
            if self.ended {
                return false;
            }
            // Progress first: whatever it covers is then among the events.
            let complete = *self.progress.borrow_and_update();
            self.newest.borrow_and_update();
            match self.cache.since(self.cursor) {
                Since::Events(events) => {
                    for event in &events {
                        self.take(event).await;
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
                () = self.rights.lost() => self.ended = true,
                () = told(&mut self.ending) => {
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

    /// The frames as they come, those together that are there at once.
    fn into_frames(self) -> impl Stream<Item = VecDeque<Bytes>> + Send {
        futures::stream::unfold(self, |mut watcher| async move {
            if !watcher.advance().await {
                return None;
            }
            Some((std::mem::take(&mut watcher.ready), watcher))
        })
    }
}

/// Frames as chunks: one shared frame as it is, several put together.
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

/// Waits until the server ends; for ever once that was seen.
async fn told(ending: &mut Option<watch::Receiver<bool>>) {
    match ending {
        Some(ending) => drop(ending.wait_for(|ending| *ending).await),
        None => std::future::pending().await,
    }
}

/// In a minute, or shortly before the end, whichever comes first and is still ahead.
fn next_bookmark(deadline: Instant) -> Instant {
    let now = Instant::now();
    let last = deadline.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
    let regular = now + BOOKMARK_EVERY;
    last.map_or(regular, |last| last.min(regular))
}
