//! Requests that were sent to a kube-apiserver once, and what it answered: sent again, in their order, to a
//! kube-apiserver of today and to a simulated cluster. Where recording and today's server disagree, today's decides.
//!
//! The fixture has one JSON object a line. What a server calls its own stands in marks (see `words`). With `before` it
//! makes what the recording found in place; with `lost`, which says why, the request cannot be made again. `as` is who
//! asks, when it is not the administrator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::http::Answer;
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
/// Differences shown.
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

/// What controllers do meanwhile falls otherwise each time: what counts is told by two runs.
#[test]
fn recorded_requests_are_answered_as_kube_apiserver_answers_them() {
    let mut found = replay();
    if !found.is_empty() {
        println!("once more, for {:?}", found.keys());
        let again = replay();
        found.retain(|id, _| again.contains_key(id));
    }
    let shown: Vec<&str> = found.values().take(SHOWN_MAX).map(String::as_str).collect();
    assert!(
        found.is_empty(),
        "{} requests were answered differently (kube-apiserver | drover), such as\n{}",
        found.len(),
        shown.join("\n")
    );
}

/// Sends all requests to both. Gives what differs without a reason, by the id of the request.
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
            let one = scope.spawn(|| ask(&mut real, &entry, &step));
            let other = ask(&mut ours, &entry, &step);
            (one.join().unwrap().unwrap(), other.unwrap())
        });
        let one_body = unowned(&step, read(&mut real.words, id, &step, &one));
        let other_body = unowned(&step, read(&mut ours.words, id, &step, &other));
        let between = alike::differences(&step, (&one, &one_body), (&other, &other_body));

        let (before, before_body) = recorded(&entry, &mut then, &step).unwrap();
        let before_body = unowned(&step, before_body);
        let told = entry["cut"].is_null() && entry["binary"].is_null();
        if !told {
            tally.untold();
        }
        let since = |answer: &Answer, body: &Value| {
            let (was, is) = if told {
                (anonymous(before_body.clone()), anonymous(body.clone()))
            } else {
                (Value::Null, Value::Null)
            };
            alike::differences(&step, (&before, &was), (answer, &is))
        };
        let drift = since(&one, &one_body);
        let ours_since = since(&other, &other_body);
        if let Some(complaint) = tally.judge(id, &between, &drift, &ours_since) {
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

fn ask(side: &mut Side, entry: &Value, step: &Step) -> Result<Answer> {
    match entry["as"].as_str() {
        None => {
            let answer = side.send(step)?;
            await_contents(side, step, &answer);
            Ok(answer)
        }
        Some("anonymous") => side.send_as(&side.client().anonymous(), step),
        Some(token) => {
            let token = side.words.own(token);
            side.send_as(&side.client().anonymous().bearer(&token), step)
        }
    }
}

/// Waits until controllers have put into a new namespace what they put into each: whether that comes
/// before or after what the next requests make is chance, and watches from old versions show it.
fn await_contents(side: &Side, step: &Step, answer: &Answer) {
    if (step.method, step.path.as_str(), answer.status) != ("POST", NAMESPACES, StatusCode::CREATED)
    {
        return;
    }
    let body = answer.json();
    let name = body["metadata"]["name"].as_str().expect("a new namespace has its name");
    for content in ["configmaps/kube-root-ca.crt", "serviceaccounts/default"] {
        eventually("a new namespace has what every namespace has", || {
            side.client().get(&format!("{NAMESPACES}/{name}/{content}"))?.success()
        });
    }
}

/// Makes what a recorded request found in place; says so when it cannot be made.
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
            let answer = side.client().get(path)?;
            answer.success()?;
            anyhow::ensure!(answer.text().contains(shown), "no {shown} in {}", answer.text());
            Ok(())
        });
        return None;
    }
    let step = step(entry).unwrap();
    let answer = side.send(&step).unwrap();
    await_contents(side, &step, &answer);
    read(&mut side.words, before, &step, &answer);
    if answer.status.is_success() || recorded_known::is_refused_here(before) {
        return None;
    }
    Some(format!("before '{before}', {step} at {}: {} {}", side.name, answer.status, answer.text()))
}

/// The body in words that all servers share. Notes what later requests are made of.
fn read(words: &mut Words, id: &str, step: &Step, answer: &Answer) -> Value {
    let path = step.path.split('?').next().unwrap_or_default();
    // The old way to watch names the same objects.
    let path = &path.replacen("/v1/watch/", "/v1/", 1);
    if let Some(tag) = answer.headers.get("etag").and_then(|tag| tag.to_str().ok()) {
        words.note(format!("etag {path}"), tag);
    }
    if let Ok(value) = serde_json::from_slice::<Value>(&answer.body) {
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
    if answer.body.contains(&0) || answer.body.starts_with(b"k8s") {
        return json!("binary");
    }
    match events(&answer.text()) {
        Some(events) => share_events(words, path, events),
        None => words.share(path, &answer.body),
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

/// What was answered then.
fn recorded(entry: &Value, words: &mut Words, step: &Step) -> Result<(Answer, Value)> {
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
        Some(answer) => answer.to_string(),
        None => entry["text"].as_str().unwrap_or_default().to_owned(),
    };
    let answer = Answer { status, headers, body: Bytes::from(body) };
    let body = match entry.get("events").and_then(Value::as_array) {
        Some(events) => share_events(words, &step.path, events.clone()),
        None => read(words, "", step, &answer),
    };
    Ok((answer, body))
}

/// Without versions, uids and times, which the recording counts from elsewhere.
/// Without the owners of fields, which were left out of the record; the random requests compare them. What was not
/// stored has no version that means anything.
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
