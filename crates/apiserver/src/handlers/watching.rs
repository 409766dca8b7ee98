//! Watches: the present state, then each change as it comes, in the client's form.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_meta::status::Status;
use bytes::Bytes;
use futures::StreamExt;
use http::{Response, StatusCode};
use prometheus::IntCounter;
use serde_json::{Value, json};
use storage::{Revision, StorageError, WatchItem};
use tokio::sync::watch;
use tokio::time::Instant;

use super::options::WatchQuery;
use super::present::{self, IncludeObject};
use super::{Context, options};
use crate::body::negotiate::{Format, Offer, Transform};
use crate::body::respond::{self, Body};
use crate::cache::{Cache, CacheEvent, Change, Framing, Since};
use crate::registry::{Registry, key_prefix, matches};
use crate::resource::Resource;
use crate::stored::Stored;

/// Pause between bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark is sent this long before the watch's deadline.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Longest catch-up from storage when a watch begins before the cache's history.
const CATCH_UP_MAX: Duration = Duration::from_secs(10);
/// When the server ends, each watch ends at a moment of its own within this, so that the clients do
/// not all come back at once.
pub const WATCH_END_SPREAD: Duration = Duration::from_secs(1);
/// Frames put together into one chunk.
const CHUNK_SIZE_MAX: usize = 64 * 1024;

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
    /// Turns true when the server ends; absent once that was seen.
    ending: Option<watch::Receiver<bool>>,
    deadline: Instant,
    next_bookmark: Instant,
    /// Frames that wait to be sent.
    ready: VecDeque<Bytes>,
    ended: bool,
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
    let stream = match Watcher::begin(context, query, form, framing).await {
        Ok(watcher) => respond::stream(watcher.into_stream()),
        // A watch that cannot start is a stream of one error, which is what informers expect.
        Err(status) => {
            let frame = framing.frame("ERROR", status.to_json().to_string().as_bytes());
            respond::stream(futures::stream::iter([frame]))
        }
    };
    let mut response = Response::new(stream);
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
        let mut watcher = Self {
            prefix: key_prefix(&resource, &context.info.namespace)?,
            newest: cache.subscribe(),
            progress: registry.progress(),
            sent: registry.metrics().watch_events(
                &resource.group,
                &resource.version,
                &resource.plural,
            ),
            ending: Some(context.ending.subscribe()),
            cursor: 0,
            deadline,
            next_bookmark: next_bookmark(deadline),
            ready: VecDeque::new(),
            ended: false,
            registry: Arc::downgrade(registry),
            resource,
            cache,
            query,
            form,
            framing,
        };
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
        let mut objects = Vec::new();
        let prefix = self.prefix.clone();
        let newest = self.cache.collect(&prefix, "", |object| {
            if self.matches(object) {
                objects.push(object.clone());
            }
            ControlFlow::Continue(())
        });
        for object in registry.serve(&self.resource, objects).await? {
            let frame = self.frame(Change::Added, &object, None);
            self.sent.inc();
            self.ready.push_back(frame);
        }
        self.cursor = complete.max(newest);
        if self.query.end_mark {
            let mark = self.bookmark(true);
            self.ready.push_back(mark);
        }
        Ok(())
    }

    /// Replays from storage what the cache's history no longer has.
    async fn catch_up(&mut self, registry: &Registry) -> Result<(), Status> {
        let until = self.cache.complete_after();
        let too_old = |oldest: Revision, cursor: Revision| {
            Status::expired(format!("too old resource version: {cursor} ({oldest})"))
        };
        let failed = |error: StorageError, cursor| match error {
            StorageError::Compacted { oldest, .. } => too_old(oldest, cursor),
            other => crate::registry::storage_failed(&other),
        };
        let cursor = self.cursor;
        let mut stream = registry
            .storage()
            .watch(&self.prefix, cursor)
            .await
            .map_err(|error| failed(error, cursor))?;
        let replay = async {
            while let Some(item) = stream.next().await {
                match item.map_err(|error| failed(error, cursor))? {
                    WatchItem::Events(events) => {
                        for event in events.iter().filter(|event| event.revision <= until) {
                            self.replay(event).await;
                            self.cursor = event.revision;
                        }
                        if events.last().is_some_and(|last| last.revision >= until) {
                            return Ok(());
                        }
                    }
                    WatchItem::Progress(revision) if revision >= until => return Ok(()),
                    WatchItem::Progress(_) => {}
                }
            }
            Err(too_old(until, cursor))
        };
        tokio::time::timeout(CATCH_UP_MAX, replay)
            .await
            .unwrap_or_else(|_| Err(too_old(until, cursor)))?;
        self.cursor = until;
        Ok(())
    }

    async fn replay(&mut self, event: &storage::Event) {
        let decode = |item: &Option<storage::KeyValue>| {
            let item = item.as_ref()?;
            Stored::decode(item, &self.resource.selectable_fields).ok().map(Arc::new)
        };
        let (previous, current) = (decode(&event.previous), decode(&event.current));
        if let Some(event) = CacheEvent::new(event.revision, previous, current) {
            self.take(&event).await;
        }
    }

    fn matches(&self, object: &Stored) -> bool {
        object.key.starts_with(&self.prefix)
            && matches(&self.resource, &self.query.labels, &self.query.fields, object)
    }

    /// Queues the frame, if any, that the event means to this watcher.
    async fn take(&mut self, event: &CacheEvent) {
        let before = event.previous.as_ref().filter(|object| self.matches(object)).cloned();
        let now = !event.deleted && self.matches(&event.current);
        let (change, object) = match (before, now) {
            (None, false) => return,
            (None, true) => (Change::Added, event.current.clone()),
            (Some(_), true) => (Change::Modified, event.current.clone()),
            (Some(_), false) if event.deleted => (Change::Deleted, event.current.clone()),
            // Left the selection: gone for this watcher, in its last matching state.
            (Some(old), false) => (Change::Deleted, Arc::new(old.at_revision(event.revision))),
        };
        let Some(registry) = self.registry.upgrade() else {
            self.ended = true;
            return;
        };
        match registry.serve_one(&self.resource, object).await {
            Ok(object) => {
                let frame = self.frame(change, &object, Some(event));
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

    fn frame(&mut self, change: Change, object: &Arc<Stored>, event: Option<&CacheEvent>) -> Bytes {
        let (framing, kind) = (self.framing, change.as_str());
        match &mut self.form {
            Form::Plain => match event {
                Some(event) if present::served_as_stored(&self.resource) => {
                    event.frame(change, object, framing)
                }
                _ => framing.frame(kind, &present::served_bytes(&self.resource, object)),
            },
            Form::Metadata { version } => {
                framing.frame(kind, &present::partial_metadata(object, version, true))
            }
            Form::Table { version, include, columns_sent } => {
                let mut table = present::table_head(&self.resource, version);
                table["metadata"]["resourceVersion"] = object.revision.to_string().into();
                let now = present::unix_now();
                let row = present::row(&self.resource, object, *include, version, now);
                table["rows"] = vec![row].into();
                if std::mem::replace(columns_sent, true) {
                    table["columnDefinitions"] = Value::Null;
                }
                framing.frame(kind, &crate::stored::to_bytes(&table))
            }
        }
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
        if let Form::Table { version, include, columns_sent } = &mut self.form {
            let mut table = present::table_head(&self.resource, version);
            table["metadata"]["resourceVersion"] = self.cursor.to_string().into();
            // The cells of an object that has nothing yet.
            let cells = self.resource.strategy.cells(&object, present::unix_now());
            if *include != IncludeObject::Object {
                object["kind"] = "PartialObjectMetadata".into();
                object["apiVersion"] = format!("meta.k8s.io/{version}").into();
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
            if !self.ready.is_empty() {
                return true;
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

    /// The next chunk: one shared frame as it is, several put together.
    fn chunk(&mut self) -> Option<Bytes> {
        let first = self.ready.pop_front()?;
        if self.ready.is_empty() || first.len() >= CHUNK_SIZE_MAX {
            return Some(first);
        }
        let mut chunk = Vec::from(first);
        while let Some(frame) = self.ready.front() {
            if chunk.len() + frame.len() > CHUNK_SIZE_MAX {
                break;
            }
            chunk.extend_from_slice(frame);
            self.ready.pop_front();
        }
        Some(Bytes::from(chunk))
    }

    fn into_stream(self) -> impl futures::Stream<Item = Bytes> + Send {
        futures::stream::unfold(self, |mut watcher| async move {
            if !watcher.advance().await {
                return None;
            }
            let chunk = watcher.chunk()?;
            Some((chunk, watcher))
        })
    }
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
