//! Puts a canary into every credential field of every kind, and scans every output as every user.
//! The fields come from a list that a test compares with the tables: a new one is in the search,
//! and one that is no longer marked is found. A canary in a field that is no credential proves that
//! the search works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::credentials::PREFIX;
use api_management::table::{Mark, TypeTable};
use api_management::{GROUP, keys, types};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use rest_view::{Key, KubeResource};
use serde_json::{Value, json};
use test_kit::eventually;

use super::setup::{CLUSTER_A, Setup, TestUser, USERS};
use super::socket::Socket;

const QUIET: Duration = Duration::from_millis(400);
const WATCH: &str = "?watch=true&resourceVersion=0&timeoutSeconds=1";
const LAST: &str = "ui-brand";
/// A field that definitions prune: only clusters from old versions have it.
const NOT_STORED: [&str; 3] = [
    "Cluster.spec.amazonElasticContainerServiceConfig{}",
    "Cluster.spec.azureKubernetesServiceConfig{}",
    "Cluster.spec.googleKubernetesEngineConfig{}",
];

const FIELDS: &str = include_str!("../../../api-management/src/credentials/fields.txt");
/// In a field that every reader of a notifier can read.
const PLANTED: &str = "planted-where-everybody-reads";

/// The listed fields of each kind.
fn listed() -> BTreeMap<&'static str, Vec<(String, Mark)>> {
    let mut fields: BTreeMap<&str, Vec<(String, Mark)>> = BTreeMap::new();
    let mut kind = "";
    for line in FIELDS.lines() {
        let Some(field) = line.strip_prefix("  ") else {
            kind = line;
            continue;
        };
        let mark = match field.split_once(' ').unwrap() {
            (_, "Credential") => Mark::Credential,
            (_, "Url") => Mark::Url,
            (_, "Password") => Mark::Password,
            (_, other) => panic!("{other}"),
        };
        let path = field.split_once(' ').unwrap().0.to_owned();
        fields.entry(kind).or_default().push((path, mark));
    }
    fields
}

/// One canary and its path.
struct Canary {
    field: String,
    mark: Mark,
    text: String,
}

/// One object with all its canaries.
struct Marked {
    table: TypeTable,
    resource: KubeResource,
    key: Key,
    canaries: Vec<Canary>,
}

impl Marked {
    fn id(&self) -> String {
        match self.key.namespace.as_str() {
            "" => self.key.name.clone(),
            namespace => format!("{namespace}:{}", self.key.name),
        }
    }
}

/// Puts `value` at a path like `spec.nodes[].sshKey` or `spec.answers{}`.
fn put(object: &mut Value, path: &str, value: Value) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let end = first.find(['[', '{']).unwrap_or(first.len());
    let mut at = &mut object[&first[..end]];
    for inside in first.as_bytes()[end..].chunks(2) {
        if inside == b"[]" && at.is_null() {
            *at = json!([{}]);
        }
        at = if inside == b"[]" { &mut at[0] } else { &mut at["key"] };
    }
    if rest.is_empty() {
        *at = value;
    } else {
        if !at.is_object() {
            *at = json!({});
        }
        put(at, rest, value);
    }
}

/// The canaries in a text, also in its base64 parts, such as the data of Secrets.
fn canaries_in(text: &str) -> BTreeSet<String> {
    let plain = |text: &str| -> Vec<String> {
        let found = text.match_indices("canary-").filter_map(|(at, _)| {
            let end = text[at..].find("-end")?;
            Some(text[at..at + end + "-end".len()].to_owned())
        });
        found.collect()
    };
    let mut found: BTreeSet<String> = plain(text).into_iter().collect();
    for begin in ["canary-", "https://user:"] {
        // The last letters depend on the following bytes.
        let begin = BASE64_STANDARD.encode(&begin[..begin.len() / 3 * 3]);
        for (at, _) in text.match_indices(&begin) {
            let is_letter = |c: &u8| c.is_ascii_alphanumeric() || b"+/=".contains(c);
            let length = text[at..].bytes().take_while(is_letter).count();
            let bytes = BASE64_STANDARD.decode(&text[at..at + length]).unwrap_or_default();
            found.extend(plain(&String::from_utf8_lossy(&bytes)));
        }
    }
    found
}

struct Search {
    setup: Arc<Setup>,
    marked: Vec<Marked>,
    /// The users who may update each object.
    updates: BTreeSet<(TestUser, usize)>,
    /// All findings: user and text of the canary.
    found: BTreeSet<(TestUser, String)>,
    /// The outputs in which a member of the cluster found [`PLANTED`].
    planted: BTreeSet<String>,
}

impl Search {
    async fn start() -> Self {
        let setup = Arc::new(Setup::start(|view, _| view).await);
        let (updates, found, planted) = Default::default();
        let mut search = Self { setup, marked: Vec::new(), updates, found, planted };
        for (kind, fields) in listed() {
            let made = search.make(kind, fields).await;
            search.marked.push(made);
        }
        search.find_updates().await;
        search
    }

    /// Records the users who may update each object.
    async fn find_updates(&mut self) {
        for index in 0..self.marked.len() {
            for who in USERS.into_iter().filter(|who| *who != TestUser::Anonymous) {
                if self.may_update(who, &self.marked[index]).await {
                    self.updates.insert((who, index));
                }
            }
        }
    }

    async fn request(
        &self,
        who: TestUser,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, String) {
        self.send(who, method, path, "application/json", body).await
    }

    /// Scans the responses of the Kubernetes API.
    async fn send(
        &self,
        who: TestUser,
        method: &str,
        path: &str,
        accept: &str,
        body: &Value,
    ) -> (u16, String) {
        let (_, client) = self.setup.caller(who);
        let is_patch = method == "PATCH";
        let kind = if is_patch { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", kind).header("accept", accept);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = client.send(request.body(body.into_bytes().into()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn make(&self, kind: &str, fields: Vec<(String, Mark)>) -> Marked {
        let table = types::tables_of_kind(kind).remove(0);
        let resource = feature_kit::table::resource_of(&table).unwrap();
        let (_, project) = self.setup.a.project.split_once(':').unwrap();
        let namespace = match (table.namespace, table.parent) {
            (Some(namespace), _) => namespace,
            (None, Some("projectId")) => project,
            (None, _) if resource.namespaced => CLUSTER_A,
            _ => "",
        };
        let name = if kind == "Cluster" { CLUSTER_A } else { "canary" };
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        let (mut object, mut canaries) = (json!({}), Vec::new());
        for (index, (field, mark)) in fields.into_iter().enumerate() {
            let text = format!("canary-{}-{index}-end", kind.to_lowercase());
            let value = match mark {
                Mark::Url => format!("https://user:{text}@host.example"),
                _ => text.clone(),
            };
            put(&mut object, &field, value.into());
            canaries.push(Canary { field, mark, text });
        }
        if kind == "Notifier" {
            put(&mut object, "spec.description", PLANTED.into());
        }
        let status = json!({ "status": object["status"].take() });
        object.as_object_mut().unwrap().remove("status");
        let made = Marked { table, resource, key, canaries };
        let path = made.resource.object_path(&made.key);
        let done = if kind == "Cluster" {
            self.request(TestUser::Admin, "PATCH", &path, &object).await
        } else {
            object["apiVersion"] = made.resource.api_version().into();
            object["kind"] = kind.into();
            object["metadata"] = json!({ "name": name });
            let collection = made.resource.collection_path(namespace);
            self.request(TestUser::Admin, "POST", &collection, &object).await
        };
        assert!([200, 201].contains(&done.0), "{kind}: {}", done.1);
        if status["status"].is_object() {
            let path = format!("{path}/status");
            let (code, response) = self.request(TestUser::Admin, "PATCH", &path, &status).await;
            assert!(code == 200, "{path}: {response}");
        }
        made
    }

    async fn may_update(&self, who: TestUser, marked: &Marked) -> bool {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": "update", "group": GROUP, "version": "v3", "resource": marked.resource.plural,
                "namespace": marked.key.namespace, "name": marked.key.name,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (_, response) = self.request(who, "POST", path, &review).await;
        serde_json::from_str::<Value>(&response).unwrap()["status"]["allowed"] == true
    }

    /// Searches for canaries. `in_view`: users who may update an object find its canaries that are
    /// no password.
    fn scan(&mut self, who: TestUser, what: &str, text: &str, in_view: bool) {
        assert!(!text.contains(PREFIX) || !in_view, "{who:?} {what} shows a reference: {text}");
        let is_store = who == TestUser::Admin && what.contains("secrets");
        let seen = canaries_in(text);
        if who == TestUser::Member && text.contains(PLANTED) {
            self.planted.insert(what.to_owned());
        }
        for (index, marked) in self.marked.iter().enumerate() {
            for canary in marked.canaries.iter().filter(|canary| seen.contains(&canary.text)) {
                let may = in_view
                    && canary.mark != Mark::Password
                    && self.updates.contains(&(who, index));
                let about = format!("{}.{}", marked.resource.kind, canary.field);
                assert!(may || is_store, "{who:?} reads {about} in {what}: {text}");
                self.found.insert((who, canary.text.clone()));
            }
        }
    }

    async fn scan_kubernetes(&mut self) {
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";
        let mut paths = Vec::new();
        for marked in &self.marked {
            let all = marked.resource.collection_path("");
            let near = marked.resource.collection_path(&marked.key.namespace);
            for collection in BTreeSet::from([&all, &near]) {
                paths.push(format!("{collection}{WATCH}"));
            }
            paths.push(near);
            paths.push(marked.resource.object_path(&marked.key));
            paths.push(all);
        }
        let others =
            ["/api/v1/secrets", "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/events"];
        paths.extend(others.map(str::to_owned));
        paths.push(format!("/api/v1/namespaces/{}/secrets", keys::CREDENTIALS_NS));
        paths.push(format!("/api/v1/namespaces/{CLUSTER_A}/secrets"));
        let (_, project) = self.setup.a.project.split_once(':').unwrap();
        paths.push(format!("/api/v1/namespaces/{project}/secrets"));
        paths.extend(["/openapi/v2".to_owned(), format!("/openapi/v3/apis/{GROUP}/v3")]);
        for who in USERS {
            let requests =
                paths.iter().flat_map(|path| [(path, table), (path, "application/json")]);
            let requests = requests.map(|(path, accept)| {
                let search = &*self;
                async move { (path, search.send(who, "GET", path, accept, &Value::Null).await.1) }
            });
            // Each watch takes a while.
            for (path, text) in join_all(requests).await {
                self.scan(who, path, &text, false);
            }
        }
    }

    async fn scan_view(&mut self) {
        let mut paths = vec!["/v3/schemas".to_owned(), "/v3/openapi.json".to_owned()];
        for marked in &self.marked {
            for table in types::tables_of_kind(&marked.resource.kind) {
                let list = format!("/v3/{}", table.plural.to_lowercase());
                paths.push(format!("{list}/{}", marked.id()));
                paths.push(list);
            }
        }
        for who in USERS {
            for path in &paths {
                let (_, text) = self.setup.text(who, "GET", path, &Value::Null).await;
                self.scan(who, path, &text, true);
            }
        }
    }

    async fn scan_feed(&mut self) {
        let all: Vec<TestUser> =
            USERS.into_iter().filter(|who| *who != TestUser::Anonymous).collect();
        let mut sockets = Vec::new();
        for who in &all {
            sockets.push(Socket::open(&self.setup, *who, "/v3/subscribe").await.unwrap());
        }
        for marked in &self.marked {
            let change = json!({"metadata": {"labels": {"changed": "yes"}}});
            let path = marked.resource.object_path(&marked.key);
            let (code, response) = self.request(TestUser::Admin, "PATCH", &path, &change).await;
            assert_eq!(code, 200, "{response}");
        }
        let setting = json!({ "value": "last" });
        self.setup.must(200, "PUT", &format!("/v3/settings/{LAST}"), &setting).await;
        for (who, socket) in all.into_iter().zip(&mut sockets) {
            let last =
                |frame: &Value| frame["data"]["id"] == LAST && frame["data"]["value"] == "last";
            for frame in socket.frames(last, QUIET).await {
                self.scan(who, "feed", &frame.to_string(), true);
            }
        }
    }

    /// Sends, as the user, an invalid write of each object: refusals reveal nothing either.
    async fn scan_refusals(&mut self) {
        let wrong = json!({"spec": 7, "metadata": {"labels": 7}});
        for who in USERS {
            for index in 0..self.marked.len() {
                let path = self.marked[index].resource.object_path(&self.marked[index].key);
                let (code, text) = self.request(who, "PATCH", &path, &wrong).await;
                assert!(code >= 400, "{who:?} {path}: {text}");
                self.scan(who, &path, &text, false);
                let view = format!(
                    "/v3/{}/{}",
                    self.marked[index].table.plural.to_lowercase(),
                    self.marked[index].id()
                );
                let (_, text) = self.setup.text(who, "PUT", &view, &json!({"labels": 7})).await;
                self.scan(who, &view, &text, true);
            }
        }
    }

    /// Checks that the search finds anything at all.
    fn check_found(&self) {
        let mut by_kind: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        let mut missing = Vec::new();
        for marked in &self.marked {
            for canary in &marked.canaries {
                // An administrator lists the Secrets.
                let text = canary.text.clone();
                // A controller reports the contents.
                let is_copy = canary.field.starts_with("status.appliedSpec");
                if !is_copy && !self.found.contains(&(TestUser::Admin, text.clone())) {
                    missing.push(format!("{}.{}", marked.resource.kind, canary.field));
                }
                let counts = by_kind.entry(&marked.resource.kind).or_default();
                counts[0] += 1;
                counts[1] += usize::from(self.found.contains(&(TestUser::Owner, text)));
            }
        }
        for (kind, [all, of_owner]) in &by_kind {
            println!("{kind}: {all} canaries, the owner of the cluster reads {of_owner}");
        }
        assert_eq!(missing, NOT_STORED);
        assert!(by_kind["Notifier"][1] >= 6 && by_kind["Cluster"][1] >= 1, "{by_kind:?}");
        let path = self.marked.iter().find(|marked| marked.resource.kind == "Notifier").unwrap();
        let object = path.resource.object_path(&path.key);
        let view = format!("/v3/notifiers/{}", path.id());
        let collection = path.resource.collection_path(&path.key.namespace);
        let watch = format!("{collection}{WATCH}");
        for output in [&object, &collection, &watch, &view, "/v3/notifiers", "feed"] {
            assert!(self.planted.contains(output), "{output} was not searched: {:?}", self.planted);
        }
        let others = [TestUser::Member, TestUser::Standard, TestUser::Nobody, TestUser::Anonymous];
        let found = self.found.iter().filter(|(who, _)| others.contains(who)).collect::<Vec<_>>();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_in_every_credential_field_is_found_only_where_its_owner_may_see_it() {
    let mut search = Search::start().await;
    let path = format!("/v3/clusters/{CLUSTER_A}");
    eventually("the cluster's applied specification", async || {
        let (_, cluster) = search.setup.get(TestUser::Admin, &path).await;
        let applied = &cluster["appliedSpec"]["agentEnvVars"];
        if applied.is_array() { Ok(()) } else { Err(cluster) }
    })
    .await;
    search.scan_kubernetes().await;
    search.scan_view().await;
    search.scan_feed().await;
    search.scan_refusals().await;
    let metrics = search.setup.world.api.registry.metrics_text();
    search.scan(TestUser::Anonymous, "metrics", &metrics, false);
    search.check_found();
}
