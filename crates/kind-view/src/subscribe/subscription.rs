//! One subscription: the objects of a type that the caller may see, and their changes.

use std::sync::Arc;

use futures::stream::{SelectAll, select_all};
use futures::{Stream, StreamExt, TryStreamExt};
use http::HeaderMap;
use jiff::Timestamp;
use kube::api::WatchEvent;
use parking_lot::Mutex;
use rest_view::store::client_below;
use rest_view::urls::encode;
use rest_view::{ApiError, Context, Key, MayChange, Presentation, Registry, Store, Visible};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::messages::SubscribeMessage;
use super::{RIGHTS_CHECK_EVERY, Session};
use crate::kinds::ServedKind;
use crate::list::{self, store_of};
use crate::object::present;
use crate::query::Query;
use crate::table;

/// Objects that are shown at once.
const CHUNK_OBJECTS: usize = 64;
/// Namespaces and single objects that one subscription follows.
const PARTS_MAX: usize = 100;

/// A change of an object: the name of its frame, and the object with its cells.
type SeenChange = (&'static str, Value);

type Changes<'a> = std::pin::Pin<Box<dyn Stream<Item = Result<SeenChange, ApiError>> + Send + 'a>>;

/// Why a subscription ends.
enum Ended {
    /// The socket is closed.
    Left,
    /// The caller may see another part of the objects than before.
    OtherRights,
    Failed(ApiError),
}

impl From<ApiError> for Ended {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// Follows the type until the client leaves, or the place ends it. The last frame says why.
pub async fn run(session: &Session, message: &SubscribeMessage, frames: &mpsc::Sender<String>) {
    let (registry, headers) = (Registry::new([], []), HeaderMap::new());
    let presentation = Presentation {
        caller: &session.subscriber.caller,
        urls: &session.urls,
        registry: &registry,
        now: Timestamp::now(),
        action_links: false,
    };
    let client = client_below(&session.subscriber.client, session.place.api_root());
    let context = Context::new(presentation, &client, &headers, &session.query);
    match follow(session, &context, message, frames).await {
        Err(Ended::Left) => return,
        Err(Ended::Failed(error)) => {
            let _ = frames.send(message.error(&text_of(error))).await;
        }
        Ok(()) | Err(Ended::OtherRights) => {}
    }
    let _ = frames.send(message.bare("resource.stop")).await;
}

/// As clients look for it: they list again after a version that is too old.
fn text_of(error: ApiError) -> String {
    match error.status {
        410 => "too old resource version; list the objects again".to_owned(),
        _ => error.message,
    }
}

async fn follow(
    session: &Session,
    context: &Context<'_>,
    message: &SubscribeMessage,
    frames: &mpsc::Sender<String>,
) -> Result<(), Ended> {
    let kind = kind_of(session, context, &message.resource_type).await?;
    let shown = Query::parse(context.query)?;
    let parts = parts_of(session, context, &kind, message).await?;
    if parts.is_empty() {
        let text = format!("can not list {}: you may see none of them", message.resource_type);
        return Err(ApiError::new(403, "Forbidden", text).into());
    }
    if parts.len() > PARTS_MAX {
        let text = format!(
            "you may see {} in {} namespaces, and a subscription follows {PARTS_MAX}; subscribe to \
             single namespaces",
            message.resource_type,
            parts.len()
        );
        return Err(ApiError::new(400, "TooManyNamespaces", text).into());
    }
    send(frames, message.bare("resource.start")).await?;
    let watches: SelectAll<_> =
        select_all(parts.iter().map(|part| watch(context, &kind, message, part)));
    let mut changes = watches.ready_chunks(CHUNK_OBJECTS);
    let start = Instant::now() + RIGHTS_CHECK_EVERY;
    let mut checks = interval_at(start, RIGHTS_CHECK_EVERY);
    loop {
        let chunk = tokio::select! {
            chunk = changes.next() => chunk,
            _ = checks.tick() => {
                if parts_of(session, context, &kind, message).await? != parts {
                    return Err(Ended::OtherRights);
                }
                continue;
            }
        };
        let Some(chunk) = chunk else { return Ok(()) };
        let chunk: Vec<SeenChange> = chunk.into_iter().collect::<Result<_, _>>()?;
        for frame in show(session, context, &kind, message, &shown, chunk).await? {
            send(frames, frame).await?;
        }
    }
}

async fn send(frames: &mpsc::Sender<String>, frame: String) -> Result<(), Ended> {
    frames.send(frame).await.map_err(|_| Ended::Left)
}

async fn kind_of(
    session: &Session,
    context: &Context<'_>,
    name: &str,
) -> Result<ServedKind, ApiError> {
    let known = session.discovery.kinds(context, &session.place).await?.find(name).cloned();
    let kind = match known {
        Some(kind) => Some(kind),
        None => session.discovery.kinds_now(context, &session.place).await?.find(name).cloned(),
    };
    match kind {
        Some(kind) if kind.offers("list") && kind.offers("watch") => Ok(kind),
        Some(_) => {
            Err(ApiError::new(405, "MethodNotAllowed", format!("watch not allowed: {name}")))
        }
        None => Err(ApiError::not_found(format!("failed to find schema {name}"))),
    }
}

/// The parts of the objects that the subscription is about and the caller may see.
async fn parts_of(
    session: &Session,
    context: &Context<'_>,
    kind: &ServedKind,
    message: &SubscribeMessage,
) -> Result<Vec<Visible>, ApiError> {
    // The place authorizes the watch of one object by its name.
    if let Some(key) = message.object() {
        return Ok(vec![Visible::Object(key)]);
    }
    let namespace = Some(message.namespace.as_str()).filter(|name| !name.is_empty());
    let indexes = session.indexes.as_ref();
    list::visible(context, &session.place, kind, namespace, indexes).await
}

/// The changes of one part.
fn watch<'a>(
    context: &'a Context<'_>,
    kind: &'a ServedKind,
    message: &'a SubscribeMessage,
    part: &Visible,
) -> Changes<'a> {
    let (namespace, name) = match part {
        Visible::Everything => (String::new(), None),
        Visible::Namespace(namespace) => (namespace.clone(), None),
        Visible::Object(key) => (key.namespace.clone(), Some(key.name.clone())),
    };
    let mut path = format!(
        "{}?watch=true&allowWatchBookmarks=true",
        kind.resource.collection_path(&namespace)
    );
    if !message.selector.is_empty() {
        path.push_str(&format!("&labelSelector={}", encode(&message.selector)));
    }
    if let Some(name) = name {
        path.push_str(&format!("&fieldSelector={}", encode(&format!("metadata.name={name}"))));
    }
    let seen = Arc::new(Mutex::new(message.since().map(str::to_owned)));
    // The API server ends a watch after some minutes.
    let rounds = futures::stream::try_unfold((path, seen), move |(path, seen)| async move {
        let changes = watch_once(context, &path, seen.clone()).await?;
        Ok::<_, ApiError>(Some((changes, (path, seen))))
    });
    Box::pin(rounds.try_flatten())
}

/// The changes after the version that was `seen`, until the API server ends the watch.
async fn watch_once<'a>(
    context: &'a Context<'_>,
    path: &str,
    seen: Arc<Mutex<Option<String>>>,
) -> Result<Changes<'a>, ApiError> {
    let since = seen.lock().clone();
    let path = match since {
        Some(version) => format!("{path}&resourceVersion={}", encode(&version)),
        None => path.to_owned(),
    };
    let events = context.client.request_events::<Value>(table::request(&path)?).await?;
    let changes = events.filter_map(move |event| {
        let change = match event.map_err(ApiError::from).and_then(change_of) {
            Ok((version, change)) => {
                seen.lock().clone_from(&version);
                change.map(Ok)
            }
            Err(error) => Some(Err(error)),
        };
        std::future::ready(change)
    });
    Ok(Box::pin(changes))
}

/// The version that an event brings, and the change if it is one.
fn change_of(event: WatchEvent<Value>) -> Result<(Option<String>, Option<SeenChange>), ApiError> {
    let (name, object) = match event {
        WatchEvent::Added(object) => ("resource.create", object),
        WatchEvent::Modified(object) => ("resource.change", object),
        WatchEvent::Deleted(object) => ("resource.remove", object),
        WatchEvent::Bookmark(mark) => return Ok((Some(mark.metadata.resource_version), None)),
        WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
    };
    let Some(row) = table::of_response(object).rows.into_iter().next() else {
        return Err(ApiError::server_error("the cluster sent an event without an object"));
    };
    let version = row.0["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    Ok((version, Some((name, row.0))))
}

/// The frames of some changes.
async fn show(
    session: &Session,
    context: &Context<'_>,
    kind: &ServedKind,
    message: &SubscribeMessage,
    shown: &Query,
    chunk: Vec<SeenChange>,
) -> Result<Vec<String>, ApiError> {
    let keys: Vec<Key> = chunk.iter().map(|(_, object)| Key::of(object)).collect();
    let rights = store_of(kind).may_change(context, &keys).await?;
    let presentation = Presentation { now: Timestamp::now(), ..context.presentation };
    let frames = chunk.into_iter().zip(rights).map(|((name, object), may)| {
        let may = MayChange {
            update: may.update && kind.offers("update"),
            delete: may.delete && kind.offers("delete"),
        };
        let mut object = present(&presentation, &session.place, kind, object, may);
        shown.reduce(&mut object);
        message.object_frame(name, object)
    });
    Ok(frames.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_brings_a_version_and_perhaps_a_change() {
        let event = |text: &str| change_of(serde_json::from_str(text).unwrap());
        let object = r#"{"metadata": {"name": "a", "resourceVersion": "7"}}"#;
        let (version, change) =
            event(&format!(r#"{{"type": "DELETED", "object": {object}}}"#)).unwrap();
        assert_eq!((version.as_deref(), change.unwrap().0), (Some("7"), "resource.remove"));
        let mark = r#"{"kind": "Table", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}"#;
        let mark = event(&format!(r#"{{"type": "BOOKMARK", "object": {mark}}}"#)).unwrap();
        assert_eq!(mark, (Some("9".to_owned()), None));
        let none = event(r#"{"type": "ADDED", "object": {"kind": "Table", "rows": []}}"#);
        assert_eq!(none.unwrap_err().status, 500);
        let old = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410}"#;
        let old = event(&format!(r#"{{"type": "ERROR", "object": {old}}}"#)).unwrap_err();
        assert!(text_of(old).contains("too old"));
    }
}
