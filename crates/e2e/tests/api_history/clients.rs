//! Clients that write and read a few objects, so that they conflict, for a number of steps or until
//! the server is killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use http::Method;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::record::{Entry, Mode, Object, Operation, Outcome, Recorder, Scope, version};
use crate::wire::{Line, Wire};

/// A kind that no controller writes, and of which a PUT creates no missing object.
pub const POLICIES: &str = "/apis/networking.k8s.io/v1/networkpolicies";
pub const NAMESPACES: [&str; 2] = ["one", "two"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const LABELS: [&str; 2] = ["left", "right"];
/// How far behind the newest reported version exact lists and watches begin, at most.
const BACK_MAX: u64 = 90;

/// The state that all clients of one server share in one of its lives.
pub struct Scene {
    pub wire: Wire,
    pub recorder: Arc<Recorder>,
    /// Newest version in any response or event.
    pub known: AtomicU64,
    pub seed: u64,
    /// Number of the life: values begin with it.
    pub life: u64,
}

impl Scene {
    pub fn random(&self, part: u64) -> StdRng {
        let own = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.life << 32);
        StdRng::seed_from_u64(own.wrapping_add(part))
    }

    pub fn write(&self, entry: Entry) {
        self.known.fetch_max(entry.version().unwrap_or(0), Ordering::Relaxed);
        self.recorder.write(self.life, entry);
    }

    pub fn record_invocation(&self, operation: Operation) -> usize {
        self.recorder.record_invocation(self.life, operation)
    }

    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    pub fn some_version(&self, random: &mut StdRng) -> u64 {
        self.known().saturating_sub(random.random_range(0..BACK_MAX)).max(1)
    }

    /// Deletes a namespace with objects in it.
    pub async fn delete_namespace(&self) -> Result<()> {
        let name = format!("deleted-{}", self.life);
        let mut line = Line::default();
        let namespace = json!({"metadata": {"name": name}});
        self.wire.call(&mut line, Method::POST, "/api/v1/namespaces", Some(&namespace)).await?;
        let mut client = Client::new(self, 900);
        for key in ["a", "b"].map(|object| format!("{name}/{object}")) {
            client.create(&key).await?;
        }
        let number = self.record_invocation(Operation::DeleteNamespace { name: name.clone() });
        let path = format!("/api/v1/namespaces/{name}");
        let (status, _) = self.wire.call(&mut line, Method::DELETE, &path, None).await?;
        self.write(Entry::Returned(number, deletion_outcome(status)));
        Ok(())
    }
}

fn deletion_outcome(status: u16) -> Outcome {
    match status {
        200 | 202 => Outcome::Deleted,
        404 => Outcome::Absent,
        409 => Outcome::Conflict,
        500.. => Outcome::Unknown(status.to_string()),
        _ => Outcome::Refused(status.to_string()),
    }
}

pub fn path_of(key: &str) -> String {
    let collection = POLICIES.trim_end_matches("/networkpolicies");
    let (namespace, name) = key.split_once('/').expect("a key has a namespace");
    format!("{collection}/namespaces/{namespace}/networkpolicies/{name}")
}

/// The collection and the query that request `scope`.
pub fn path_of_scope(scope: &Scope) -> String {
    let collection = match &scope.namespace {
        Some(namespace) => path_of(&format!("{namespace}/")).trim_end_matches('/').to_owned(),
        None => POLICIES.to_owned(),
    };
    match &scope.label {
        Some(label) => format!("{collection}?labelSelector=side%3D{label}"),
        None => format!("{collection}?"),
    }
}

pub fn some_scope(random: &mut StdRng) -> Scope {
    let one_of = |from: &[&str], random: &mut StdRng| {
        random.random_bool(0.4).then(|| (*from.choose(random).expect("some")).to_owned())
    };
    Scope { namespace: one_of(&NAMESPACES, random), label: one_of(&LABELS, random) }
}

/// Requests a list and records the response.
pub async fn list(scene: &Scene, line: &mut Line, scope: Scope, mode: Mode) -> Result<Outcome> {
    let base = path_of_scope(&scope);
    let query = match mode {
        Mode::Latest => String::new(),
        Mode::Any => "&resourceVersion=0".to_owned(),
        Mode::NotOlderThan(at) => {
            format!("&resourceVersion={at}&resourceVersionMatch=NotOlderThan")
        }
        Mode::Exact(at) => format!("&resourceVersion={at}&resourceVersionMatch=Exact"),
        Mode::Pages(limit) => format!("&limit={limit}"),
    };
    let number = scene.record_invocation(Operation::List { scope, mode });
    let mut items = Vec::new();
    let mut continuation = String::new();
    let outcome = loop {
        let path = format!("{base}{query}{continuation}");
        let (status, body) = scene.wire.call(line, Method::GET, &path, None).await?;
        match status {
            200 => {}
            410 => break Outcome::Expired { newest: newest(scene, line).await },
            _ => break Outcome::Refused(body.to_string()),
        }
        for item in body["items"].as_array().into_iter().flatten() {
            items.push(Object::read(item)?);
        }
        match body["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => continuation = format!("&continue={token}"),
            _ => break Outcome::Listed { version: version(&body)?, items },
        }
    };
    scene.write(Entry::Returned(number, outcome.clone()));
    Ok(outcome)
}

/// The newest version, by a list that matches no object.
pub async fn newest(scene: &Scene, line: &mut Line) -> Option<u64> {
    let path = format!("{POLICIES}?labelSelector=none");
    let (_, body) = scene.wire.call(line, Method::GET, &path, None).await.ok()?;
    version(&body).ok()
}

pub struct Client<'s> {
    scene: &'s Scene,
    line: Line,
    random: StdRng,
    name: String,
    writes: u64,
    /// The last known state of each key.
    found: BTreeMap<String, Object>,
}

impl<'s> Client<'s> {
    pub fn new(scene: &'s Scene, number: u64) -> Self {
        let name = format!("life-{}-client-{number}", scene.life);
        let (random, found) = (scene.random(number), BTreeMap::new());
        Self { scene, line: Line::default(), random, name, writes: 0, found }
    }

    /// # Errors
    /// The server does not respond, or its response cannot be parsed.
    pub async fn work(mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            self.step().await?;
        }
        Ok(())
    }

    /// Makes one more commit. Returns its version.
    ///
    /// # Errors
    /// It is refused.
    pub async fn last(mut self) -> Result<u64> {
        let key = format!("{}/last", NAMESPACES[0]);
        self.create(&key).await?;
        self.found.get(&key).map(|found| found.version).context("the last create is refused")
    }

    async fn step(&mut self) -> Result<()> {
        let namespace = NAMESPACES.choose(&mut self.random).expect("some");
        let key = format!("{namespace}/{}", NAMES.choose(&mut self.random).expect("some"));
        match self.random.random_range(0..100) {
            0..20 => self.create(&key).await,
            20..45 => self.update(&key).await,
            45..55 => self.patch(&key).await,
            55..67 => self.delete(&key).await,
            67..77 => self.get(&key).await,
            _ => {
                let mode = match self.random.random_range(0..7) {
                    0 | 1 => Mode::Latest,
                    2 => Mode::Any,
                    3 => Mode::NotOlderThan(self.scene.some_version(&mut self.random)),
                    4 => Mode::Exact(self.scene.some_version(&mut self.random)),
                    _ => Mode::Pages(self.random.random_range(1..4)),
                };
                let scope = some_scope(&mut self.random);
                list(self.scene, &mut self.line, scope, mode).await.map(drop)
            }
        }
    }

    fn value(&mut self) -> String {
        self.writes += 1;
        format!("{}-{}", self.name, self.writes)
    }

    fn label(&mut self) -> String {
        (*LABELS.choose(&mut self.random).expect("some")).to_owned()
    }

    async fn create(&mut self, key: &str) -> Result<()> {
        let (value, label) = (self.value(), self.label());
        let body = body(key, &value, &label, None);
        let operation = Operation::Create { key: key.to_owned(), value, label };
        let path = path_of(key);
        let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection);
        self.write(operation, Method::POST, collection, &body).await
    }

    async fn update(&mut self, key: &str) -> Result<()> {
        // Usually the current version, sometimes an old one.
        if !self.found.contains_key(key) || self.random.random_bool(0.7) {
            self.get(key).await?;
        }
        let Some(expected) = self.found.get(key).map(|found| found.version) else { return Ok(()) };
        let (value, label) = (self.value(), self.label());
        let body = body(key, &value, &label, Some(expected));
        let operation = Operation::Update { key: key.to_owned(), value, label, expected };
        self.write(operation, Method::PUT, &path_of(key), &body).await
    }

    async fn patch(&mut self, key: &str) -> Result<()> {
        let value = self.value();
        let body = json!({"spec": {"podSelector": {"matchLabels": {"value": value}}}});
        let operation = Operation::Patch { key: key.to_owned(), value };
        self.write(operation, Method::PATCH, &path_of(key), &body).await
    }

    async fn write(
        &mut self,
        operation: Operation,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<()> {
        let (is_create, is_patch) = (method == Method::POST, method == Method::PATCH);
        let number = self.scene.record_invocation(operation);
        let (status, response) =
            self.scene.wire.call(&mut self.line, method, path, Some(body)).await?;
        let outcome = match status {
            200 | 201 => Outcome::Written(self.store(&response)?),
            404 if !is_create => Outcome::Absent,
            409 if !is_patch => Outcome::Conflict,
            500.. => Outcome::Unknown(response.to_string()),
            _ => Outcome::Refused(response.to_string()),
        };
        self.scene.write(Entry::Returned(number, outcome));
        Ok(())
    }

    fn store(&mut self, response: &Value) -> Result<Object> {
        let object = Object::read(response)?;
        self.found.insert(object.key.clone(), object.clone());
        Ok(object)
    }

    async fn delete(&mut self, key: &str) -> Result<()> {
        if !self.found.contains_key(key) || self.random.random_bool(0.7) {
            self.get(key).await?;
        }
        let Some(expected) = self.found.get(key).map(|found| found.version) else { return Ok(()) };
        let body = json!({"preconditions": {"resourceVersion": expected.to_string()}});
        let number =
            self.scene.record_invocation(Operation::Delete { key: key.to_owned(), expected });
        let (path, wire) = (path_of(key), &self.scene.wire);
        let (status, _) = wire.call(&mut self.line, Method::DELETE, &path, Some(&body)).await?;
        self.scene.write(Entry::Returned(number, deletion_outcome(status)));
        Ok(())
    }

    async fn get(&mut self, key: &str) -> Result<()> {
        let number = self.scene.record_invocation(Operation::Get { key: key.to_owned() });
        let (path, wire) = (path_of(key), &self.scene.wire);
        let (status, response) = wire.call(&mut self.line, Method::GET, &path, None).await?;
        let outcome = match status {
            200 => Outcome::Found(self.store(&response)?),
            404 => Outcome::Absent,
            _ => Outcome::Refused(response.to_string()),
        };
        self.scene.write(Entry::Returned(number, outcome));
        Ok(())
    }
}

fn body(key: &str, value: &str, label: &str, version: Option<u64>) -> Value {
    let (namespace, name) = key.split_once('/').expect("a key has a namespace");
    let mut body = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": {"side": label}},
        "spec": {"podSelector": {"matchLabels": {"value": value}}},
    });
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.to_string().into();
    }
    body
}
