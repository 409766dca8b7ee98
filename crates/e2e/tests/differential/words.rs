//! Placeholders for server-specific values: uids, versions and tokens, learned from responses and
//! inserted into requests.

use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// Delimiters of a placeholder: `‹uid /api/v1/…›`.
pub const OPEN: char = '‹';
pub const CLOSE: char = '›';

/// Placeholder of a continue token.
const A_TOKEN: &str = "a token";
/// Letters at the end of a generated name.
const GENERATED_LENGTH: usize = 5;

/// One server's values of the placeholders.
#[derive(Default)]
pub struct Words {
    /// Uids by path of the object, in the order of their responses.
    versions: HashMap<String, Vec<String>>,
    uids: HashMap<String, Vec<String>>,
    /// Continue token of the newest incomplete list.
    continued: String,
    /// Version of the newest consistent list, by collection.
    list_versions: HashMap<String, String>,
    /// Other values, by placeholder.
    noted: HashMap<String, String>,
}

impl Words {
    /// Whether a normalized response is an incomplete list.
    pub fn has_more(list: &Value) -> bool {
        list.pointer("/metadata/continue").is_some_and(|token| token == A_TOKEN)
    }

    pub fn forget_way_on(&mut self) {
        self.continued.clear();
    }

    /// Forgets the objects of a plural.
    pub fn forget(&mut self, collection: &str) {
        let plural = format!("/{}/", collection.rsplit('/').next().unwrap_or_default());
        self.uids.retain(|path, _| !path.contains(&plural));
        self.versions.retain(|path, _| !path.contains(&plural));
    }

    /// Stores this server's value of `mark`.
    pub fn note(&mut self, mark: String, value: &str) {
        self.noted.insert(mark, value.to_owned());
    }

    /// Replaces the placeholders by this server's values.
    pub fn own(&self, text: &str) -> String {
        let mut own = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once(OPEN) {
            own.push_str(before);
            let Some((mark, after)) = marked.split_once(CLOSE) else {
                // A body that was truncated within a placeholder.
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
            "page" => {
                let (after, collection) = path.split_once(' ').unwrap_or((path, ""));
                let version = self.list_versions.get(collection).map_or("0", String::as_str);
                token_after(after, version)
            }
            "fill" => "x".repeat(path.parse().expect("a fill has its length")),
            _ => self.noted.get(mark).cloned().unwrap_or_default(),
        }
    }

    /// Learns values from the response to a request to `path`, and replaces them by placeholders.
    pub fn share(&mut self, path: &str, body: &[u8]) -> Value {
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
        if path.contains("dryRun=All")
            && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        {
            // Nothing was stored, so the version has no meaning.
            metadata.remove("resourceVersion");
        }
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

    /// Stores the uid of each object in the response, and replaces it by its number.
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
            // They are ordered by time.
            entries.sort_by_key(Value::to_string);
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(found) = metadata.get_mut(field).filter(|found| found.is_string()) {
                *found = "a time".into();
            }
        }
        name_generated(metadata);
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

    /// Replaces server-specific parts within texts.
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

/// Replaces all generated names of a prefix by one name.
fn name_generated(metadata: &mut Map<String, Value>) {
    let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
    let prefix = prefix.to_owned();
    let made_of_it = |name: &str| match name.len().checked_sub(GENERATED_LENGTH) {
        Some(base) if base > 0 => prefix.starts_with(&name[..base]),
        _ => false,
    };
    if let Some(name) = metadata.get_mut("name")
        && name.as_str().is_some_and(made_of_it)
    {
        *name = format!("{prefix}generated").into();
    }
}

/// The continue token after the key `after` in the list of `version`, in Kubernetes' encoding.
fn token_after(after: &str, version: &str) -> String {
    let token = format!(r#"{{"v":"meta.k8s.io/v1","rv":{version},"start":"{after}\\u0000"}}"#);
    BASE64_URL_SAFE_NO_PAD.encode(token)
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
