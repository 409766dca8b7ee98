//! Random writes to one object, each compared with this crate's result.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use structured_merge::{
    ApplyError, ConvertError, FieldSet, ManagedFields, Path, Schema, Typed, Versions, Write,
};

use super::bodies::{self, TestKind};
use super::random::Random;
use super::server::{Server, ServerResponse};

const MANAGERS: [&str; 5] = ["alpha", "beta", "gamma", "kubectl", "x<y> & \"z\""];
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

pub struct Stream<'k> {
    pub kind: &'k TestKind,
    schema: Schema,
    random: Random,
    /// The object in the server's last response.
    pub live: Option<Value>,
    pub taken: usize,
    outcomes: BTreeMap<String, usize>,
}

/// A kind with one version, and the fields that the current endpoint resets.
struct OneVersion {
    reset: FieldSet,
}

impl Versions for OneVersion {
    fn convert<'a>(
        &'a self,
        object: &Typed<'a>,
        api_version: &str,
    ) -> Result<Typed<'a>, ConvertError> {
        match object.value["apiVersion"].as_str() {
            Some(own) if own == api_version => Ok(object.clone()),
            _ => Err(ConvertError::MissingVersion(api_version.to_owned())),
        }
    }
    fn ignored_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }
}

/// The exact text of each entry's set.
#[derive(Deserialize)]
struct Answered {
    metadata: AnsweredMetadata,
}
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredMetadata {
    #[serde(default)]
    managed_fields: Vec<AnsweredEntry>,
}
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredEntry {
    fields_v1: Box<RawValue>,
}

impl<'k> Stream<'k> {
    pub fn new(kind: &'k TestKind, schema: Schema, random: Random) -> Self {
        Self { kind, schema, random, live: None, taken: 0, outcomes: BTreeMap::new() }
    }

    pub fn summary(&self) -> String {
        format!("{}: {} taken of {:?}", self.kind.kind, self.taken, self.outcomes)
    }

    pub async fn step(&mut self, server: &Server, step: usize) {
        let subresource = if self.kind.status && self.live.is_some() && self.random.percent(15) {
            "status"
        } else {
            ""
        };
        let manager = self.random.pick(&MANAGERS).to_owned();
        let context = format!("{} step {step} by {manager}", self.kind.kind);
        match (&self.live, self.random.below(100)) {
            (None, 0..50) => self.create(server, &manager, &context).await,
            (Some(live), 0..4) => {
                let path = format!("{}/{}", self.kind.collection, name_of(live));
                server.send(Method::DELETE, &path, JSON, &json!({})).await;
                self.live = None;
            }
            (Some(_), 4..20) if subresource.is_empty() => {
                self.replace(server, &manager, &context).await;
            }
            (Some(_), 4..40) => self.patch(server, &manager, subresource, &context).await,
            _ => self.apply(server, &manager, subresource, &context).await,
        }
    }

    fn versions(&self, subresource: &str) -> OneVersion {
        let reset: &[&[&str]] = match (subresource, self.kind.kind) {
            ("", _) if self.kind.status => &[&["status"]],
            ("", _) => &[],
            (_, "Deployment") => &[&["spec"], &["metadata", "labels"]],
            (_, "Widget") => &[&["spec"], &["metadata"]],
            _ => &[&["spec"]],
        };
        OneVersion { reset: reset.iter().map(|names| Path::fields(names.to_vec())).collect() }
    }

    fn count(&mut self, what: &str, response: &ServerResponse) {
        *self.outcomes.entry(format!("{what} {}", response.code)).or_default() += 1;
        if response.code < 300 {
            self.taken += 1;
            self.live = Some(response.body.clone());
        }
    }

    async fn create(&mut self, server: &Server, manager: &str, context: &str) {
        let body = bodies::whole(self.kind, &mut self.random, true);
        let path = format!("{}?fieldManager={}", self.kind.collection, escaped(manager));
        let response = server.send(Method::POST, &path, JSON, &body).await;
        if response.code < 300 {
            let mut new = response.body.clone();
            new["metadata"].as_object_mut().unwrap().remove("managedFields");
            bodies::unallocate(self.kind, &mut new);
            self.compare_update(None, &new, manager, "", &response, context);
        }
        self.count("create", &response);
    }

    async fn replace(&mut self, server: &Server, manager: &str, context: &str) {
        let live = self.live.clone().unwrap();
        let desired = bodies::whole(self.kind, &mut self.random, true);
        let mut body = live.clone();
        for (member, value) in desired.as_object().unwrap() {
            if member != "metadata" {
                body[member] = value.clone();
            }
        }
        for member in ["labels", "annotations"] {
            body["metadata"][member] = desired["metadata"][member].clone();
        }
        bodies::keep_allocated(self.kind, &live, &mut body);
        let metadata = body["metadata"].as_object_mut().unwrap();
        match self.random.below(10) {
            0 => drop(metadata.insert("managedFields".to_owned(), json!([]))),
            1 => drop(metadata.insert("managedFields".to_owned(), json!([{}]))),
            2..6 => drop(metadata.remove("managedFields")),
            _ => {}
        }
        let path = self.path(&live, "", manager);
        let response = server.send(Method::PUT, &path, JSON, &body).await;
        if response.code < 300 {
            let mut new = response.body.clone();
            let metadata = new["metadata"].as_object_mut().unwrap();
            metadata.remove("managedFields");
            if let Some(given) = body["metadata"].get("managedFields") {
                metadata.insert("managedFields".to_owned(), given.clone());
            }
            self.compare_update(Some(&live), &new, manager, "", &response, context);
        }
        self.count("replace", &response);
    }

    async fn patch(&mut self, server: &Server, manager: &str, subresource: &str, context: &str) {
        let live = self.live.clone().unwrap();
        let body = if subresource.is_empty() {
            bodies::part(self.kind, &mut self.random)
        } else {
            json!({"status": bodies::status(self.kind, &mut self.random)})
        };
        let path = self.path(&live, subresource, manager);
        let response = server.send(Method::PATCH, &path, MERGE, &body).await;
        if response.code < 300 {
            let mut new = response.body.clone();
            new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
            self.compare_update(Some(&live), &new, manager, subresource, &response, context);
        }
        self.count(&format!("patch {subresource}"), &response);
    }

    async fn apply(&mut self, server: &Server, manager: &str, subresource: &str, context: &str) {
        let live = self.live.clone();
        let mut config = if subresource.is_empty() {
            bodies::whole(self.kind, &mut self.random, live.is_none())
        } else {
            let mut config = bodies::typed(self.kind);
            config["status"] = bodies::status(self.kind, &mut self.random);
            config
        };
        if subresource.is_empty() && self.random.percent(5) {
            bodies::spoil(self.kind, &mut config, &mut self.random);
        }
        let force = self.random.percent(40);
        let path = format!("{}&force={force}", self.path(&config, subresource, manager));
        let response = server.send(Method::PATCH, &path, APPLY, &config).await;
        let versions = self.versions(subresource);
        let write = self.write(&versions, live.as_ref(), manager, subresource, &response);
        let computed = write.apply(live.as_ref(), &config, force);
        let context = format!("{context}, applying {config} to {live:?}");
        match (response.code, computed) {
            (200 | 201, Ok(applied)) => {
                let entries = applied.object["metadata"].get("managedFields");
                self.compare_entries(live.as_ref(), entries, &response, &context);
                self.compare_objects(&applied.object, &response.body, &context);
            }
            (409, Err(error @ ApplyError::Conflicts(_))) => {
                let causes = response.body["details"]["causes"].as_array().unwrap().clone();
                let mut reported: Vec<_> = causes
                    .iter()
                    .map(|cause| {
                        let text = |name: &str| cause[name].as_str().unwrap().to_owned();
                        (text("message"), text("field"))
                    })
                    .collect();
                let mut computed = error.causes();
                // The server returns managers in no order, but paths in one.
                reported.sort_by(|left, right| left.0.cmp(&right.0));
                computed.sort_by(|left, right| left.0.cmp(&right.0));
                assert_eq!(computed, reported, "{context}");
                assert_eq!(error.to_string(), response.body["message"], "{context}");
            }
            (500, Err(error @ ApplyError::Config { .. })) => {
                assert_eq!(error.to_string(), response.body["message"], "{context}");
            }
            // Refused by the kind's own validation, which this crate does not have.
            (422, Ok(_)) => {}
            (code, computed) => panic!("{context}: {code} {} {computed:?}", response.text),
        }
        self.count(&format!("apply {subresource}"), &response);
    }

    fn path(&self, object: &Value, subresource: &str, manager: &str) -> String {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let (collection, name) = (self.kind.collection, name_of(object));
        format!("{collection}/{name}{slash}{subresource}?fieldManager={}", escaped(manager))
    }

    /// A write at the time that the server reports.
    fn write<'a>(
        &'a self,
        versions: &'a OneVersion,
        live: Option<&Value>,
        manager: &'a str,
        subresource: &'a str,
        response: &ServerResponse,
    ) -> Write<'a, OneVersion> {
        let times = |object: &Value| {
            let entries = object["metadata"]["managedFields"].as_array().cloned();
            let times = entries.into_iter().flatten();
            times.filter_map(|entry| entry["time"].as_str().map(str::to_owned)).max()
        };
        let time = times(&response.body).or_else(|| live.and_then(times));
        let now = time.map_or_else(jiff::Timestamp::now, |time| time.parse().unwrap());
        Write {
            versions,
            schema: &self.schema,
            api_version: self.kind.api_version,
            subresource,
            manager,
            now,
            compiled: self.kind.compiled,
        }
    }

    fn compare_update(
        &self,
        live: Option<&Value>,
        new: &Value,
        manager: &str,
        subresource: &str,
        response: &ServerResponse,
        context: &str,
    ) {
        let versions = self.versions(subresource);
        let write = self.write(&versions, live, manager, subresource, response);
        let context = format!("{context}, from {live:?} to {new}");
        let entries = write.update(live, new).unwrap_or_else(|error| panic!("{context}: {error}"));
        self.compare_entries(live, entries.as_ref(), response, &context);
    }

    fn compare_entries(
        &self,
        live: Option<&Value>,
        computed: Option<&Value>,
        response: &ServerResponse,
        context: &str,
    ) {
        let reported = response.body["metadata"].get("managedFields");
        let pretty = |entries: Option<&Value>| format!("{:#}", entries.unwrap_or(&Value::Null));
        // A write that does not change the decoded object is not stored, and its times stay.
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let written = live.is_none_or(|live| version(live) != version(&response.body));
        assert!(
            computed == reported || !written && timeless(computed) == timeless(reported),
            "{context}\nours: {}\ntheirs: {}",
            pretty(computed),
            pretty(reported)
        );
        // Custom resources pass through a tree, which sorts keys by their text.
        let raw: Answered = serde_json::from_str(&response.text).unwrap();
        if self.kind.compiled {
            for entry in raw.metadata.managed_fields {
                let text = entry.fields_v1.get();
                // Response bodies escape these characters within JSON; the set itself does not.
                let text =
                    text.replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&");
                assert_eq!(FieldSet::from_json(&text).unwrap().to_json(), text, "{context}");
            }
        }
        if let Some(reported) = reported {
            let again = ManagedFields::decode(reported).unwrap().encode();
            assert_eq!(again.as_ref(), Some(reported), "{context}");
        }
    }

    /// The server's object has every field of this crate's result. Beyond these it has only
    /// defaults and its own metadata.
    fn compare_objects(&self, computed: &Value, reported: &Value, context: &str) {
        let state = |object: &Value| {
            let mut object = object.clone();
            let metadata = object["metadata"].as_object_mut().unwrap();
            for own in ["generation", "resourceVersion", "managedFields"] {
                metadata.remove(own);
            }
            // The metadata of every kind have a compiled type.
            metadata.retain(|_, value| !is_unset(value));
            if self.kind.compiled {
                self.schema.fill_zeros(&mut object);
            }
            let compiled = self.kind.compiled;
            without(object, &|value| value.is_null() || compiled && is_unset(value))
        };
        let (computed, reported) = (state(computed), state(reported));
        let typed = |value| Typed::unchecked(std::borrow::Cow::Owned(value), &self.schema);
        let compared = typed(computed).compare(&typed(reported)).unwrap();
        let differing = compared.removed.union(&compared.modified);
        let paths: Vec<String> = differing.paths().iter().map(ToString::to_string).collect();
        assert!(paths.is_empty(), "{context}: the server has others at {paths:?}");
    }
}

/// Entries by their text, without times.
fn timeless(entries: Option<&Value>) -> BTreeSet<String> {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let without_time = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().unwrap().remove("time");
        entry.to_string()
    };
    entries.map(without_time).collect()
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        scalar => *scalar == "" || *scalar == 0 || *scalar == false,
    }
}

/// Removes members without meaning: null, and for compiled kinds empty values.
fn without(value: Value, nothing: &impl Fn(&Value) -> bool) -> Value {
    match value {
        Value::Object(map) => {
            let members = map.into_iter().map(|(key, value)| (key, without(value, nothing)));
            Value::Object(members.filter(|(_, value)| !nothing(value)).collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| without(item, nothing)).collect())
        }
        scalar => scalar,
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The cost of entries, as JSON.
pub fn cost(streams: &[Stream<'_>]) -> String {
    let line = |stream: &Stream<'_>| {
        let Some(live) = &stream.live else { return format!("{}: gone", stream.kind.kind) };
        let entries = &live["metadata"]["managedFields"];
        format!(
            "{}: {} of {} bytes are entries, {} of them",
            stream.kind.kind,
            entries.to_string().len(),
            live.to_string().len(),
            entries.as_array().map_or(0, Vec::len),
        )
    };
    streams.iter().map(line).collect::<Vec<_>>().join("\n")
}
