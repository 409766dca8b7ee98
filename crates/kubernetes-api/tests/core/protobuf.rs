//! Kubernetes' protobuf: bodies, responses, watches, and resources without it.

use std::time::Duration;

use apiserver::attributes::GROUP_MASTERS;
use apiserver::{ApiServer, UserInfo};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kubernetes_protobuf::{MEDIA_TYPE, WATCH_MEDIA_TYPE, decode, encode};
use serde_json::{Value, json};

use crate::World;
use crate::custom_resources::{self, definition};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
/// All components are local; a longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

struct TestResponse {
    code: u16,
    form: String,
    body: Vec<u8>,
}

impl TestResponse {
    /// The object, in either encoding.
    fn object(&self) -> Value {
        match self.form.as_str() {
            MEDIA_TYPE => decode(&self.body, None).unwrap(),
            JSON => serde_json::from_slice(&self.body).unwrap(),
            other => panic!("neither JSON nor protobuf: {other}"),
        }
    }
}

fn request(method: Method, path: &str, accept: &str, body: &[u8]) -> Request<Full<bytes::Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, MEDIA_TYPE);
    }
    let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
    request.extension(admin).body(Full::from(body.to_vec())).unwrap()
}

async fn send_request(
    server: &ApiServer,
    method: Method,
    path: &str,
    accept: &str,
    body: &[u8],
) -> TestResponse {
    let response = server.handle(request(method, path, accept, body)).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    let form = parts.headers[CONTENT_TYPE].to_str().unwrap().to_owned();
    TestResponse { code: parts.status.as_u16(), form, body }
}

fn encoded(object: &Value) -> Vec<u8> {
    encode(object.to_string().as_bytes()).unwrap()
}

fn config_map(name: &str) -> Vec<u8> {
    encoded(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"key": "value", "empty": ""}, "binaryData": {"bytes": "AP8="},
    }))
}

#[tokio::test]
async fn an_object_lives_in_protobuf_and_is_the_same_in_json() {
    let world = World::start().await;
    let server = &world.server;
    let made = send_request(server, Method::POST, MAPS, MEDIA_TYPE, &config_map("a")).await;
    assert_eq!((made.code, made.form.as_str()), (201, MEDIA_TYPE));
    let mut object = made.object();
    assert_eq!(object["data"], json!({"key": "value", "empty": ""}));

    object["data"]["key"] = "changed".into();
    let one = format!("{MAPS}/a");
    let changed = send_request(server, Method::PUT, &one, MEDIA_TYPE, &encoded(&object)).await;
    assert_eq!((changed.code, &changed.object()["data"]["key"]), (200, &json!("changed")));
    let refused = send_request(server, Method::PUT, &one, MEDIA_TYPE, &encoded(&object)).await;
    assert_eq!((refused.code, &refused.object()["reason"]), (409, &json!("Conflict")));

    for path in [one.as_str(), MAPS] {
        let in_json = send_request(server, Method::GET, path, JSON, b"").await;
        let in_protobuf = send_request(server, Method::GET, path, MEDIA_TYPE, b"").await;
        assert_eq!(in_protobuf.form, MEDIA_TYPE);
        assert_eq!(encode(&in_json.body).unwrap(), in_protobuf.body, "{path}");
    }

    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": {"uid": "another"}});
    let refused = send_request(server, Method::DELETE, &one, MEDIA_TYPE, &encoded(&options)).await;
    assert_eq!((refused.code, refused.form.as_str()), (409, MEDIA_TYPE));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let gone = send_request(server, Method::DELETE, &one, MEDIA_TYPE, &encoded(&options)).await;
    assert_eq!((gone.code, &gone.object()["status"]), (200, &json!("Success")));
    let missing = send_request(server, Method::GET, &one, MEDIA_TYPE, b"").await;
    let status = missing.object();
    assert_eq!((missing.code, &status["details"]["kind"]), (404, &json!("configmaps")));
}

#[tokio::test]
async fn the_first_acceptable_encoding_is_returned() {
    let world = World::start().await;
    let server = &world.server;
    send_request(server, Method::POST, MAPS, JSON, &config_map("a")).await;
    let partial = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let table = "as=Table;g=meta.k8s.io;v=v1";
    let one = format!("{MAPS}/a");
    let cases = [
        (format!("{MEDIA_TYPE},{JSON}"), 200, MEDIA_TYPE),
        (format!("{JSON},{MEDIA_TYPE}"), 200, JSON),
        (format!("{JSON};q=0.5,{MEDIA_TYPE};q=0.9"), 200, MEDIA_TYPE),
        (format!("{MEDIA_TYPE};{partial},{JSON};{partial}"), 200, MEDIA_TYPE),
        (format!("{MEDIA_TYPE};{table},{JSON};{table}"), 200, JSON),
        (format!("{MEDIA_TYPE};{table}"), 406, JSON),
        ("*/*".to_owned(), 200, JSON),
        ("application/cbor".to_owned(), 406, JSON),
        (format!("application/cbor,{MEDIA_TYPE}"), 200, MEDIA_TYPE),
    ];
    for (accept, code, form) in cases {
        let answer = send_request(server, Method::GET, &one, &accept, b"").await;
        assert_eq!((answer.code, answer.form.as_str()), (code, form), "{accept}");
        if code == 406 {
            assert!(answer.object()["message"].as_str().unwrap().contains(MEDIA_TYPE));
        }
    }
    let answer =
        send_request(server, Method::GET, &one, &format!("{MEDIA_TYPE};{partial}"), b"").await;
    let object = answer.object();
    assert_eq!((&object["kind"], object.get("data")), (&json!("PartialObjectMetadata"), None));
    for path in ["/api", "/apis", "/api/v1"] {
        let answer = send_request(server, Method::GET, path, MEDIA_TYPE, b"").await;
        assert_eq!((answer.code, answer.form.as_str()), (200, MEDIA_TYPE), "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_protobuf_is_a_bad_request() {
    let world = World::start().await;
    for body in [&b"{}"[..], b"k8s\0", b"k8s\0abcdef", b"k8s\0\x0a\xff\xff\xff\xff\x0f"] {
        let answer = send_request(&world.server, Method::POST, MAPS, JSON, body).await;
        assert!(matches!(answer.code, 400 | 422), "{body:?}: {}", answer.object());
    }
    let pod = encoded(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}));
    let answer = send_request(&world.server, Method::POST, MAPS, MEDIA_TYPE, &pod).await;
    assert_eq!((answer.code, answer.form.as_str()), (400, MEDIA_TYPE));
    let one = format!("{MAPS}/a");
    let patch =
        send_request(&world.server, Method::PATCH, &one, MEDIA_TYPE, &config_map("a")).await;
    assert_eq!(patch.code, 415);
}

/// Type and object of the next event.
struct Frames {
    body: apiserver::body::respond::Body,
    rest: Vec<u8>,
}

impl Frames {
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((length, _)) = self.rest.split_first_chunk::<4>() {
                let end = 4 + u32::from_be_bytes(*length) as usize;
                if self.rest.len() >= end {
                    let frame: Vec<u8> = self.rest.drain(..end).collect();
                    return event(&frame[4..]);
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame());
            let frame =
                frame.await.expect("an event in time").expect("the stream continues").unwrap();
            self.rest.extend_from_slice(frame.data_ref().unwrap());
        }
    }
}

/// Reads `type` (1) and `object` (2) with `raw` (1) in it by hand.
fn event(frame: &[u8]) -> (String, Value) {
    let (tag, length) = (frame[0], usize::from(frame[1]));
    assert_eq!(tag, 0x0a);
    let kind = String::from_utf8(frame[2..2 + length].to_vec()).unwrap();
    let magic = frame.windows(4).position(|four| four == b"k8s\0").expect("an object");
    (kind, decode(&frame[magic..], None).unwrap())
}

async fn watch(server: &ApiServer, query: &str) -> Frames {
    let path = format!("{MAPS}?watch=1&timeoutSeconds=30&{query}");
    let response = server.handle(request(Method::GET, &path, MEDIA_TYPE, b"")).await;
    assert_eq!(response.headers()[CONTENT_TYPE], WATCH_MEDIA_TYPE);
    Frames { body: response.into_body(), rest: Vec::new() }
}

#[tokio::test]
async fn a_watch_sends_framed_events_bookmarks_and_errors() {
    let world = World::start().await;
    let server = &world.server;
    send_request(server, Method::POST, MAPS, JSON, &config_map("a")).await;
    let query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let (mut one, mut other) = (watch(server, query).await, watch(server, query).await);
    for frames in [&mut one, &mut other] {
        let (kind, object) = frames.next().await;
        assert_eq!((kind.as_str(), &object["metadata"]["name"]), ("ADDED", &json!("a")));
        let (kind, object) = frames.next().await;
        assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("ConfigMap")));
        assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    }
    send_request(server, Method::POST, MAPS, JSON, &config_map("b")).await;
    send_request(server, Method::DELETE, &format!("{MAPS}/a"), JSON, b"").await;
    for frames in [&mut one, &mut other] {
        let (kind, object) = frames.next().await;
        assert_eq!((kind.as_str(), &object["binaryData"]["bytes"]), ("ADDED", &json!("AP8=")));
        assert_eq!(frames.next().await.0, "DELETED");
    }
    let yaml = format!("{MAPS}?watch=1");
    let answer = send_request(server, Method::GET, &yaml, "application/yaml", b"").await;
    assert_eq!(answer.code, 406);
}

#[tokio::test]
async fn custom_resources_have_metadata_and_options_of_deletes_in_protobuf_and_nothing_else() {
    const FOOS: &str = "/apis/ex.org/v1/foos";
    let world = custom_resources::World::start().await;
    world.define(&definition()).await;
    let server = &world.server;
    let foo = json!({"apiVersion": "ex.org/v1", "kind": "Foo", "metadata": {"name": "a"}});
    // The request of a Go client that knew the type.
    let body = b"k8s\0\x0a\x10\x0a\x09ex.org/v1\x12\x03Foo\x12\x00";
    let refused = send_request(server, Method::POST, FOOS, JSON, body).await;
    assert_eq!(refused.code, 415);
    assert!(!refused.object()["message"].as_str().unwrap().contains(MEDIA_TYPE));
    assert!(encode(foo.to_string().as_bytes()).is_err());

    let refused = send_request(server, Method::GET, FOOS, MEDIA_TYPE, b"").await;
    assert_eq!((refused.code, refused.form.as_str()), (406, MEDIA_TYPE));
    let both = send_request(server, Method::GET, FOOS, &format!("{MEDIA_TYPE},{JSON}"), b"").await;
    assert_eq!((both.code, both.form.as_str()), (200, JSON));

    let accept = format!("{MEDIA_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let partial = send_request(server, Method::GET, FOOS, &accept, b"").await;
    assert_eq!(partial.object()["kind"], "PartialObjectMetadataList");
    let options = json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"});
    let path = format!("{FOOS}/missing");
    let missing = send_request(server, Method::DELETE, &path, JSON, &encoded(&options)).await;
    assert_eq!(missing.code, 404);

    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for path in [definitions.to_owned(), format!("{definitions}/foos.ex.org")] {
        let in_json = send_request(server, Method::GET, &path, JSON, b"").await;
        let in_protobuf = send_request(server, Method::GET, &path, MEDIA_TYPE, b"").await;
        assert_eq!(encode(&in_json.body).unwrap(), in_protobuf.body, "{path}");
    }
}
