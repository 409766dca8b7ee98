//! The kinds to write, and random bodies of them.

use serde_json::{Map, Value, json};

use super::random::Random;

pub struct TestKind {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub collection: &'static str,
    pub status: bool,
    pub compiled: bool,
}

const NAME: &str = "one";

pub fn kinds() -> Vec<TestKind> {
    let built_in = |api_version, kind, collection, status| TestKind {
        api_version,
        kind,
        collection,
        status,
        compiled: true,
    };
    vec![
        built_in("v1", "ConfigMap", "/api/v1/namespaces/default/configmaps", false),
        built_in("v1", "Service", "/api/v1/namespaces/default/services", true),
        built_in("apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments", true),
        TestKind {
            api_version: "drover.invalid/v1",
            kind: "Widget",
            collection: "/apis/drover.invalid/v1/namespaces/default/widgets",
            status: true,
            compiled: false,
        },
    ]
}

/// A custom resource with a list and a map of every type.
pub fn widget_definition() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let pair = json!({"a": text, "b": {"type": "integer"}});
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": text, "value": text, "labels": texts,
        "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
    }});
    let port = json!({"type": "object", "required": ["port", "protocol"], "properties": {
        "port": {"type": "integer"}, "name": text,
        "protocol": {"type": "string", "default": "TCP"},
    }});
    let list = |items: Value, kind: &str| {
        json!({
            "type": "array", "items": items, "x-kubernetes-list-type": kind,
        })
    };
    let keyed = |items: Value, keys: &[&str]| {
        json!({
            "type": "array", "items": items, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        })
    };
    let spec = json!({"type": "object", "properties": {
        "text": text, "count": {"type": "integer"}, "ratio": {"type": "number"},
        "flag": {"type": "boolean"}, "either": {"x-kubernetes-int-or-string": true},
        "granular": texts,
        "wholeMap": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "pair": {"type": "object", "properties": pair},
        "wholePair": {"type": "object", "properties": pair, "x-kubernetes-map-type": "atomic"},
        "plainList": {"type": "array", "items": text},
        "wholeList": list(item.clone(), "atomic"),
        "set": list(text.clone(), "set"),
        "numbers": list(json!({"type": "integer"}), "set"),
        "items": keyed(item, &["name"]),
        "ports": keyed(port, &["port", "protocol"]),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "embedded": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        },
    }});
    let condition = json!({"type": "object", "required": ["type"], "properties": {
        "type": text, "status": text,
    }});
    let status = json!({"type": "object", "properties": {
        "phase": text, "conditions": keyed(condition, &["type"]),
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.drover.invalid"},
        "spec": {
            "group": "drover.invalid", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// An object with its type and name only.
pub fn typed(kind: &TestKind) -> Value {
    json!({
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {"name": NAME, "namespace": "default"},
    })
}

/// A body that states part of the object. With `complete` it is enough to create the object.
pub fn whole(kind: &TestKind, random: &mut Random, complete: bool) -> Value {
    let mut body = typed(kind);
    for (field, suffix) in [("labels", "l"), ("annotations", "an")] {
        if random.percent(60) {
            body["metadata"][field] = texts(random, suffix);
        }
    }
    if random.percent(10) {
        body["metadata"]["finalizers"] = json!([]);
    }
    match kind.kind {
        "ConfigMap" => {
            body["data"] = keyed_texts(random, &["a", "b", "c", "d.e"], "d");
            if random.percent(20) {
                body["immutable"] = json!(false);
            }
        }
        "Service" => body["spec"] = service(random, complete),
        "Deployment" => body["spec"] = deployment(random, complete),
        _ => body["spec"] = widget(random),
    }
    body
}

/// A merge patch.
pub fn part(kind: &TestKind, random: &mut Random) -> Value {
    let mut body = whole(kind, random, true);
    for member in ["apiVersion", "kind"] {
        body.as_object_mut().unwrap().remove(member);
    }
    for member in ["name", "namespace"] {
        body["metadata"].as_object_mut().unwrap().remove(member);
    }
    if random.percent(30) {
        body["metadata"]["labels"] = Value::Null;
    }
    if kind.kind == "Widget" && random.percent(40) {
        let field = random.pick(&["granular", "set", "items", "ports", "free", "pair", "text"]);
        body["spec"][field] = Value::Null;
    }
    body
}

pub fn status(kind: &TestKind, random: &mut Random) -> Value {
    let conditions = |random: &mut Random| {
        let types = random.some(&["Ready", "Available", "Progressing"]);
        let each = |name: &&str| json!({"type": name, "status": random.pick(&["True", "False"])});
        types.iter().map(each).collect::<Vec<Value>>()
    };
    match kind.kind {
        "Deployment" => json!({"replicas": random.below(3), "conditions": conditions(random)}),
        "Widget" => json!({"phase": random.pick(&["a", "b"]), "conditions": conditions(random)}),
        _ => json!({"loadBalancer": {}, "conditions": []}),
    }
}

/// Makes a body invalid against its schema.
pub fn spoil(kind: &TestKind, body: &mut Value, random: &mut Random) {
    match (kind.kind, random.below(3)) {
        ("ConfigMap", _) => body["other"] = json!(1),
        ("Widget", 0) => body["spec"]["count"] = json!("many"),
        ("Widget", 1) => body["spec"]["set"] = json!(["a", "a"]),
        ("Widget", _) => body["spec"]["items"] = json!([{"value": "x"}]),
        (_, 0) => body["spec"]["unheardOf"] = json!({"a": [1]}),
        (_, 1) => body["spec"]["ports"] = json!("none"),
        _ => body["metadata"]["labels"] = json!({"a": 1}),
    }
}

/// Removes addresses and families: the server allocates them after ownership is computed.
pub fn unallocate(kind: &TestKind, body: &mut Value) {
    if kind.kind == "Service" {
        let spec = body["spec"].as_object_mut().unwrap();
        for field in ALLOCATED {
            spec.remove(field);
        }
    }
}

pub fn keep_allocated(kind: &TestKind, live: &Value, body: &mut Value) {
    if kind.kind == "Service" {
        for field in ALLOCATED {
            body["spec"][field] = live["spec"][field].clone();
        }
    }
}

const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

fn texts(random: &mut Random, suffix: &str) -> Value {
    keyed_texts(random, &["a", "b", "c", "example.invalid/d"], suffix)
}

fn keyed_texts(random: &mut Random, keys: &[&str], suffix: &str) -> Value {
    let keys = random.some(keys);
    let entry = |key: &&str| (format!("{key}{suffix}"), json!(random.pick(&["1", "2"])));
    Value::Object(keys.iter().map(entry).collect())
}

fn service(random: &mut Random, complete: bool) -> Value {
    let mut spec = json!({});
    let mut ports = random.some(&[80, 443, 9000]);
    if ports.is_empty() && complete {
        ports.push(80);
    }
    if !ports.is_empty() {
        let each = |port: &i32| {
            let mut out = json!({"name": format!("p{port}"), "port": port});
            if random.percent(50) {
                out["protocol"] = json!("TCP");
            }
            if random.percent(30) {
                out["targetPort"] = if random.percent(50) { json!(8080) } else { json!("web") };
            }
            out
        };
        spec["ports"] = ports.iter().map(each).collect();
    }
    if random.percent(60) {
        spec["selector"] = texts(random, "s");
    }
    if random.percent(20) {
        spec["publishNotReadyAddresses"] = json!(random.percent(50));
    }
    spec
}

fn deployment(random: &mut Random, complete: bool) -> Value {
    let mut names = random.some(&["web", "side"]);
    if names.is_empty() && complete {
        names.push("web");
    }
    let containers: Vec<Value> = names.iter().map(|name| container(random, name)).collect();
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}},
    });
    if random.percent(50) {
        spec["replicas"] = json!(random.below(3));
    }
    if random.percent(20) {
        spec["strategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": random.below(2) + 1}});
    }
    if random.percent(30) {
        spec["template"]["spec"]["nodeSelector"] = texts(random, "n");
    }
    if random.percent(20) {
        spec["template"]["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
    }
    if random.percent(20) {
        spec["template"]["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    }
    spec
}

fn container(random: &mut Random, name: &str) -> Value {
    let image = format!("example.invalid/{name}:{}", random.below(2));
    let mut out = json!({"name": name, "image": image});
    if random.percent(50) {
        let ports = random.some(&[80, 8080, 443]);
        out["ports"] = ports.iter().map(|port| json!({"containerPort": port})).collect();
    }
    if random.percent(50) {
        let names = random.some(&["A", "B", "C"]);
        let each = |name: &&str| json!({"name": name, "value": random.pick(&["1", "2", ""])});
        out["env"] = names.iter().map(each).collect();
    }
    if random.percent(30) {
        out["args"] = json!(random.some(&["a", "b"]));
    }
    if random.percent(30) {
        out["resources"] = json!({"requests": {"cpu": random.pick(&["100m", "1"])}});
    }
    out
}

const WIDGET_FIELDS: [&str; 17] = [
    "text",
    "count",
    "ratio",
    "flag",
    "either",
    "granular",
    "wholeMap",
    "pair",
    "wholePair",
    "plainList",
    "wholeList",
    "set",
    "numbers",
    "items",
    "ports",
    "free",
    "embedded",
];

fn widget(random: &mut Random) -> Value {
    let mut spec = Map::new();
    for field in WIDGET_FIELDS {
        if random.percent(40) {
            spec.insert(field.to_owned(), widget_field(random, field));
        }
    }
    Value::Object(spec)
}

fn widget_field(random: &mut Random, field: &str) -> Value {
    let mut either = |one: Value, other: Value| if random.percent(50) { one } else { other };
    match field {
        "text" => either(json!("x"), json!("y")),
        "count" => json!(random.below(3)),
        "ratio" => either(json!(0.5), json!(2)),
        "flag" => either(json!(true), json!(false)),
        "either" => either(json!(1), json!("10%")),
        "granular" | "wholeMap" => texts(random, "g"),
        "pair" | "wholePair" => pair(random),
        "plainList" | "set" => json!(random.some(&["a", "b", "c", "<&>"])),
        "numbers" => json!(random.some(&[2, 10, 1, 100])),
        "items" | "wholeList" => {
            let names = random.some(&["a", "b", "c", "d"]);
            names.iter().map(|name| item(random, name)).collect()
        }
        "ports" => {
            let ports = random.some(&[80, 443, 9]);
            ports.iter().map(|port| port_of(random, *port)).collect()
        }
        "free" => json!({
            "deep": texts(random, "f"), "list": random.some(&[1, 2]),
            "any": if random.percent(50) { json!(1) } else { json!({"k": "v"}) },
        }),
        _ => json!({
            "apiVersion": "v1", "kind": "Thing", "metadata": {"name": random.pick(&["m", "n"])},
            "extra": random.below(2),
        }),
    }
}

fn pair(random: &mut Random) -> Value {
    let mut pair = json!({});
    if random.percent(60) {
        pair["a"] = json!(random.pick(&["1", "2"]));
    }
    if random.percent(60) {
        pair["b"] = json!(random.below(2));
    }
    pair
}

fn item(random: &mut Random, name: &str) -> Value {
    let mut out = json!({"name": name});
    if random.percent(50) {
        out["value"] = json!(random.pick(&["x", "y"]));
    }
    if random.percent(30) {
        out["labels"] = texts(random, "i");
    }
    if random.percent(30) {
        out["tags"] = json!(random.some(&["t", "u"]));
    }
    out
}

fn port_of(random: &mut Random, port: i32) -> Value {
    let mut out = json!({"port": port});
    if random.percent(50) {
        out["protocol"] = json!(random.pick(&["TCP", "UDP"]));
    }
    if random.percent(50) {
        out["name"] = json!(random.pick(&["m", "n"]));
    }
    out
}
