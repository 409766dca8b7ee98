//! The cost of many watches: an event is encoded once for all watchers of the same encoding.

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::body::respond::Body;
use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kubernetes_protobuf::{MEDIA_TYPE, decode};
use serde_json::{Value, json};

use super::custom_resources::{PATIENCE, World, definition, foo};

const FOOS: &str = "/apis/ex.org/v1/foos";
const OLD: &str = "/apis/ex.org/v1beta1/foos";
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const EVENTS: usize = 4;

/// An open watch, and the bytes that it received.
struct Watch {
    body: Body,
    received: Vec<u8>,
}

impl Watch {
    /// Begins after a resource version.
    async fn open(world: &World, path: &str, accept: &str, after: &str) -> Self {
        let path = format!("{path}{}", if path.contains('?') { "&" } else { "?" });
        let path = format!("{path}watch=1&timeoutSeconds=60&resourceVersion={after}");
        let mut request = Request::get(path).header("accept", accept).body(String::new()).unwrap();
        request.extensions_mut().insert(UserInfo::new("admin", &[GROUP_MASTERS]));
        let response = world.server.handle(request).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), received: Vec::new() }
    }

    async fn open_many(
        world: &World,
        count: usize,
        path: &str,
        accept: &str,
        after: &str,
    ) -> Vec<Self> {
        join_all((0..count).map(|_| Self::open(world, path, accept, after))).await
    }

    /// Reads until `is_enough` holds for the received bytes.
    async fn read(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> &[u8] {
        while !is_enough(&self.received) {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("an event in time").expect("the watch continues").unwrap();
            self.received.extend_from_slice(frame.data_ref().unwrap());
        }
        &self.received
    }

    /// All received events, once there are at least `count`.
    async fn events(&mut self, count: usize) -> Vec<Value> {
        let lines =
            |received: &[u8]| received.iter().filter(|byte| **byte == b'\n').count() >= count;
        let received = self.read(lines).await;
        let lines = received.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// The names in the received events, once there are `count` in protobuf.
    async fn protobuf_names(&mut self, count: usize) -> Vec<Value> {
        let received = self.read(|received| protobuf_frames(received).len() >= count).await;
        let objects = protobuf_frames(received).into_iter().map(|frame| {
            let magic = frame.windows(4).position(|four| four == b"k8s\0").expect("an object");
            decode(&frame[magic..], None).unwrap()
        });
        objects.map(|object: Value| object["metadata"]["name"].clone()).collect()
    }
}

/// The whole frames, each after its length of four bytes.
fn protobuf_frames(mut received: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = received.split_first_chunk::<4>()
        && let Some((frame, rest)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)
    {
        frames.push(frame);
        received = rest;
    }
    frames
}

/// Events encoded and sent so far, in a version.
fn counted(world: &World, version: &str) -> (u64, u64) {
    let metrics = world.server.registry().metrics();
    let of = ["ex.org", version, "foos"];
    (metrics.watch_encodings(of).get(), metrics.watch_events(of).get())
}

async fn newest(world: &World) -> String {
    world.foos().list(&Default::default()).await.unwrap().metadata.resource_version.unwrap()
}

async fn create(world: &World, name: &str) -> DynamicObject {
    let object = foo(name, json!({"req": "abc"}));
    world.foos().create(&PostParams::default(), &object).await.unwrap()
}

#[tokio::test]
async fn watchers_of_a_custom_resource_share_encoded_events() {
    let world = World::start().await;
    world.define(&definition()).await;
    let after = newest(&world).await;
    let protobuf = format!("{MEDIA_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let open =
        async |count, path, accept| Watch::open_many(&world, count, path, accept, &after).await;
    let mut new = open(80, FOOS, JSON).await;
    let mut old = open(50, OLD, JSON).await;
    let mut metadata = open(40, FOOS, METADATA).await;
    let mut binary = open(30, FOOS, &protobuf).await;
    let mut tables = open(3, FOOS, TABLE).await;

    let names: Vec<String> = (0..EVENTS).map(|number| format!("foo-{number}")).collect();
    for name in &names {
        create(&world, name).await;
    }
    let forms = [(&mut new, "ex.org/v1"), (&mut old, "ex.org/v1beta1")];
    let forms = forms.into_iter().chain([(&mut metadata, "meta.k8s.io/v1")]);
    for (watches, version) in forms {
        for watch in watches {
            let events = watch.events(EVENTS).await;
            assert_eq!(events.len(), EVENTS);
            for (event, name) in events.iter().zip(&names) {
                let object = &event["object"];
                assert_eq!(
                    (&event["type"], &object["apiVersion"]),
                    (&"ADDED".into(), &version.into())
                );
                assert_eq!(object["metadata"]["name"], name.as_str());
                assert_eq!(object["spec"].is_null(), version == "meta.k8s.io/v1", "{event}");
            }
        }
    }
    for watch in &mut binary {
        assert_eq!(watch.protobuf_names(EVENTS).await, names);
    }
    for watch in &mut tables {
        let events = watch.events(EVENTS).await;
        for (at, (event, name)) in events.iter().zip(&names).enumerate() {
            let table = &event["object"];
            assert_eq!(table["rows"][0]["cells"], json!([name, "abc"]));
            assert_eq!(table["columnDefinitions"].is_array(), at == 0, "{event}");
        }
    }
    let events = EVENTS as u64;
    // Of objects, of metadata in two forms, and each Table for itself.
    assert_eq!(counted(&world, "v1"), ((1 + 2 + 3) * events, (80 + 40 + 30 + 3) * events));
    assert_eq!(counted(&world, "v1beta1"), (events, 50 * events));

    // Later watchers get it from the same cache.
    let mut late = Watch::open(&world, FOOS, JSON, &after).await;
    assert_eq!(late.events(EVENTS).await, new[0].events(EVENTS).await);
    assert_eq!(counted(&world, "v1").0, 6 * events);
}

#[tokio::test]
async fn watchers_of_a_selector_share_the_events_of_objects_that_stop_matching() {
    const WATCHERS: usize = 20;
    let world = World::start().await;
    world.define(&definition()).await;
    let relabel = async |value: &str| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"in": value}}}));
        world.foos().patch("a", &PatchParams::default(), &patch).await.unwrap()
    };
    create(&world, "a").await;
    relabel("yes").await;
    let after = newest(&world).await;
    let selection = format!("{FOOS}?labelSelector=in%3Dyes");
    let mut some = Watch::open_many(&world, WATCHERS, &selection, JSON, &after).await;
    let mut all = Watch::open_many(&world, WATCHERS, FOOS, JSON, &after).await;
    let left = relabel("no").await.metadata.resource_version.unwrap();
    relabel("yes").await;
    let received = |events: &[Value]| -> Vec<Value> {
        let received = events.iter().map(|event| {
            let metadata = &event["object"]["metadata"];
            json!([event["type"], metadata["labels"]["in"], metadata["resourceVersion"] == *left])
        });
        received.collect()
    };
    for watch in &mut some {
        let seen = received(&watch.events(2).await);
        assert_eq!(seen, [json!(["DELETED", "yes", true]), json!(["ADDED", "yes", false])]);
    }
    for watch in &mut all {
        let seen = received(&watch.events(2).await);
        assert_eq!(seen, [json!(["MODIFIED", "no", true]), json!(["MODIFIED", "yes", false])]);
    }
    assert_eq!(counted(&world, "v1"), (4, 4 * WATCHERS as u64));
}

#[tokio::test]
async fn a_changed_definition_is_shown_by_the_next_event() {
    let world = World::start().await;
    world.define(&definition()).await;
    let after = newest(&world).await;
    let mut table = Watch::open(&world, FOOS, TABLE, &after).await;
    let mut plain = Watch::open(&world, FOOS, JSON, &after).await;
    create(&world, "before").await;
    let columns = |event: &Value| event["object"]["columnDefinitions"].as_array().unwrap().len();
    assert_eq!(columns(&table.events(1).await[0]), 2);
    assert_eq!(plain.events(1).await[0]["object"]["spec"], json!({"req": "abc", "num": 3}));

    // Another column, a field less, one more with a default, and another version.
    let version = "/spec/versions/0";
    let fields = format!("{version}/schema/openAPIV3Schema/properties/spec/properties");
    let mut newer = definition()["spec"]["versions"][1].take();
    newer["name"] = "v2".into();
    let patch = json!([
        {"op": "add", "path": format!("{version}/additionalPrinterColumns/-"),
            "value": {"name": "Added", "type": "string", "jsonPath": ".spec.added"}},
        {"op": "remove", "path": format!("{fields}/num")},
        {"op": "add", "path": format!("{fields}/added"),
            "value": {"type": "string", "default": "later"}},
        {"op": "add", "path": "/spec/versions/-", "value": newer},
    ]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    world.definitions().patch("foos.ex.org", &PatchParams::default(), &patch).await.unwrap();
    for watch in [&mut table, &mut plain] {
        let end =
            tokio::time::timeout(PATIENCE, async { while watch.body.frame().await.is_some() {} });
        end.await.expect("the watch ends in time");
    }
    create(&world, "after").await;
    // From before the change: earlier events are shown like later ones.
    let mut table = Watch::open(&world, FOOS, TABLE, &after).await;
    let mut plain = Watch::open(&world, FOOS, JSON, &after).await;
    let mut newer = Watch::open(&world, "/apis/ex.org/v2/foos", JSON, &after).await;
    let rows = table.events(2).await;
    assert_eq!(columns(&rows[0]), 3);
    let versions = [plain.events(2).await, newer.events(2).await];
    for (at, name) in ["before", "after"].into_iter().enumerate() {
        assert_eq!(rows[at]["object"]["rows"][0]["cells"], json!([name, "abc", "later"]));
        let [plain, newer] = versions.each_ref().map(|events| &events[at]["object"]);
        assert_eq!(plain["spec"], json!({"req": "abc", "added": "later"}), "{name}");
        assert_eq!(newer["apiVersion"], "ex.org/v2", "{name}");
    }
}
