//! An object that a GET by id refuses appears nowhere: not in lists and their metadata, not in
//! errors, not on the change feed, not inside of visible objects.
//!
//! Every object has a unique mark. No response to a user may contain the mark of an object that the
//! user cannot get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, stream};
use http::Request;
use rest_view::Index;
use rest_view::index::INDEXED_FROM;
use serde_json::{Value, json};
use server::journal::Caches;
use test_kit::eventually;

use super::lists::Seen;
use super::objects::{Objects, Type};
use super::samples::make_needed;
use super::setup::{CLUSTER_A, CLUSTER_B, Setup, TestUser, USERS};
use super::socket::Socket;

/// No cluster has this name.
const NO_CLUSTER: &str = "c-nnnnn";
/// No object has this name.
const NO_NAME: &str = "none-of-that-name";
/// Time within which a forbidden frame would have arrived.
const QUIET: Duration = Duration::from_millis(400);
/// Longest wait for the last step of the change feed.
const LAST: &str = "ui-brand";
/// The users whose responses are checked; the administrator's lists show all objects.
const LOGGED_IN: [TestUser; 5] =
    [TestUser::Nobody, TestUser::Standard, TestUser::Member, TestUser::Owner, TestUser::Admin];

/// An object that this test creates.
struct Marked {
    kind: usize,
    id: String,
    mark: String,
}

/// Type and id.
type Name = (String, String);

struct Secrecy {
    setup: Arc<Setup>,
    types: Vec<Type>,
    marked: Vec<Marked>,
    /// The objects that each user can get.
    gets: BTreeMap<TestUser, BTreeSet<Name>>,
}

/// Types whose objects have no mark, because this test does not create them or they have no labels.
fn has_mark(kind: &Type) -> bool {
    kind.offers('c') && !["token", "preference"].contains(&kind.id.as_str()) || kind.id == "node"
}

fn marks_in(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("mark-").map(|(at, _)| {
        let digits = text[at + 5..].bytes().take_while(u8::is_ascii_digit).count();
        text[at..at + 5 + digits].to_owned()
    });
    found.collect()
}

impl Secrecy {
    async fn start() -> Self {
        let setup = Arc::new(Setup::start(|view, _| view).await);
        make_needed(&setup.world.admin()).await;
        let objects = Objects::new(&setup);
        let types = objects.types().await;
        let mut marked = Vec::new();
        for (index, kind) in types.iter().enumerate().filter(|(_, kind)| has_mark(kind)) {
            for &side in kind.sides() {
                let mark = format!("mark-{}", marked.len());
                let id = objects.make(kind, side, &mark).await;
                marked.push(Marked { kind: index, id, mark });
            }
        }
        for user in LOGGED_IN {
            for plural in ["tokens", "preferences"] {
                let body = json!({"name": format!("of-{}", user.id()), "value": "x"});
                let (status, answer) =
                    setup.request(user, "POST", &format!("/v3/{plural}"), &body).await;
                assert_eq!(status, 201, "{answer}");
            }
        }
        Self { setup, types, marked, gets: BTreeMap::new() }
    }

    fn listed_types(&self) -> impl Iterator<Item = &Type> {
        self.types.iter().filter(|kind| kind.offers('l') && kind.offers('g'))
    }

    async fn list(&self, who: TestUser, kind: &Type) -> Vec<Value> {
        let (status, text) = self.setup.text(who, "GET", &kind.path(), &Value::Null).await;
        assert_eq!(status, 200, "{who:?} {}: {text}", kind.id);
        let body: Value = serde_json::from_str(&text).unwrap();
        body["data"].as_array().unwrap().clone()
    }

    /// Gets each object by id that any user is shown: users in whose lists it is get it, with the
    /// same fields, and no others do.
    async fn check_gets(&mut self) {
        let mut gets: BTreeMap<TestUser, BTreeSet<Name>> = BTreeMap::new();
        for (index, kind) in self.types.iter().enumerate() {
            let mut listed: BTreeMap<TestUser, BTreeMap<String, Value>> = BTreeMap::new();
            for who in LOGGED_IN.into_iter().filter(|_| kind.offers('l')) {
                let items = self.list(who, kind).await.into_iter();
                let by_id = items.map(|item| (item["id"].as_str().unwrap().to_owned(), item));
                listed.insert(who, by_id.collect());
            }
            let made = self.marked.iter().filter(|marked| marked.kind == index);
            let mut all: BTreeSet<&String> = made.map(|marked| &marked.id).collect();
            all.extend(listed.values().flat_map(BTreeMap::keys));
            for id in all {
                for who in USERS {
                    let item = listed.get(&who).and_then(|items| items.get(id));
                    if self.is_shown(kind, who, id, item).await {
                        gets.entry(who).or_default().insert((kind.id.clone(), id.clone()));
                    }
                }
            }
        }
        self.gets = gets;
    }

    /// Whether the user gets the object by id, with the content of the list; `item`: the list's
    /// item.
    async fn is_shown(&self, kind: &Type, who: TestUser, id: &str, item: Option<&Value>) -> bool {
        if !kind.offers('g') {
            return item.is_some();
        }
        let (status, shown) = self.setup.get(who, &kind.path_of(id)).await;
        let about = format!("{who:?} {} {id}: {status} {shown}", kind.id);
        if kind.offers('l') && !is_open(kind, who) {
            assert_eq!(status == 200, item.is_some(), "{about}");
        }
        if let Some(item) = item {
            let keys = |value: &Value| -> BTreeSet<String> {
                value.as_object().unwrap().keys().cloned().collect()
            };
            assert_eq!(keys(item), keys(&shown), "{about}");
        }
        status == 200
    }

    fn may_get(&self, who: TestUser, kind: &str, id: &str) -> bool {
        let name = (kind.to_owned(), id.to_owned());
        self.gets.get(&who).is_some_and(|names| names.contains(&name))
    }

    /// Checks that the text contains no mark of an object that the user cannot get.
    fn check_marks(&self, who: TestUser, about: &str, text: &str) {
        for mark in marks_in(text) {
            let marked = self.marked.iter().find(|marked| marked.mark == mark).unwrap();
            let kind = &self.types[marked.kind].id;
            let may = self.may_get(who, kind, &marked.id);
            assert!(may, "{who:?} learns of {kind} {}: {about}: {text}", marked.id);
        }
    }

    async fn check_lists(&self) {
        for kind in self.listed_types() {
            let there = self.list(TestUser::Admin, kind).await;
            let mut seen_by_member = BTreeSet::new();
            for who in [TestUser::Standard, TestUser::Member, TestUser::Owner] {
                let shown = self.list(who, kind).await;
                let ids: BTreeSet<String> =
                    shown.iter().map(|item| item["id"].to_string()).collect();
                let is_known = who == TestUser::Owner && ids == seen_by_member;
                seen_by_member = ids;
                if is_known {
                    continue;
                }
                let hidden =
                    |item: &&Value| !self.may_get(who, &kind.id, item["id"].as_str().unwrap());
                let hidden: Vec<Value> = there.iter().filter(hidden).cloned().collect();
                // Every user may look up names of users.
                if kind.id == "principal" {
                    continue;
                }
                for item in &shown {
                    self.check_marks(who, &kind.id, &item.to_string());
                }
                Seen::new(&self.setup, who, kind, shown, hidden).check().await;
            }
        }
    }

    /// The response, without the names from the request.
    async fn response_without_names(
        &self,
        who: TestUser,
        method: &str,
        path: &str,
        body: &Value,
        id: &str,
    ) -> Value {
        let (status, text) = self.setup.text(who, method, path, body).await;
        self.check_marks(who, path, &text);
        let (namespace, name) = id.split_once(':').unwrap_or(("", id));
        let mut text = text.replace(&encoded(id), "ID").replace(id, "ID").replace(name, "NAME");
        if !namespace.is_empty() {
            text = text.replace(namespace, "NAMESPACE");
        }
        json!([status, text])
    }

    /// No response distinguishes a hidden object from a missing one.
    async fn check_errors(&self) {
        for (kind, id) in self.gets.values().flatten().collect::<BTreeSet<&Name>>() {
            let kind = self.types.iter().find(|known| known.id == *kind).unwrap();
            let absent = absent_like(id);
            for who in [TestUser::Anonymous, TestUser::Standard, TestUser::Member, TestUser::Owner]
            {
                let is_self = kind.id == "user" && id == who.id();
                if self.may_get(who, &kind.id, id) || is_open(kind, who) || is_self {
                    continue;
                }
                for (method, rest, body) in questions(kind) {
                    let path = |id: &str| format!("{}{rest}", kind.path_of(id));
                    let hidden =
                        self.response_without_names(who, method, &path(id), &body, id).await;
                    assert!(hidden[0].as_u64() >= Some(400), "{who:?} {method} {id}");
                    for absent in &absent {
                        let missing = self
                            .response_without_names(who, method, &path(absent), &body, absent)
                            .await;
                        assert_eq!(hidden, missing, "{who:?} {method} {}", path(id));
                    }
                }
            }
        }
    }

    /// Requests below a hidden cluster or project get the same responses as below a missing one.
    async fn check_below(&self) {
        let setup = [
            ("clusters", self.setup.b.cluster, NO_CLUSTER),
            ("projects", self.setup.b.project.as_str(), "c-nnnnn:p-nnnnn"),
        ];
        for who in [TestUser::Anonymous, TestUser::Standard, TestUser::Member, TestUser::Owner] {
            for (parent, hidden, absent) in setup {
                let below =
                    ["", "/schemas", "/namespaces", "/configmaps", "/nothing", "/subscribe"];
                let plurals = self.listed_types().map(|kind| format!("/{}", kind.plural));
                let below = below.map(str::to_owned).into_iter().chain(plurals);
                for rest in below {
                    let path = |id: &str| format!("/v3/{parent}/{id}{rest}");
                    let null = Value::Null;
                    let there =
                        self.response_without_names(who, "GET", &path(hidden), &null, hidden).await;
                    let nowhere =
                        self.response_without_names(who, "GET", &path(absent), &null, absent).await;
                    assert_eq!(there, nowhere, "{who:?} {}", path(hidden));
                }
            }
        }
    }

    /// Creating objects in a hidden cluster or project is refused like in a missing one.
    async fn check_creates(&self) {
        let objects = Objects::new(&self.setup);
        let (project, nowhere) = (&self.setup.b.project, format!("{NO_CLUSTER}:p-nnnnn"));
        let (_, namespace) = project.split_once(':').unwrap();
        for who in [TestUser::Standard, TestUser::Member, TestUser::Owner] {
            for kind in self.types.iter().filter(|kind| kind.offers('c')) {
                // The name of a cluster is taken for everybody; the refusal does not say by which.
                if kind.id == "cluster" && who == TestUser::Standard {
                    self.check_taken_name().await;
                    continue;
                }
                let mut body = match kind.sides() {
                    [_, side] => objects.body(kind, *side),
                    // Valid for one cluster.
                    _ if kind.id == "token" => json!({"clusterId": CLUSTER_B}),
                    _ => continue,
                };
                let refusal = async |body: &Value| {
                    let response = self
                        .response_without_names(who, "POST", &kind.path(), body, CLUSTER_B)
                        .await;
                    response.to_string().replace(namespace, "PROJECT").replace("p-nnnnn", "PROJECT")
                };
                let hidden = refusal(&body).await;
                assert!(hidden.starts_with("[403") || kind.id == "cluster", "{hidden}");
                let text = body.to_string().replace(project, &nowhere);
                body = serde_json::from_str(&text.replace(CLUSTER_B, NO_CLUSTER)).unwrap();
                let absent = refusal(&body).await.replace(NO_CLUSTER, "ID");
                assert_eq!(hidden, absent, "{who:?} {} {body}", kind.id);
            }
        }
    }

    /// Who may create clusters learns that a name is taken, and nothing about the cluster.
    async fn check_taken_name(&self) {
        let who = TestUser::Standard;
        let path = format!("/v3/clusters/{CLUSTER_B}");
        let (_, hidden) = self.setup.get(TestUser::Admin, &path).await;
        let body = json!({"name": hidden["name"]});
        let refused =
            self.response_without_names(who, "POST", "/v3/clusters", &body, "nothing").await;
        assert_eq!(refused[0], 422, "{refused}");
        let text = refused[1].as_str().unwrap_or_default();
        assert!(text.contains("another cluster has this name"), "{text}");
    }

    /// A name that a hidden object has is refused like any other.
    async fn check_names(&self) {
        let objects = Objects::new(&self.setup);
        for marked in &self.marked {
            let kind = &self.types[marked.kind];
            let (_, name) = marked.id.split_once(':').unwrap_or(("", &marked.id));
            for who in [TestUser::Standard, TestUser::Member] {
                let is_unique = kind.id == "cluster" && who == TestUser::Standard;
                if is_unique || !kind.offers('c') || self.may_get(who, &kind.id, &marked.id) {
                    continue;
                }
                let side = *kind.sides().last().unwrap();
                let mut body = objects.body(kind, side);
                body["name"] = name.into();
                let taken =
                    self.response_without_names(who, "POST", &kind.path(), &body, name).await;
                body["name"] = NO_NAME.into();
                let free =
                    self.response_without_names(who, "POST", &kind.path(), &body, NO_NAME).await;
                // What is created has an id and a time of its own. Where clients choose names, who
                // may create objects learns that a name is taken.
                if free[0] == 201 {
                    assert!([201, 409].contains(&taken[0].as_u64().unwrap()), "{who:?} {taken}");
                } else {
                    assert_eq!(taken, free, "{who:?} {body}");
                }
            }
        }
    }
}

/// Principals are visible by id to every logged-in user, and some settings to everyone.
fn is_open(kind: &Type, who: TestUser) -> bool {
    kind.id == "principal" || kind.id == "setting" && who == TestUser::Anonymous
}

/// Ids of missing objects, in the format of this one: an invalid id of the type is refused before
/// any lookup.
fn absent_like(id: &str) -> Vec<String> {
    let (namespace, name) = id.split_once(':').unwrap_or(("", id));
    let name = format!("{}{NO_NAME}", name.split_inclusive('-').next().unwrap_or_default());
    match namespace {
        "" => vec![name],
        CLUSTER_B => vec![format!("{CLUSTER_B}:{name}"), format!("{NO_CLUSTER}:{name}")],
        other => vec![format!("{other}:{name}")],
    }
}

fn encoded(id: &str) -> String {
    id.replace(':', "%3A")
}

/// Requests about one object: method, what follows its path, body.
fn questions(kind: &Type) -> Vec<(&'static str, String, Value)> {
    let mut questions = vec![
        ("GET", String::new(), Value::Null),
        ("PUT", String::new(), json!({})),
        ("DELETE", String::new(), Value::Null),
        ("GET", "/yaml".to_owned(), Value::Null),
        ("POST", "?action=nothing".to_owned(), json!({})),
    ];
    for action in kind.schema["resourceActions"].as_object().unwrap().keys() {
        let body = json!({"newPassword": "a long enough password"});
        questions.push(("POST", format!("?action={action}"), body));
    }
    questions
}

/// The change feed.
impl Secrecy {
    async fn check_feed(&self) {
        let refused = Socket::open(&self.setup, TestUser::Anonymous, "/v3/subscribe").await;
        assert_eq!(refused.err(), Some(401));
        let below = format!("/v3/clusters/{CLUSTER_B}/subscribe");
        for who in [TestUser::Standard, TestUser::Member, TestUser::Owner] {
            let refused = Socket::open(&self.setup, who, &below).await.err();
            let none = below.replace(CLUSTER_B, NO_CLUSTER);
            assert_eq!(refused, Socket::open(&self.setup, who, &none).await.err());
            assert!(refused.is_some());
        }
        let people = [TestUser::Standard, TestUser::Member, TestUser::Owner, TestUser::Admin];
        let opened = people.map(|who| Socket::open(&self.setup, who, "/v3/subscribe"));
        let mut sockets: Vec<Socket> =
            join_all(opened).await.into_iter().map(Result::unwrap).collect();
        self.frames(&mut sockets, &people, "first").await;

        for marked in &self.marked {
            let kind = &self.types[marked.kind];
            if kind.offers('u') {
                let change = match kind.id.as_str() {
                    // Its labels are those of a missing machine.
                    "node" => json!({"description": "changed"}),
                    _ => json!({"labels": {"probe": marked.mark, "changed": "yes"}}),
                };
                self.setup.must(200, "PUT", &kind.path_of(&marked.id), &change).await;
            }
        }
        let changes = self.frames(&mut sockets, &people, "second").await;
        self.check_followed(&people, &changes, "resource.change", 'u');

        for marked in &self.marked {
            let kind = &self.types[marked.kind];
            // Deleting clusters takes longer.
            if kind.offers('d') && kind.id != "cluster" {
                let path = kind.path_of(&marked.id);
                let (status, answer) =
                    self.setup.request(TestUser::Admin, "DELETE", &path, &Value::Null).await;
                assert!([200, 204].contains(&status), "{path}: {answer}");
            }
        }
        let removals = self.frames(&mut sockets, &people, "third").await;
        self.check_followed(&people, &removals, "resource.remove", 'd');
    }

    /// The frames of each socket, until all earlier changes have been sent.
    async fn frames(
        &self,
        sockets: &mut [Socket],
        people: &[TestUser],
        step: &str,
    ) -> BTreeMap<TestUser, Vec<Value>> {
        let path = format!("/v3/settings/{LAST}");
        self.setup.must(200, "PUT", &path, &json!({"value": step})).await;
        let last = |frame: &Value| frame["data"]["id"] == LAST && frame["data"]["value"] == step;
        let frames = join_all(sockets.iter_mut().map(|socket| socket.frames(last, QUIET))).await;
        let frames: BTreeMap<TestUser, Vec<Value>> = people.iter().copied().zip(frames).collect();
        for (&who, frames) in &frames {
            for frame in frames {
                let (kind, id) = name_of(frame);
                self.check_marks(who, "the change feed", &frame.to_string());
                let made = self.marked.iter().any(|m| m.id == id && self.types[m.kind].id == kind);
                let about = format!("{who:?} gets an event of {kind} {id}: {frame}");
                assert!(!made || self.may_get(who, &kind, &id), "{about}");
                let (status, _) = self.setup.get(who, &path_of(&self.types, &kind, &id)).await;
                assert!(made || status == 200 || frame["name"] == "resource.remove", "{about}");
            }
        }
        frames
    }

    /// A user who may get an object receives each of its events that the administrator receives.
    fn check_followed(
        &self,
        people: &[TestUser],
        frames: &BTreeMap<TestUser, Vec<Value>>,
        word: &str,
        verb: char,
    ) {
        let events = |who: TestUser| -> BTreeSet<Name> {
            frames[&who].iter().filter(|frame| frame["name"] == word).map(name_of).collect()
        };
        let all = events(TestUser::Admin);
        assert!(all.len() > 40, "{word} of {} objects", all.len());
        for &who in people {
            let received = events(who);
            for marked in &self.marked {
                let kind = &self.types[marked.kind];
                let name = (kind.id.clone(), marked.id.clone());
                if kind.offers(verb) && all.contains(&name) && self.may_get(who, &name.0, &name.1) {
                    assert!(received.contains(&name), "{who:?} gets no {word} event of {name:?}");
                }
            }
        }
    }
}

fn name_of(frame: &Value) -> Name {
    let text = |key: &str| frame["data"][key].as_str().unwrap().to_owned();
    // Each provider is shown as its own type.
    let kind =
        if text("baseType") == "authConfig" { "authConfig".to_owned() } else { text("type") };
    (kind, text("id"))
}

fn path_of(types: &[Type], kind: &str, id: &str) -> String {
    types.iter().find(|known| known.id == kind).unwrap().path_of(id)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_reveals_what_a_get_refuses() {
    let mut secrecy = Secrecy::start().await;
    secrecy.check_gets().await;
    let seen = |who| {
        let is_seen = |m: &&Marked| secrecy.may_get(who, &secrecy.types[m.kind].id, &m.id);
        secrecy.marked.iter().filter(is_seen).count()
    };
    // Otherwise there would be nothing to find.
    let (member, all) = (seen(TestUser::Member), secrecy.marked.len());
    assert!(member > 20 && all - member > 50, "{member} of {all}");
    assert_eq!(seen(TestUser::Admin), all);
    secrecy.check_lists().await;
    secrecy.check_errors().await;
    secrecy.check_below().await;
    secrecy.check_creates().await;
    secrecy.check_names().await;
    secrecy.check_feed().await;
}

/// Alert groups of both clusters alternately, so that each page has some of both.
async fn make_many(setup: &Setup) {
    let admin = setup.world.admin();
    let made = (0..INDEXED_FROM + 100).map(|number| {
        let admin = admin.clone();
        async move {
            let cluster = if number % 2 == 0 { CLUSTER_A } else { CLUSTER_B };
            let group = json!({
                "apiVersion": "management.cattle.io/v3", "kind": "ClusterAlertGroup",
                "metadata": {"name": format!("group-{number:04}"), "namespace": cluster,
                             "labels": {"in": cluster}},
                "spec": {"clusterName": cluster, "displayName": format!("of {cluster}"),
                         "description": format!("number {}", number % 3)},
            });
            let path =
                format!("/apis/management.cattle.io/v3/namespaces/{cluster}/clusteralertgroups");
            let request = Request::post(path).header("content-type", "application/json");
            let request = request.body(group.to_string().into_bytes()).unwrap();
            admin.request::<Value>(request).await.unwrap();
        }
    });
    stream::iter(made).buffer_unordered(32).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_from_an_index_reveal_no_more_than_a_get() {
    let index = std::sync::OnceLock::new();
    let setup = Setup::start(|view, world| {
        let made = Index::new(Caches(world.api.registry.clone()));
        view.with_lists(index.get_or_init(|| made).clone())
    })
    .await;
    let index = index.get().unwrap();
    make_many(&setup).await;
    let types = Objects::new(&setup).types().await;
    let kind = types.iter().find(|kind| kind.id == "clusterAlertGroup").unwrap();
    let all = async |who| {
        let (_, list) = setup.get(who, &format!("{}?limit=-1", kind.path())).await;
        list["data"].as_array().unwrap().clone()
    };
    let there = all(TestUser::Admin).await;
    assert!(there.len() >= INDEXED_FROM, "{}", there.len());
    for (who, visible) in [(TestUser::Standard, 0), (TestUser::Member, there.len() / 2)] {
        let shown = all(who).await;
        assert_eq!(shown.len(), visible, "{who:?}");
        assert!(shown.iter().all(|item| item["clusterId"] == CLUSTER_A));
        let hidden = there.iter().filter(|item| item["clusterId"] == CLUSTER_B).cloned().collect();
        let mut seen = Seen::new(&setup, who, kind, shown, hidden);
        eventually("each page from the index", async || {
            let before = index.pages();
            seen.check().await;
            let (queries, came) = (seen.take_queries(), index.pages() - before);
            // An index is built for lists that read many objects: those of an administrator, which
            // read all but a few.
            for query in &queries {
                let query = query.replace("_eq=", "_ne=");
                setup.get(TestUser::Admin, &format!("{}?{query}", kind.path())).await;
            }
            if queries.len() as u64 == came { Ok(()) } else { Err((who, queries, came)) }
        })
        .await;
    }
}
