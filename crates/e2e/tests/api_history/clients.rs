//! Clients that write and read a few objects, so that they meet, until they are told to end or the
//! server is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use http::Method;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::record::{Answer, Entry, Mode, Object, Question, Recorder, Scope, version};
use crate::wire::{Line, Wire};

/// A kind that no controller touches, and of which a PUT makes no object that is not there.
pub const POLICIES: &str = "/apis/networking.k8s.io/v1/networkpolicies";
pub const NAMESPACES: [&str; 2] = ["one", "two"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const LABELS: [&str; 2] = ["left", "right"];
/// How far behind what was told exact lists and watches begin, at most.
const BACK_MAX: u64 = 90;

/// What everybody at one server shares in one of its lives.
pub struct Scene {
    pub wire: Wire,
    pub recorder: Arc<Recorder>,
    /// Newest version told to anybody.
    pub known: AtomicU64,
    pub seed: u64,
    /// Which life it is: values are named after it.
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

    pub fn ask(&self, question: Question) -> usize {
        self.recorder.ask(self.life, question)
    }

    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    pub fn some_version(&self, random: &mut StdRng) -> u64 {
        self.known().saturating_sub(random.random_range(0..BACK_MAX)).max(1)
    }

    /// Deletes a namespace with something in it.
    pub async fn end_namespace(&self) -> Result<()> {
        let name = format!("gone-{}", self.life);
        let mut line = Line::default();
        let namespace = json!({"metadata": {"name": name}});
        self.wire.call(&mut line, Method::POST, "/api/v1/namespaces", Some(&namespace)).await?;
        let mut client = Client::new(self, 900);
        for key in ["a", "b"].map(|object| format!("{name}/{object}")) {
            client.create(&key).await?;
        }
        let number = self.ask(Question::DeleteNamespace { name: name.clone() });
        let path = format!("/api/v1/namespaces/{name}");
        let (status, _) = self.wire.call(&mut line, Method::DELETE, &path, None).await?;
        self.write(Entry::Told(number, told_of_deletion(status)));
        Ok(())
    }
}

fn told_of_deletion(status: u16) -> Answer {
    match status {
        200 | 202 => Answer::Deleted,
        404 => Answer::Absent,
        409 => Answer::Conflict,
        500.. => Answer::Unknown(status.to_string()),
        _ => Answer::Refused(status.to_string()),
    }
}

pub fn path_of(key: &str) -> String {
    let collection = POLICIES.trim_end_matches("/networkpolicies");
    let (namespace, name) = key.split_once('/').expect("a key has a namespace");
    format!("{collection}/namespaces/{namespace}/networkpolicies/{name}")
}

/// The collection and the query that ask for `scope`.
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

/// A list, as it was told.
pub async fn list(scene: &Scene, line: &mut Line, scope: Scope, mode: Mode) -> Result<Answer> {
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
    let number = scene.ask(Question::List { scope, mode });
    let mut items = Vec::new();
    let mut way_on = String::new();
    let answer = loop {
        let path = format!("{base}{query}{way_on}");
        let (status, body) = scene.wire.call(line, Method::GET, &path, None).await?;
        match status {
            200 => {}
            410 => break Answer::Gone { newest: newest(scene, line).await },
            _ => break Answer::Refused(body.to_string()),
        }
        for item in body["items"].as_array().into_iter().flatten() {
            items.push(Object::read(item)?);
        }
        match body["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => way_on = format!("&continue={token}"),
            _ => break Answer::Listed { version: version(&body)?, items },
        }
    };
    scene.write(Entry::Told(number, answer.clone()));
    Ok(answer)
}

/// The newest version, by a list of nothing.
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
    /// What it was told last of each key.
    found: BTreeMap<String, Object>,
}

impl<'s> Client<'s> {
    pub fn new(scene: &'s Scene, number: u64) -> Self {
        let name = format!("life-{}-client-{number}", scene.life);
        let (random, found) = (scene.random(number), BTreeMap::new());
        Self { scene, line: Line::default(), random, name, writes: 0, found }
    }

    /// # Errors
    /// The server does not answer any more, or not what can be read.
    pub async fn work(mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            self.step().await?;
        }
        Ok(())
    }

    /// One more commit. Answers its version.
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
        let question = Question::Create { key: key.to_owned(), value, label };
        let path = path_of(key);
        let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection);
        self.write(question, Method::POST, collection, &body).await
    }

    async fn update(&mut self, key: &str) -> Result<()> {
        // Usually what is there, now and then what was there.
        if !self.found.contains_key(key) || self.random.random_bool(0.7) {
            self.get(key).await?;
        }
        let Some(expected) = self.found.get(key).map(|found| found.version) else { return Ok(()) };
        let (value, label) = (self.value(), self.label());
        let body = body(key, &value, &label, Some(expected));
        let question = Question::Update { key: key.to_owned(), value, label, expected };
        self.write(question, Method::PUT, &path_of(key), &body).await
    }

    async fn patch(&mut self, key: &str) -> Result<()> {
        let value = self.value();
        let body = json!({"spec": {"podSelector": {"matchLabels": {"value": value}}}});
        let question = Question::Patch { key: key.to_owned(), value };
        self.write(question, Method::PATCH, &path_of(key), &body).await
    }

    async fn write(
        &mut self,
        question: Question,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<()> {
        let (is_create, is_patch) = (method == Method::POST, method == Method::PATCH);
        let number = self.scene.ask(question);
        let (status, told) = self.scene.wire.call(&mut self.line, method, path, Some(body)).await?;
        let answer = match status {
            200 | 201 => Answer::Written(self.keep(&told)?),
            404 if !is_create => Answer::Absent,
            409 if !is_patch => Answer::Conflict,
            500.. => Answer::Unknown(told.to_string()),
            _ => Answer::Refused(told.to_string()),
        };
        self.scene.write(Entry::Told(number, answer));
        Ok(())
    }

    fn keep(&mut self, told: &Value) -> Result<Object> {
        let object = Object::read(told)?;
        self.found.insert(object.key.clone(), object.clone());
        Ok(object)
    }

    async fn delete(&mut self, key: &str) -> Result<()> {
        if !self.found.contains_key(key) || self.random.random_bool(0.7) {
            self.get(key).await?;
        }
        let Some(expected) = self.found.get(key).map(|found| found.version) else { return Ok(()) };
        let body = json!({"preconditions": {"resourceVersion": expected.to_string()}});
        let number = self.scene.ask(Question::Delete { key: key.to_owned(), expected });
        let (path, wire) = (path_of(key), &self.scene.wire);
        let (status, _) = wire.call(&mut self.line, Method::DELETE, &path, Some(&body)).await?;
        self.scene.write(Entry::Told(number, told_of_deletion(status)));
        Ok(())
    }

    async fn get(&mut self, key: &str) -> Result<()> {
        let number = self.scene.ask(Question::Get { key: key.to_owned() });
        let (path, wire) = (path_of(key), &self.scene.wire);
        let (status, told) = wire.call(&mut self.line, Method::GET, &path, None).await?;
        let answer = match status {
            200 => Answer::Found(self.keep(&told)?),
            404 => Answer::Absent,
            _ => Answer::Refused(told.to_string()),
        };
        self.scene.write(Entry::Told(number, answer));
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
