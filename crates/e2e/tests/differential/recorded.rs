//! Recorded requests to a kube-apiserver, with its responses: repeated, in their order, on a
//! current kube-apiserver and on a simulated cluster. Where recording and current server disagree,
//! the current one is the reference.
//!
//! The fixture has one JSON object per line. Server-specific values are placeholders (see `words`).
//! `before` has objects that existed before the recorded request. `lost` has the reason why a
//! request cannot be repeated. `as` is the user of the request, when it is not the administrator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::http::HttpResponse;
use e2e::{Kubeconfig, Sim, eventually};
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use testbed::RealCluster;

use crate::alike;
use crate::recorded_known::{self, Tally};
use crate::side::Side;
use crate::stream::Step;
use crate::words::Words;

const FIXTURE: &str = "tests/fixtures/kube-apiserver-1.36.2.jsonl.gz";
/// Requests of the recording.
const RECORDED: usize = 986;
/// Most differences that are shown.
const SHOWN_MAX: usize = 200;
const NAMESPACES: &str = "/api/v1/namespaces";
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
/// The headers that recorded requests have.
const HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "content-type",
    "if-none-match",
    "impersonate-extra-acme.com%2fproj",
    "impersonate-extra-foo",
    "impersonate-extra-scopes",
    "impersonate-group",
    "impersonate-uid",
    "impersonate-user",
    "user-agent",
    "x-remote-group",
    "x-remote-user",
    "authorization",
];

/// Runs: the timing of controllers varies, so only differences in both runs count.
#[test]
fn recorded_requests_get_the_same_responses_as_from_kube_apiserver() {
    let mut found = replay();
    if !found.is_empty() {
        println!("once more, for {:?}", found.keys());
        let again = replay();
        found.retain(|id, _| again.contains_key(id));
    }
    let shown: Vec<&str> = found.values().take(SHOWN_MAX).map(String::as_str).collect();
    assert!(
        found.is_empty(),
        "{} requests got different responses (kube-apiserver | drover), such as\n{}",
        found.len(),
        shown.join("\n")
    );
}

/// Sends all requests to both. Returns unexplained differences, by the id of the request.
fn replay() -> BTreeMap<String, String> {
    let cluster = RealCluster::start().unwrap();
    let sim = Sim::start(&["--nodes", "0"]).unwrap();
    let real = Kubeconfig::parse(cluster.kubeconfig()).unwrap();
    let mut real = Side::new("kube-apiserver", &real).unwrap();
    let mut ours = Side::new("drover", &Kubeconfig::read(&sim.kubeconfig()).unwrap()).unwrap();
    let mut then = Words::default();

    let mut tally = Tally::default();
    let mut found = BTreeMap::new();
    for entry in entries().unwrap() {
        if entry["before"].is_string() {
            for side in [&mut real, &mut ours] {
                found.extend(furnish(side, &entry).map(|failed| (failed.clone(), failed)));
            }
            continue;
        }
        let id = entry["id"].as_str().unwrap();
        if let Some(reason) = entry["lost"].as_str() {
            tally.lost(id, reason);
            continue;
        }
        let step = step(&entry).unwrap();
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| send_entry(&mut real, &entry, &step));
            let other = send_entry(&mut ours, &entry, &step);
            (one.join().unwrap().unwrap(), other.unwrap())
        });
        let one_body = unowned(&step, read(&mut real.words, id, &step, &one));
        let other_body = unowned(&step, read(&mut ours.words, id, &step, &other));
        let between = alike::differences(&step, (&one, &one_body), (&other, &other_body));

        let (before, before_body) = recorded(&entry, &mut then, &step).unwrap();
        let before_body = unowned(&step, before_body);
        let is_whole = entry["cut"].is_null() && entry["binary"].is_null();
        if !is_whole {
            tally.count_partial();
        }
        let since = |response: &HttpResponse, body: &Value| {
            let (was, is) = if is_whole {
                (anonymous(before_body.clone()), anonymous(body.clone()))
            } else {
                (Value::Null, Value::Null)
            };
            alike::differences(&step, (&before, &was), (response, &is))
        };
        let drift = since(&one, &one_body);
        let ours_since = since(&other, &other_body);
        if let Some(complaint) = tally.count(id, &between, &drift, &ours_since) {
            found.insert(id.to_owned(), format!("{id}: {step}\n    {complaint}"));
        }
    }
    println!("{tally}");
    assert_eq!(tally.total(), RECORDED, "requests of the recording");
    found
}

fn entries() -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
    let file = File::open(&path).with_context(|| format!("'{}'", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text)?;
    text.lines().map(|line| serde_json::from_str(line).context("the fixture is JSON")).collect()
}

fn step(entry: &Value) -> Result<Step> {
    let method = known(&METHODS, entry["method"].as_str().context("no method")?)?;
    let path = entry["path"].as_str().context("no path")?.to_owned();
    let mut headers = Vec::new();
    for (name, value) in entry["headers"].as_object().into_iter().flatten() {
        let name = known(&HEADERS, name)?;
        for value in value.as_array().unwrap_or(&vec![value.clone()]) {
            headers.push((name, value.as_str().context("a header is no text")?.to_owned()));
        }
    }
    let body = entry["body"].as_str().unwrap_or_default().to_owned();
    Ok(Step { method, path, headers, body })
}

fn known(names: &[&'static str], name: &str) -> Result<&'static str> {
    let found = names.iter().find(|known| **known == name);
    found.copied().with_context(|| format!("'{name}' is no method or header of the recording"))
}

fn send_entry(side: &mut Side, entry: &Value, step: &Step) -> Result<HttpResponse> {
    match entry["as"].as_str() {
        None => {
            let response = side.send(step)?;
            await_contents(side, step, &response);
            Ok(response)
        }
        Some("anonymous") => side.send_as(&side.client().anonymous(), step),
        Some(token) => {
            let token = side.words.own(token);
            side.send_as(&side.client().anonymous().bearer(&token), step)
        }
    }
}

/// Waits until controllers have created their objects in a new namespace: otherwise their order
/// relative to the next requests is random, and watches from old versions show it.
fn await_contents(side: &Side, step: &Step, response: &HttpResponse) {
    if (step.method, step.path.as_str(), response.status)
        != ("POST", NAMESPACES, StatusCode::CREATED)
    {
        return;
    }
    let body = response.json();
    let name = body["metadata"]["name"].as_str().expect("a new namespace has its name");
    for content in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
        eventually("a new namespace has what every namespace has", || {
            side.client().get(&format!("{NAMESPACES}/{name}/{content}"))?.success()
        });
    }
}

/// Creates the objects that existed before a recorded request; returns whether that failed.
fn furnish(side: &mut Side, entry: &Value) -> Option<String> {
    let before = entry["before"].as_str().unwrap();
    let path = entry["path"].as_str().unwrap();
    let shown = match entry["method"].as_str() {
        Some("WAIT") => Some(""),
        Some("UNTIL") => entry["text"].as_str(),
        _ => None,
    };
    if let Some(shown) = shown {
        eventually("what was made is served", || {
            let response = side.client().get(path)?;
            response.success()?;
            anyhow::ensure!(response.text().contains(shown), "no {shown} in {}", response.text());
            Ok(())
        });
        return None;
    }
    let step = step(entry).unwrap();
    let response = side.send(&step).unwrap();
    await_contents(side, &step, &response);
    read(&mut side.words, before, &step, &response);
    if response.status.is_success() || recorded_known::is_refused_here(before) {
        return None;
    }
    Some(format!(
        "before '{before}', {step} at {}: {} {}",
        side.name,
        response.status,
        response.text()
    ))
}

/// The body with placeholders. Stores values that later requests use.
fn read(words: &mut Words, id: &str, step: &Step, response: &HttpResponse) -> Value {
    let path = step.path.split('?').next().unwrap_or_default();
    // The old watch paths name the same objects.
    let path = &path.replacen("/v1/watch/", "/v1/", 1);
    if let Some(tag) = response.headers.get("etag").and_then(|tag| tag.to_str().ok()) {
        words.note(format!("etag {path}"), tag);
    }
    if let Ok(value) = serde_json::from_slice::<Value>(&response.body) {
        if let Some(token) = value.pointer("/status/token").and_then(Value::as_str) {
            words.note(format!("token {id}"), token);
        }
        for (name, document) in value["paths"].as_object().into_iter().flatten() {
            let address = document["serverRelativeURL"].as_str().unwrap_or_default();
            if let Some((_, hash)) = address.split_once("?hash=") {
                words.note(format!("hash /openapi/v3/{name}"), hash);
            }
        }
    }
    if response.body.contains(&0) || response.body.starts_with(b"k8s") {
        return json!("binary");
    }
    match events(&response.text()) {
        Some(events) => share_events(words, path, events),
        None => words.share(path, &response.body),
    }
}

fn share_events(words: &mut Words, path: &str, mut events: Vec<Value>) -> Value {
    for event in &mut events {
        share_event(words, path, event);
    }
    Value::Array(events)
}

/// The events of a watch.
fn events(text: &str) -> Option<Vec<Value>> {
    if !text.starts_with(r#"{"type":"#) {
        return None;
    }
    text.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

fn share_event(words: &mut Words, path: &str, event: &mut Value) {
    words.share_value(path, event);
    let objects = match event["object"].get_mut("rows").and_then(Value::as_array_mut) {
        Some(rows) => rows.iter_mut().map(|row| &mut row["object"]).collect(),
        None => vec![&mut event["object"]],
    };
    for object in objects {
        let nameless = object.pointer("/metadata/name").is_none();
        if let Some(version) = object.pointer_mut("/metadata/resourceVersion").filter(|_| nameless)
        {
            *version = json!("a version");
        }
    }
}

/// The recorded response.
fn recorded(entry: &Value, words: &mut Words, step: &Step) -> Result<(HttpResponse, Value)> {
    let mut headers = HeaderMap::new();
    for (name, value) in entry["answer_headers"].as_object().into_iter().flatten() {
        for value in value.as_array().unwrap_or(&vec![value.clone()]) {
            let value = HeaderValue::from_str(value.as_str().context("a header is no text")?)?;
            headers.append(HeaderName::try_from(name)?, value);
        }
    }
    let status = entry["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let status = StatusCode::from_u16(status.context("no status")?)?;
    let body = match entry.get("answer") {
        Some(response) => response.to_string(),
        None => entry["text"].as_str().unwrap_or_default().to_owned(),
    };
    let response = HttpResponse { status, headers, body: Bytes::from(body) };
    let body = match entry.get("events").and_then(Value::as_array) {
        Some(events) => share_events(words, &step.path, events.clone()),
        None => read(words, "", step, &response),
    };
    Ok((response, body))
}

/// Removes versions, uids and times, which are specific to the recording. Removes field ownership,
/// which is not recorded; the random requests compare it. Objects that were not stored have no
/// meaningful version.
fn unowned(step: &Step, mut body: Value) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("managedFields");
                fields.values_mut().for_each(forget);
            }
            Value::Array(items) => items.iter_mut().for_each(forget),
            _ => {}
        }
    }
    forget(&mut body);
    if step.path.contains("dryRun=All")
        && let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("resourceVersion");
    }
    body
}

fn anonymous(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let own = ["resourceVersion", "uid"].contains(&name.as_str())
                    || name.ends_with("TransitionTime");
                if own && field.is_string() {
                    *field = json!("its own");
                }
                strip(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
