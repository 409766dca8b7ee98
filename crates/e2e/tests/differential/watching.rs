//! Compares the events of watches on both servers during the stream of requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use e2e::http::{Client, runtime};
use e2e::poll_until;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::alike;
use crate::kinds::KINDS;
use crate::stream::NAMESPACES;
use crate::words::{Words, in_namespace};

/// Watches with selectors, which objects enter and leave.
const SELECTORS: [&str; 4] = [
    "",
    "&labelSelector=app%3Dweb",
    "&fieldSelector=metadata.name%21%3Db",
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
];
/// Longest delay of an event.
const DELIVERY_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most events that are shown of a differing watch.
const SHOWN_MAX: usize = 5;

/// All watches of one server.
pub struct Watches {
    watches: Vec<Watch>,
    _tasks: JoinSet<()>,
}

struct Watch {
    path: String,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Watches {
    /// Watches every kind of the stream from now on.
    ///
    /// # Errors
    /// A watch is refused.
    pub fn open(client: &Client) -> Result<Self> {
        let mut tasks = JoinSet::new();
        let mut watches = Vec::new();
        for path in paths() {
            let events = Arc::new(Mutex::new(Vec::new()));
            let body = runtime().block_on(async {
                let mut connection = client.connect().await?;
                let response = connection.stream(&path).await?;
                anyhow::ensure!(response.status().is_success(), "{path}: {}", response.status());
                anyhow::Ok((connection, response.into_body()))
            })?;
            let kept = Arc::clone(&events);
            let read = async move {
                let (_connection, mut body) = body;
                let mut bytes = Vec::new();
                while let Some(Ok(frame)) = body.frame().await {
                    bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
                    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = bytes.drain(..=end).collect();
                        kept.lock().unwrap().push(serde_json::from_slice(&line).unwrap());
                    }
                }
            };
            tasks.spawn_on(read, runtime().handle());
            watches.push(Watch { path, events });
        }
        Ok(Self { watches, _tasks: tasks })
    }

    /// The number of received events.
    pub fn count(&self) -> usize {
        self.watches.iter().map(|watch| watch.events.lock().unwrap().len()).sum()
    }

    /// The differences between the events of `self` and `ours`, once all have arrived.
    pub fn differences(&self, ours: &Self) -> Vec<String> {
        let mut left: Vec<(&Watch, &Watch)> = self.watches.iter().zip(&ours.watches).collect();
        let alike = poll_until(DELIVERY_MAX, LOOK_EVERY, || {
            left.retain(|(real, ours)| difference(real, ours).is_some());
            if left.is_empty() { Ok(()) } else { Err(left.clone()) }
        });
        let left = alike.err().unwrap_or_default();
        left.into_iter().filter_map(|(real, ours)| difference(real, ours)).collect()
    }
}

fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    for kind in &KINDS {
        let collections = if kind.shared {
            // Other namespaces have objects that only one of the servers created.
            NAMESPACES
                .map(|one| in_namespace(kind.path, one, "").trim_end_matches('/').to_owned())
                .to_vec()
        } else {
            vec![kind.path.to_owned()]
        };
        for collection in collections {
            paths.extend(SELECTORS.map(|selector| format!("{collection}?watch=true{selector}")));
        }
    }
    paths
}

fn difference(real: &Watch, ours: &Watch) -> Option<String> {
    let (left, right) = (shared(real), shared(ours));
    let same = left
        .iter()
        .zip(&right)
        .take_while(|(one, other)| alike::event_differences(one, other).is_empty());
    let same = same.count();
    if same == left.len() && same == right.len() {
        return None;
    }
    let (left, right) = (&left[same..], &right[same..]);
    let what = match (left.first(), right.first()) {
        (Some(one), Some(other)) => alike::event_differences(one, other).join("\n    "),
        (Some(one), None) => format!("{one} | nothing"),
        (None, other) => format!("nothing | {other:?}"),
    };
    let heads = |events: &[Value]| -> Vec<String> {
        let head = |event: &Value| {
            format!(
                "{} {}",
                event["type"],
                event.pointer("/object/metadata/resourceVersion").unwrap_or(&Value::Null)
            )
        };
        events.iter().take(SHOWN_MAX).map(head).collect()
    };
    Some(format!(
        "{}, event {same}: {what}\n    then {:?}\n       | {:?}",
        real.path,
        heads(left),
        heads(right)
    ))
}

/// The events so far, with placeholders for server-specific values.
fn shared(watch: &Watch) -> Vec<Value> {
    let mut words = Words::default();
    let mut events = watch.events.lock().unwrap().clone();
    // Bookmarks are sent periodically, except the one that ends the initial state.
    events.retain(|event| {
        event["type"] != "BOOKMARK" || !event["object"]["metadata"]["annotations"].is_null()
    });
    for event in &mut events {
        words.share_value(&watch.path, event);
        if event["type"] == "BOOKMARK" {
            event["object"]["metadata"]["resourceVersion"] = "a version".into();
        }
    }
    events
}
