//! Custom resources whose versions a webhook converts. Version v1 has `spec.host` and `spec.port`,
//! v1beta1 has `spec.address`: without the webhook, each would lose the other's fields.

use futures::future::join_all;
use serde_json::{Value, json};

use super::faults::Outcomes;
use super::hook_server::HookServer;
use super::side::{Side, TestResponse};
use super::wait;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NEW: &str = "/apis/conv.example/v1/hosts";
const OLD: &str = "/apis/conv.example/v1beta1/hosts";

/// Objects with these names are converted incorrectly.
const WRONG: [&str; 7] = [
    "misnamed",
    "another-uid",
    "unconverted",
    "another-kind",
    "fewer",
    "refused-politely",
    "refused-silently",
];

/// The response of the webhook.
pub fn respond(review: &Value) -> Value {
    let request = &review["request"];
    let desired = &request["desiredAPIVersion"];
    let objects = request["objects"].as_array().unwrap();
    let mut answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}},
    });
    let mut converted: Vec<Value> =
        objects.iter().map(|object| converted(object, desired)).collect();
    let response = &mut answer["response"];
    for object in objects {
        match object["metadata"]["name"].as_str().unwrap() {
            "another-uid" => response["uid"] = "another".into(),
            "fewer" => converted.clear(),
            "refused-politely" => {
                response["result"] = json!({"status": "Failure", "message": "rather not"});
            }
            "refused-silently" => response["result"] = json!({"status": "Failure"}),
            _ => {}
        }
    }
    response["convertedObjects"] = converted.into();
    answer
}

fn converted(object: &Value, desired: &Value) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = desired.clone();
    let spec = &object["spec"];
    // Servers also convert objects that no client stored.
    if spec.is_null() {
        return converted;
    }
    converted["spec"] = match desired.as_str().unwrap() {
        "conv.example/v1" => {
            let address = spec["address"].as_str().unwrap_or("none:0");
            let (host, port) = address.split_once(':').unwrap_or((address, "0"));
            json!({"host": host, "port": port.parse::<u16>().unwrap()})
        }
        _ => {
            json!({"address": format!("{}:{}", spec["host"].as_str().unwrap_or("none"), spec["port"])})
        }
    };
    match object["metadata"]["name"].as_str().unwrap() {
        "misnamed" => converted["metadata"]["name"] = "other".into(),
        "unconverted" => converted = object.clone(),
        "another-kind" => converted["kind"] = "Guest".into(),
        // Only the label changes; other changes are reverted.
        "relabelled" => {
            converted["metadata"]["labels"] = json!({"by": "webhook"});
            converted["metadata"]["generation"] = 77.into();
            converted["metadata"]["finalizers"] = json!(["webhook.example/no"]);
        }
        _ => {}
    }
    converted
}

fn definition(client: &Value, storage: &str) -> Value {
    let version = |name: &str, spec: Value| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}}});
        json!({"name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": schema}})
    };
    let new = json!({"host": {"type": "string"}, "port": {"type": "integer"}});
    let old = json!({"address": {"type": "string", "pattern": "^[a-z]+:[0-9]+$"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.conv.example"},
        "spec": {
            "group": "conv.example", "scope": "Cluster",
            "names": {"plural": "hosts", "kind": "Host"},
            "versions": [version("v1", new), version("v1beta1", old)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    })
}

fn old(name: &str, address: &str) -> Value {
    json!({"apiVersion": "conv.example/v1beta1", "kind": "Host", "metadata": {"name": name},
        "spec": {"address": address}})
}

fn new(name: &str, host: &str, port: u16) -> Value {
    json!({"apiVersion": "conv.example/v1", "kind": "Host", "metadata": {"name": name},
        "spec": {"host": host, "port": port}})
}

/// The lifecycle of such a kind, with a webhook that fails in many ways and is unavailable in the
/// end.
pub async fn run(side: &Side, hooks: &HookServer) {
    let mut out = Outcomes::new();
    let client = side.client(hooks, "convert");
    define(side, &client).await;
    round(side, &mut out).await;
    wrong(side, &mut out).await;
    misread(side, &mut out).await;
    objects_stored_in_the_other_version(side, &client, &mut out).await;
    unreachable(side, &mut out).await;
}

/// The part of it that does not disturb a real server's caches, and its responses.
pub async fn sound(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    let client = side.client(hooks, "convert");
    define(side, &client).await;
    round(side, &mut out).await;
    wrong(side, &mut out).await;
    objects_stored_in_the_other_version(side, &client, &mut out).await;
    side.make("DELETE", &format!("{DEFINITIONS}/hosts.conv.example"), Value::Null).await;
    out
}

async fn define(side: &Side, client: &Value) {
    side.make("POST", DEFINITIONS, definition(client, "v1")).await;
    wait::until("both versions are served", async || {
        side.send("GET", OLD, Value::Null).await.code == 200
            && side.send("GET", NEW, Value::Null).await.code == 200
    })
    .await;
}

async fn send(
    side: &Side,
    out: &mut Outcomes,
    what: &str,
    (method, path): (&str, String),
    body: Value,
) -> TestResponse {
    let mut answer = side.send(method, &path, body).await;
    for item in answer.body["items"].as_array_mut().into_iter().flatten() {
        strip(item);
    }
    out.push((what.to_owned(), answer.clone()));
    answer
}

/// Removes what only lists and events have.
fn strip(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        let given = ["uid", "creationTimestamp", "resourceVersion", "managedFields"];
        metadata.retain(|field, _| !given.contains(&field.as_str()));
    }
}

/// Objects that are written in one version and read in the other.
async fn round(side: &Side, out: &mut Outcomes) {
    let at = |path: &str, name: &str| format!("{path}/{name}");
    let begin = side.make("GET", OLD, Value::Null).await["metadata"]["resourceVersion"].clone();
    let first = send(side, out, "create", ("POST", OLD.into()), old("a", "alpha:1")).await;
    assert_eq!(first.body["spec"], json!({"address": "alpha:1"}), "{}", first.body);
    let read = send(side, out, "read", ("GET", at(NEW, "a")), Value::Null).await;
    assert_eq!(read.body["spec"], json!({"host": "alpha", "port": 1}), "{}", read.body);
    send(side, out, "other", ("POST", NEW.into()), new("b", "beta", 2)).await;
    let list = send(side, out, "list", ("GET", OLD.into()), Value::Null).await;
    assert_eq!(list.body["items"][1]["spec"]["address"], "beta:2", "{}", list.body);
    send(side, out, "list", ("GET", NEW.into()), Value::Null).await;
    let address = json!({"spec": {"address": "gamma:3"}});
    send(side, out, "patch", ("PATCH", at(OLD, "b")), address).await;
    // The converted object only has to be valid in the version of the request.
    let invalid = json!({"spec": {"address": "nonsense"}});
    let refused = send(side, out, "invalid", ("PATCH", at(OLD, "b")), invalid).await;
    assert_eq!(refused.code, 422);
    let read = send(side, out, "patched", ("GET", at(NEW, "b")), Value::Null).await;
    assert_eq!(read.body["spec"], json!({"host": "gamma", "port": 3}), "{}", read.body);
    send(side, out, "relabelled", ("POST", OLD.into()), old("relabelled", "delta:4")).await;
    let dry = format!("{OLD}?dryRun=All");
    send(side, out, "dry run", ("POST", dry), old("dry", "dry:1")).await;
    side.make("DELETE", &at(OLD, "a"), Value::Null).await;
    for (path, field) in [(OLD, "address"), (NEW, "host")] {
        let begin = begin.as_str().unwrap();
        let watch = format!("{path}?watch=true&timeoutSeconds=1&resourceVersion={begin}");
        let stream = side.send("GET", &watch, Value::Null).await.body;
        let events = stream.as_str().unwrap_or_else(|| panic!("{}: {stream}", side.name));
        let mut seen = Vec::new();
        for line in events.lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            strip(&mut event["object"]);
            assert!(event["object"]["spec"][field].is_string(), "{}: {line}", side.name);
            seen.push(event);
        }
        assert_eq!(seen.len(), 5, "{}: {events}", side.name);
        let body = json!({"events": seen});
        let answer = TestResponse { code: 200, body, warnings: Vec::new() };
        out.push(("watch".to_owned(), answer));
    }
    side.make("DELETE", NEW, Value::Null).await;
}

/// Objects that are converted incorrectly are not written.
async fn wrong(side: &Side, out: &mut Outcomes) {
    for name in WRONG {
        let written = send(side, out, name, ("POST", OLD.into()), old(name, "alpha:1")).await;
        assert_eq!(written.code, 500, "{} {name}: {}", side.name, written.body);
        let absent = side.send("GET", &format!("{NEW}/{name}"), Value::Null).await;
        assert_eq!(absent.code, 404, "{} {name}: {}", side.name, absent.body);
    }
}

/// Nor are they returned.
async fn misread(side: &Side, out: &mut Outcomes) {
    for name in WRONG {
        side.make("POST", NEW, new(name, "alpha", 1)).await;
        let one = format!("{OLD}/{name}");
        let requests = [("GET", one.clone()), ("GET", OLD.into()), ("DELETE", one)];
        for (method, path) in requests {
            let answer = send(side, out, name, (method, path), Value::Null).await;
            let expected = "conversion webhook for conv.example/v1, Kind=Host ";
            assert_eq!(answer.code, 500, "{name}: {}", answer.body);
            assert!(answer.message().starts_with(expected), "{name}: {}", answer.body);
        }
        let watch = format!("{OLD}?watch=true&timeoutSeconds=1");
        let event = side.send("GET", &watch, Value::Null).await.body;
        assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &500.into()));
        side.make("DELETE", &format!("{NEW}/{name}"), Value::Null).await;
    }
}

/// Objects stay as they were stored until they are written again.
async fn objects_stored_in_the_other_version(side: &Side, client: &Value, out: &mut Outcomes) {
    side.make("POST", NEW, new("kept", "kappa", 9)).await;
    let path = format!("{DEFINITIONS}/hosts.conv.example");
    let versions = definition(client, "v1beta1")["spec"]["versions"].clone();
    side.make("PATCH", &path, json!({"spec": {"versions": versions}})).await;
    wait::until("the other version is stored", async || {
        let name = format!("{NEW}/probe");
        side.make("POST", NEW, new("probe", "probe", 1)).await;
        // Objects in the old storage version do not need the webhook.
        let before = side.make("GET", &format!("{NEW}/kept"), Value::Null).await;
        let after = side.make("PUT", &format!("{NEW}/kept"), before.clone()).await;
        side.make("DELETE", &name, Value::Null).await;
        after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    })
    .await;
    for path in [NEW, OLD] {
        send(side, out, "kept", ("GET", format!("{path}/kept")), Value::Null).await;
    }
}

/// Without its webhook a kind can only be used in its storage version.
async fn unreachable(side: &Side, out: &mut Outcomes) {
    let path = format!("{DEFINITIONS}/hosts.conv.example");
    let nowhere = json!({"url": "https://127.0.0.1:1/convert"});
    let conversion =
        json!({"webhook": {"clientConfig": {"caBundle": null, "url": nowhere["url"]}}});
    side.make("PATCH", &path, json!({"spec": {"conversion": conversion}})).await;
    wait::until("the webhook is out of reach", async || {
        side.send("GET", &format!("{NEW}/kept"), Value::Null).await.code == 500
    })
    .await;
    let refused = [
        ("GET", format!("{NEW}/kept"), Value::Null),
        ("GET", NEW.to_owned(), Value::Null),
        ("POST", NEW.to_owned(), new("more", "more", 1)),
        ("PATCH", format!("{NEW}/kept"), json!({"spec": {"port": 7}})),
        ("DELETE", format!("{NEW}/kept"), Value::Null),
    ];
    for (method, path, body) in refused {
        let answer = send(side, out, "unreachable", (method, path), body).await;
        assert_eq!(answer.code, 500, "{} {method}: {}", side.name, answer.body);
    }
    let list = side.make("GET", OLD, Value::Null).await;
    let items = list["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["spec"]["address"]), (1, &"kappa:9".into()));
    // The definition and its objects can still be deleted.
    side.make("DELETE", &path, Value::Null).await;
    wait::until("the definition is deleted", async || {
        side.send("GET", &path, Value::Null).await.code == 404
    })
    .await;
}

/// Many watchers of a version in which nothing is stored: the webhook is called once for each
/// event.
pub async fn watched_by_many(side: &Side, hooks: &HookServer) {
    const WATCHERS: usize = 200;
    const EVENTS: usize = 5;
    let take_reviewed_objects = || -> Vec<Value> {
        let calls = hooks.take(&format!("/{}/convert", side.name));
        calls.into_iter().map(|call| call.review["request"]["objects"].clone()).collect()
    };
    let watch = async |path: &str, after: &Value| {
        let after = after.as_str().unwrap();
        let path = format!("{path}?watch=true&timeoutSeconds=4&resourceVersion={after}");
        side.send("GET", &path, Value::Null).await.body
    };
    define(side, &side.client(hooks, "convert")).await;
    let begin = side.make("GET", OLD, Value::Null).await["metadata"]["resourceVersion"].clone();
    take_reviewed_objects();
    let watches = join_all((0..WATCHERS).map(|_| watch(OLD, &begin)));
    let create = async {
        for port in 0..EVENTS as u16 {
            side.make("POST", NEW, new(&format!("host-{port}"), "alpha", port)).await;
        }
    };
    let (received, stored, ()) = tokio::join!(watches, watch(NEW, &begin), create);
    let specs = |stream: &Value| -> Vec<Value> {
        let lines = stream.as_str().unwrap().lines();
        let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.map(|event| event["object"]["spec"].clone()).collect()
    };
    let ports = 0..EVENTS;
    let expected = ports.clone().map(|port| json!({"address": format!("alpha:{port}")}));
    let expected: Vec<Value> = expected.collect();
    for stream in &received {
        assert_eq!(specs(stream), expected);
    }
    let expected: Vec<Value> = ports.map(|port| json!({"host": "alpha", "port": port})).collect();
    assert_eq!(specs(&stored), expected);
    let names: Vec<Value> =
        take_reviewed_objects().iter().map(|one| one[0]["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["host-0", "host-1", "host-2", "host-3", "host-4"]);

    // An object that cannot be converted ends each watch, and the next watch calls the webhook
    // again.
    let begin = side.make("GET", NEW, Value::Null).await["metadata"]["resourceVersion"].clone();
    for name in ["misnamed", "another-kind"] {
        side.make("POST", NEW, new(name, "alpha", 1)).await;
    }
    for _ in 0..2 {
        let event = watch(OLD, &begin).await;
        assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &500.into()));
        assert_eq!(take_reviewed_objects().len(), 1);
    }
}

/// Validation of conversion settings.
pub async fn compare_definitions(own: &Side, real: &Side) {
    let client = json!({"url": "https://x.example"});
    let cases = [
        json!({"strategy": "Webhook"}),
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client,
            "conversionReviewVersions": []}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {},
            "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client,
            "conversionReviewVersions": ["v9", "v9", "V1"]}}),
        json!({"strategy": "None", "webhook": {"clientConfig": client,
            "conversionReviewVersions": ["v1"]}}),
        json!({"strategy": "Sometimes"}),
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "http://x.example/"},
            "conversionReviewVersions": ["v1"]}}),
    ];
    for conversion in cases {
        let mut body = definition(&client, "v1");
        body["spec"]["conversion"] = conversion.clone();
        let path = format!("{DEFINITIONS}?dryRun=All");
        let expected = real.send("POST", &path, body.clone()).await;
        let found = own.send("POST", &path, body).await;
        assert!(expected.code >= 400, "{conversion}: {}", expected.body);
        assert_eq!(found.body, expected.body, "{conversion}");
    }
}
