//! One of the two servers: sends a step in its own words, and knows what it called things.

use std::collections::HashMap;

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::Kubeconfig;
use e2e::http::{Answer, Client, Connection, runtime};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::stream::{NAMESPACES, Step};

/// Around what each server has its own value for: `‹uid /api/v1/…›`.
pub const OPEN: char = '‹';
pub const CLOSE: char = '›';

/// Stands for a token that leads on.
const A_TOKEN: &str = "a token";

/// A server, and its own values of what was seen there.
pub struct Side {
    pub name: &'static str,
    client: Client,
    connection: Option<Connection>,
    /// By path of the object, in the order seen.
    versions: HashMap<String, Vec<String>>,
    uids: HashMap<String, Vec<String>>,
    /// Of the newest list that had more.
    continued: String,
    /// By collection, of the newest list that was up to date.
    list_versions: HashMap<String, String>,
}

impl Side {
    pub fn new(name: &'static str, kubeconfig: &Kubeconfig) -> Result<Self> {
        Ok(Self {
            name,
            client: Client::of(kubeconfig)?,
            connection: None,
            versions: HashMap::new(),
            uids: HashMap::new(),
            continued: String::new(),
            list_versions: HashMap::new(),
        })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn send(&mut self, step: &Step) -> Result<Answer> {
        let mut request = Request::builder().method(step.method).uri(self.own(&step.path));
        for (name, value) in &step.headers {
            request = request.header(*name, value);
        }
        let body = Bytes::from(self.own(&step.body));
        let request = request.body(Full::new(body).boxed_unsync())?;
        let client = &self.client;
        let open = self.connection.take();
        let (connection, answer) = runtime().block_on(async {
            let mut connection = match open {
                Some(connection) => connection,
                None => client.connect().await?,
            };
            let answer = connection.send(request).await;
            anyhow::Ok((connection, answer))
        })?;
        let answer = answer.with_context(|| format!("{}: {step}", self.name))?;
        if !answer.headers.contains_key("connection") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// Removes the objects that a request to `path` was about, also ones that something holds.
    pub fn forget(&mut self, path: &str) -> Result<()> {
        let collection = collection(path);
        let plural = format!("/{}/", collection.rsplit('/').next().unwrap_or_default());
        self.uids.retain(|path, _| !path.contains(&plural));
        self.versions.retain(|path, _| !path.contains(&plural));
        let list = self.client.get(&collection)?.success()?;
        for item in list["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            if name.starts_with("kube-") || name.starts_with("system-") {
                continue;
            }
            let object = match item["metadata"]["namespace"].as_str() {
                Some(namespace) if NAMESPACES.contains(&namespace) => {
                    in_namespace(&collection, namespace, name)
                }
                Some(_) => continue,
                None => format!("{collection}/{name}"),
            };
            let request = Request::patch(&object)
                .header("content-type", "application/merge-patch+json")
                .body(
                    Full::new(Bytes::from_static(br#"{"metadata":{"finalizers":null}}"#))
                        .boxed_unsync(),
                )?;
            self.client.send(request)?;
            self.client.delete(&object)?;
        }
        Ok(())
    }

    /// Whether a shared answer is a list that goes on.
    pub fn has_more(list: &Value) -> bool {
        list.pointer("/metadata/continue").is_some_and(|token| token == A_TOKEN)
    }

    pub fn forget_way_on(&mut self) {
        self.continued.clear();
    }

    /// Puts this side's values for the marks.
    fn own(&self, text: &str) -> String {
        let mut own = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once(OPEN) {
            own.push_str(before);
            let Some((mark, after)) = marked.split_once(CLOSE) else {
                // A body that was cut off within a mark.
                rest = "";
                continue;
            };
            own.push_str(&self.value_of(mark));
            rest = after;
        }
        own.push_str(rest);
        own
    }

    fn value_of(&self, mark: &str) -> String {
        let (what, path) = mark.split_once(' ').unwrap_or((mark, ""));
        let last = |map: &HashMap<String, Vec<String>>, back: usize| {
            let seen = map.get(path)?;
            seen.len().checked_sub(back).and_then(|index| seen.get(index)).cloned()
        };
        match what {
            "uid" => last(&self.uids, 1).unwrap_or_else(|| "none".to_owned()),
            "version" => last(&self.versions, 1).unwrap_or_else(|| "1".to_owned()),
            "stale" => last(&self.versions, 2).unwrap_or_else(|| "1".to_owned()),
            "list" => self.list_versions.get(path).cloned().unwrap_or_else(|| "0".to_owned()),
            "continue" => self.continued.clone(),
            other => unreachable!("no mark '{other}'"),
        }
    }

    /// Learns from an answer to a request to `path`, and writes it in words that both sides share.
    pub fn share(&mut self, path: &str, body: &Bytes) -> Value {
        let text = String::from_utf8_lossy(body);
        let value = serde_json::from_str(&text).or_else(|_| serde_saphyr::from_str(&text));
        let Ok(mut value): Result<Value, _> = value else {
            return Value::String(text.into_owned());
        };
        self.share_value(path, &mut value);
        value
    }

    pub fn share_value(&mut self, path: &str, value: &mut Value) {
        let collection = collection(path);
        if let Some(metadata) = value.get("metadata").filter(|_| is_list(value)) {
            let is_current = !path.contains("resourceVersion=") && !path.contains("continue=");
            if let Some(version) = metadata.get("resourceVersion").and_then(Value::as_str)
                && is_current
            {
                self.list_versions.insert(collection.clone(), version.to_owned());
            }
            match metadata.get("continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => token.clone_into(&mut self.continued),
                _ => {}
            }
        }
        self.learn(&collection, value);
        if value.get("kind").is_some_and(|kind| kind == "Status") {
            self.rewrite(value);
        }
    }

    /// Notes the identity of each object in the answer, and replaces it by its number.
    fn learn(&mut self, collection: &str, value: &mut Value) {
        for list in ["items", "rows"] {
            if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
                for item in items {
                    self.learn(collection, item);
                }
            }
        }
        if let Some(object) = value.get_mut("object") {
            self.learn(collection, object);
        }
        let is_list = is_list(value);
        let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        if is_list {
            for (field, mark) in [("resourceVersion", "a version"), ("continue", A_TOKEN)] {
                if let Some(found) = metadata.get_mut(field).filter(|found| *found != "") {
                    *found = mark.into();
                }
            }
            return;
        }
        if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut().filter(|entry| !entry["time"].is_null()) {
                entry["time"] = "a time".into();
            }
            // Their order is that of their times.
            entries.sort_by_key(Value::to_string);
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(found) = metadata.get_mut(field).filter(|found| found.is_string()) {
                *found = "a time".into();
            }
        }
        let Some(name) = metadata.get("name").and_then(Value::as_str) else { return };
        let path = match metadata.get("namespace").and_then(Value::as_str) {
            Some(namespace) => in_namespace(collection, namespace, name),
            None => format!("{collection}/{name}"),
        };
        for (field, map) in [("uid", &mut self.uids), ("resourceVersion", &mut self.versions)] {
            if let Some(found) = metadata.get_mut(field)
                && let Some(text) = found.as_str()
            {
                let seen = map.entry(path.clone()).or_default();
                if !seen.iter().any(|seen| seen == text) {
                    seen.push(text.to_owned());
                }
                let number = seen.iter().position(|seen| seen == text).unwrap_or_default();
                *found = format!("{field} {number} of {path}").into();
            }
        }
    }

    /// Replaces what this side alone says within texts.
    fn rewrite(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (path, uids) in &self.uids {
                    for (number, uid) in uids.iter().enumerate() {
                        if text.contains(uid.as_str()) {
                            *text = text.replace(uid.as_str(), &format!("uid {number} of {path}"));
                        }
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.rewrite(field)),
            _ => {}
        }
    }
}

fn is_list(value: &Value) -> bool {
    value.get("items").is_some_and(Value::is_array) || value.get("rows").is_some()
}

/// The plural's path without namespace: `/api/v1/configmaps` of any path that concerns ConfigMaps.
pub fn collection(path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let group = if parts.first() == Some(&"api") { 2 } else { 3 };
    if parts.len() > group + 2 && parts[group] == "namespaces" {
        parts.drain(group..group + 2);
    }
    parts.truncate(group + 1);
    format!("/{}", parts.join("/"))
}

/// The path of an object of a namespace.
pub fn in_namespace(collection: &str, namespace: &str, name: &str) -> String {
    let (group, plural) = collection.rsplit_once('/').unwrap_or(("", collection));
    format!("{group}/namespaces/{namespace}/{plural}/{name}")
}
