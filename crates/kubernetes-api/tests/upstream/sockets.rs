//! Watches over WebSockets.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use storage::Storage;
use tokio_tungstenite::tungstenite::Message;

use super::side::{Side, Socket};
use super::wait::until;
use super::world::{loose_definition, run};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1";
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(20);
const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
const VERSION: (&str, &str) = ("Sec-WebSocket-Version", "13");
const UPGRADE: (&str, &str) = ("Upgrade", "websocket");
const CONNECTION: (&str, &str) = ("Connection", "Upgrade");
const ORIGIN: (&str, &str) = ("Origin", "https://example.org");
const OFFER: &str = "Sec-WebSocket-Protocol";

/// The parts of the response to a handshake that are compared.
async fn handshake(side: &Side, path: &str, headers: &[(&str, &str)]) -> Value {
    let bearer = format!("Bearer {}", side.token);
    let mut headers = headers.to_vec();
    if !headers.iter().any(|(name, _)| matches!(*name, "Authorization" | "Nobody")) {
        headers.push(("Authorization", &bearer));
    }
    headers.retain(|(name, _)| *name != "Nobody");
    let response = side.spell(path, &headers).await;
    let messages = [
        "upgrade",
        "connection",
        "sec-websocket-accept",
        "sec-websocket-protocol",
        "sec-websocket-version",
    ];
    let connection = response.code == 101;
    let messages: Vec<&str> = messages
        .into_iter()
        .filter(|name| connection || *name != "connection")
        .map(|name| response.header(name))
        .collect();
    // How much of a stream has arrived is random, and YAML breaks its lines anywhere.
    let text = if matches!(response.code, 101 | 200 | 406) { "" } else { response.text.trim() };
    json!([response.code, messages, serde_json::from_str(text).unwrap_or(Value::from(text))])
}

#[test]
fn web_socket_handshakes_are_accepted_and_refused_like_by_kube_apiserver() {
    run(async |world| {
        let all = [KEY, VERSION, UPGRADE, CONNECTION, ORIGIN];
        let without = |name: &str| all.into_iter().filter(|(n, _)| *n != name).collect::<Vec<_>>();
        let with = |name: &'static str, value: &'static str| {
            let mut headers = without(name);
            headers.push((name, value));
            headers
        };
        let mut cases = vec![(WATCH, all.to_vec())];
        cases.extend(all.map(|(name, _)| (WATCH, without(name))));
        for origin in ["null", "example.org", "/x", "file://", "a:b", "http://127.0.0.1:1", "*"] {
            cases.push((WATCH, with("Origin", origin)));
        }
        for offer in ["one", "one, two", "base64.binary.k8s.io", "", " one "] {
            cases.push((WATCH, with(OFFER, offer)));
        }
        for connection in ["keep-alive, Upgrade", "upgrade", "close", "xupgradex"] {
            cases.push((WATCH, with("Connection", connection)));
        }
        cases.push((WATCH, with("Upgrade", "WebSocket")));
        cases.push((WATCH, with("Upgrade", "h2c, websocket")));
        cases.push((WATCH, with("Sec-WebSocket-Version", "12")));
        cases.push((WATCH, with("Sec-WebSocket-Key", "x")));
        cases.push((WATCH, with("Accept", "application/yaml")));
        cases.push((WATCH, with("Nobody", "")));
        cases.push((WATCH, with("Authorization", "Bearer nobody")));
        cases.push(("/api/v1/nothing?watch=1", all.to_vec()));
        cases.push(("/api/v1/configmaps?watch=1&sendInitialEvents=true", all.to_vec()));
        cases.push(("/api/v1/configmaps?watch=1&fieldSelector=a=b", all.to_vec()));
        cases.push(("/api/v1/watch/configmaps?timeoutSeconds=1", all.to_vec()));
        cases.push((MAPS, all.to_vec()));
        let mut codes = std::collections::BTreeSet::new();
        for (path, headers) in cases {
            let real = handshake(&world.real, path, &headers).await;
            let drover = handshake(&world.drover, path, &headers).await;
            assert_eq!(drover, real, "(drover, kube-apiserver) {path} {headers:?}");
            codes.insert(real[0].as_u64().unwrap());
        }
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), [101, 200, 400, 401, 403, 404, 406, 422]);
        for side in world.sides() {
            // Like browsers, which cannot set other headers.
            let token = URL_SAFE_NO_PAD.encode(&side.token);
            let token = format!("base64url.bearer.authorization.k8s.io.{token}");
            let offer = format!("one, {token}");
            let mut headers = all.to_vec();
            headers.extend([("Nobody", ""), (OFFER, offer.as_str())]);
            let agreed = handshake(side, WATCH, &headers).await;
            assert_eq!((&agreed[0], &agreed[1][3]), (&101.into(), &"one".into()), "{}", side.name);
        }
    });
}

async fn next(socket: &mut Socket) -> Option<Message> {
    tokio::time::timeout(MESSAGE_TIMEOUT, socket.next()).await.unwrap().map(Result::unwrap)
}

/// The messages of a socket while an object is created, changed and deleted, without each server's
/// own values.
async fn collect_messages(side: &Side, name: &str, accept: &str) -> Vec<String> {
    let list = side.get(&format!("{MAPS}?limit=1")).await.success();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!(
        "{MAPS}?watch=1&timeoutSeconds=2&resourceVersion={version}&fieldSelector=metadata.name={name}"
    );
    let mut socket = side.socket(&path, &[("accept", accept)]).await;
    let object = json!({"metadata": {"name": name}, "data": {"a": "1"}});
    side.post(MAPS, &object).await.success();
    let object_path = format!("{MAPS}/{name}");
    side.patch(&object_path, "merge-patch+json", r#"{"data": {"a": "2"}}"#).await.success();
    side.delete(&object_path).await.success();
    let mut messages = Vec::new();
    while let Some(message) = next(&mut socket).await {
        messages.push(match message {
            Message::Text(text) => {
                let mut event: Value = serde_json::from_str(&text).unwrap();
                let object = &mut event["object"];
                own_words(&mut object["metadata"]);
                for column in object["columnDefinitions"].as_array_mut().into_iter().flatten() {
                    column.as_object_mut().unwrap().remove("description");
                }
                for row in object["rows"].as_array_mut().into_iter().flatten() {
                    own_words(&mut row["object"]["metadata"]);
                    let age = row["cells"].as_array_mut().unwrap().last_mut().unwrap();
                    assert!(age.as_str().unwrap().ends_with('s'), "{text}");
                    *age = "seconds".into();
                }
                format!("text {event} {:?}", text.rsplit('}').next().unwrap())
            }
            // The type; after it come each server's own numbers.
            Message::Binary(bytes) => {
                let head = String::from_utf8_lossy(&bytes[..bytes.len().min(12)]).into_owned();
                let of_kind = bytes.windows(9).any(|part| part == b"ConfigMap");
                format!("binary {:?} {of_kind}", head.split('\u{12}').next().unwrap())
            }
            // The end of the connection after that is not compared: kube-apiserver just drops it.
            other => {
                messages.push(format!("{other:?}"));
                return messages;
            }
        });
    }
    panic!("ended without a close: {messages:?}")
}

fn own_words(metadata: &mut Value) {
    if let Some(metadata) = metadata.as_object_mut() {
        for own in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(own);
        }
    }
}

#[test]
fn a_web_socket_sends_each_event_in_one_message_like_kube_apiserver() {
    run(async |world| {
        for (accept, kind) in [
            ("application/json", "text"),
            ("application/vnd.kubernetes.protobuf", "binary"),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", "text"),
            ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "text"),
        ] {
            let (real, drover) = tokio::join!(
                collect_messages(&world.real, "socket", accept),
                collect_messages(&world.drover, "socket", accept)
            );
            assert_eq!(drover, real, "(drover, kube-apiserver) {accept}");
            let events = real.iter().filter(|messages| messages.starts_with(kind)).count();
            assert_eq!(events, 3, "{accept}: {real:?}");
        }
    });
}

/// The messages of a socket that begins with a compacted resource version, up to its close.
async fn forgotten(side: &Side, path: &str, accept: &str) -> Vec<String> {
    let path = format!("{path}?watch=1&timeoutSeconds=10&resourceVersion=1");
    let mut socket = side.socket(&path, &[("accept", accept)]).await;
    let mut messages = Vec::new();
    while let Some(message) = next(&mut socket).await {
        messages.push(match message {
            Message::Text(text) => {
                let mut event: Value = serde_json::from_str(&text).unwrap();
                let message = event["object"]["message"].as_str().unwrap_or_default();
                // Each server has its own oldest version.
                let (words, oldest) = message.split_once('(').unwrap_or((message, ""));
                assert!(oldest.trim_end_matches(')').parse::<u64>().is_ok(), "{text}");
                event["object"]["message"] = words.into();
                format!("text {event} {:?}", text.rsplit('}').next().unwrap())
            }
            Message::Binary(bytes) => {
                let has = |part: &str| bytes.windows(part.len()).any(|w| w == part.as_bytes());
                let parts = ["ERROR", "Expired", "too old resource version: 1 ("].map(has);
                format!("binary {parts:?}")
            }
            other => {
                messages.push(format!("{other:?}"));
                return messages;
            }
        });
    }
    panic!("ended without a close: {messages:?}")
}

#[test]
fn a_web_socket_from_a_compacted_version_gets_an_error_and_is_closed_like_by_kube_apiserver() {
    run(async |world| {
        const PASTS: &str = "/apis/sockets.example.org/v1/namespaces/default/pasts";
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for side in world.sides() {
            let definition = loose_definition("sockets.example.org", "Past");
            side.post(definitions, &definition).await.success();
            until("the kind is served", async || side.get(PASTS).await.code == 200).await;
        }
        // kube-apiserver has no history from before the kind; here the storage is compacted.
        world.storage.compact(3).await.unwrap();
        let gone = json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version: 1 ", "reason": "Expired", "code": 410,
        }});
        let gone = format!("text {gone} {:?}", "\n");
        for (accept, error) in [
            ("application/json", gone.as_str()),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", gone.as_str()),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                "binary [true, true, true]",
            ),
        ] {
            let (real, drover) = tokio::join!(
                forgotten(&world.real, PASTS, accept),
                forgotten(&world.drover, PASTS, accept)
            );
            assert_eq!(drover, real, "(drover, kube-apiserver) {accept}");
            assert_eq!((real.len(), real[0].as_str()), (2, error), "{accept}");
        }
    });
}

#[test]
fn client_messages_are_ignored_except_pings_and_close() {
    run(async |world| {
        for side in world.sides() {
            let path = format!("{MAPS}?watch=1&fieldSelector=metadata.name=nothing");
            let mut socket = side.socket(&path, &[]).await;
            socket.send(Message::text("hello?")).await.unwrap();
            socket.send(Message::binary(vec![0; 10_000])).await.unwrap();
            socket.send(Message::Ping("there".into())).await.unwrap();
            assert_eq!(
                next(&mut socket).await,
                Some(Message::Pong("there".into())),
                "{}",
                side.name
            );
            socket.close(None).await.unwrap();
            let end = next(&mut socket).await;
            assert!(matches!(end, Some(Message::Close(_))), "{}: {end:?}", side.name);
        }
    });
}
