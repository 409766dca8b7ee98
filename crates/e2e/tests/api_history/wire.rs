//! The connection to one server, which distorts requests and responses when a bug is planted.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::http::{Client, Connection};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

/// A planted bug. It shows at every [`EVERY`]th opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A create is acknowledged and not done.
    LostWrite,
    /// A write is done and refused.
    RefusedAndDone,
    /// A get returns an earlier response.
    StaleGet,
    /// A list of the newest returns an earlier response.
    StaleList,
    /// A list omits its last object.
    ShortList,
    /// The pages of a list come from two states.
    TornPages,
    LostEvent,
    EventTwice,
    EventsSwapped,
    /// A deletion is delivered with the version of the last state.
    OldDeletion,
    /// The end of the initial state is delivered before its last object.
    EarlyEnd,
    /// A watch gets 410 although its version is not expired.
    FalseGone,
}

impl Bug {
    pub const ALL: [Self; 12] = [
        Self::LostWrite,
        Self::RefusedAndDone,
        Self::StaleGet,
        Self::StaleList,
        Self::ShortList,
        Self::TornPages,
        Self::LostEvent,
        Self::EventTwice,
        Self::EventsSwapped,
        Self::OldDeletion,
        Self::EarlyEnd,
        Self::FalseGone,
    ];
}

/// The bug shows at one opportunity in this many.
const EVERY: usize = 2;
/// An object whose writes produce versions for false responses.
const ELSEWHERE: &str = "/api/v1/namespaces/default/configmaps";

pub struct Wire {
    client: Client,
    bug: Option<Bug>,
    chances: AtomicUsize,
    shown: AtomicUsize,
    /// The last response to each request that may be repeated.
    before: Mutex<HashMap<String, Value>>,
}

/// The connection of one client.
#[derive(Default)]
pub struct Line {
    connection: Option<Connection>,
}

impl Wire {
    pub fn new(client: Client, bug: Option<Bug>) -> Self {
        let (chances, shown, before) = Default::default();
        Self { client, bug, chances, shown, before }
    }

    pub fn is_sound(&self) -> bool {
        self.bug.is_none()
    }

    /// The longest wait for an event that happens within `max` on a server without bug.
    pub fn patience(&self, max: Duration) -> Duration {
        if self.is_sound() { max } else { Duration::from_secs(2) }
    }

    /// How often the bug has shown.
    pub fn shown(&self) -> usize {
        self.shown.load(Ordering::Relaxed)
    }

    /// Whether `bug` shows now. Called only where it can.
    fn shows(&self, bug: Bug) -> bool {
        let shows = self.bug == Some(bug)
            && (self.chances.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY);
        self.shown.fetch_add(usize::from(shows), Ordering::Relaxed);
        shows
    }

    /// # Errors
    /// There was no response.
    pub async fn call(
        &self,
        line: &mut Line,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        if method == Method::POST
            && path.ends_with("/networkpolicies")
            && let Some(body) = body
            && self.shows(Bug::LostWrite)
        {
            let other = json!({"metadata": {"generateName": "elsewhere-"}});
            let (status, other) = self.send(line, method, ELSEWHERE, Some(&other)).await?;
            let mut distorted = body.clone();
            for field in ["uid", "resourceVersion"] {
                distorted["metadata"][field] = other["metadata"][field].clone();
            }
            return Ok((status, distorted));
        }
        let (status, mut response) = self.send(line, method.clone(), path, body).await?;
        let before = || self.before.lock().unwrap().insert(path.to_owned(), response.clone());
        if matches!(method, Method::PUT | Method::PATCH) && status == 200 {
            if self.shows(Bug::RefusedAndDone) {
                return Ok((409, json!({"reason": "Conflict"})));
            }
        } else if method == Method::GET && status == 200 {
            let is_list = response["items"].is_array();
            let is_newest = !path.contains("resourceVersion") && !path.contains("limit");
            let stale = if is_list { Bug::StaleList } else { Bug::StaleGet };
            if self.bug == Some(stale)
                && is_newest
                && let Some(before) = before().filter(|before| *before != response)
                && self.shows(stale)
            {
                return Ok((status, before));
            }
            if path.contains("continue=") && self.shows(Bug::TornPages) {
                let from = path.split("&continue=").next().unwrap_or(path);
                let newer = from.replace("limit=", "limit=1000&was=");
                let first = self.send(line, method, &newer, None).await?.1;
                let read = response["items"].as_array().map_or(0, Vec::len);
                let items = first["items"].as_array().cloned().unwrap_or_default();
                response["items"] = items[items.len().saturating_sub(read)..].into();
                return Ok((status, response));
            }
            if let Some(items) = response["items"].as_array_mut().filter(|items| !items.is_empty())
                && self.shows(Bug::ShortList)
            {
                items.pop();
            }
        }
        Ok((status, response))
    }

    async fn send(
        &self,
        line: &mut Line,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let mut connection = match line.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await?,
        };
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = Bytes::from(body.map_or(String::new(), Value::to_string));
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type);
        let response = connection.send(request.body(Full::new(bytes).boxed_unsync())?).await?;
        if !response.headers.contains_key("connection") {
            line.connection = Some(connection);
        }
        Ok((response.status.as_u16(), response.json()))
    }

    /// # Errors
    /// There was no response.
    pub async fn watch(&self, path: &str) -> Result<Watching<'_>> {
        let mut connection = self.client.connect().await?;
        let body = connection.stream(path).await?.into_body();
        let mut waiting = VecDeque::new();
        if !path.contains("sendInitialEvents") && self.shows(Bug::FalseGone) {
            let status = json!({"kind": "Status", "code": 410, "reason": "Expired"});
            waiting.push_back(json!({"type": "ERROR", "object": status}));
        }
        let is_live = !path.contains("sendInitialEvents");
        Ok(Watching {
            wire: self,
            _connection: connection,
            body,
            bytes: Vec::new(),
            waiting,
            is_live,
        })
    }
}

/// An open watch.
pub struct Watching<'w> {
    wire: &'w Wire,
    _connection: Connection,
    body: Incoming,
    bytes: Vec<u8>,
    waiting: VecDeque<Value>,
    /// The initial state, if requested, is complete.
    is_live: bool,
}

impl Watching<'_> {
    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The connection broke, or a line is not JSON.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                let event = serde_json::from_slice(&line).context("a line of a watch")?;
                self.take(event);
                continue;
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    let frame = frame.context("the watch broke off")?;
                    self.bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
                }
            }
        }
    }

    fn take(&mut self, mut event: Value) {
        let wire = self.wire;
        let is_change = event["type"] != "BOOKMARK" && event["type"] != "ERROR";
        if is_change && wire.shows(Bug::LostEvent) {
            return;
        }
        if is_change && wire.shows(Bug::EventTwice) {
            self.waiting.push_back(event.clone());
        }
        let end = self.bytes.iter().position(|byte| *byte == b'\n');
        let swaps = matches!(wire.bug, Some(Bug::EventsSwapped | Bug::EarlyEnd));
        if let Some(end) = end.filter(|_| is_change && swaps) {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let next: Value = serde_json::from_slice(&line).unwrap_or_default();
            let shows = if is_end_of_state(&next) {
                wire.shows(Bug::EarlyEnd)
            } else {
                // Within the initial state any order is valid.
                self.is_live && wire.shows(Bug::EventsSwapped)
            };
            self.is_live |= is_end_of_state(&next);
            self.waiting.extend(if shows { [next, event] } else { [event, next] });
            return;
        }
        self.is_live |= is_end_of_state(&event);
        if event["type"] == "DELETED" && wire.shows(Bug::OldDeletion) {
            let version = event["object"]["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|text| text.parse().ok()).unwrap_or(1_u64);
            event["object"]["metadata"]["resourceVersion"] = (version - 1).to_string().into();
        }
        self.waiting.push_back(event);
    }
}

pub fn is_end_of_state(event: &Value) -> bool {
    event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some()
}
