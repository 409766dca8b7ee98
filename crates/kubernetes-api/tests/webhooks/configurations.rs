//! Webhook configurations: refusals and defaults.

use serde_json::{Value, json};

use super::side::{Side, configuration, configurations, webhook};

/// A valid webhook.
fn good() -> Value {
    webhook("a.b.c", json!({"url": "https://127.0.0.1:1/x"}), "Fail")
}

/// Changes of the valid webhook, by JSON pointer, that make it invalid.
fn bad() -> Vec<Vec<(&'static str, Value)>> {
    let service = |service: Value| ("/clientConfig", json!({"service": service}));
    vec![
        vec![("/name", "".into())],
        vec![("/name", "ab".into())],
        vec![("/name", "A.b.c".into())],
        vec![("/failurePolicy", "Perhaps".into())],
        vec![("/matchPolicy", "Perhaps".into())],
        vec![("/sideEffects", Value::Null)],
        vec![("/sideEffects", "Some".into())],
        vec![("/sideEffects", "Unknown".into())],
        vec![("/timeoutSeconds", 0.into())],
        vec![("/timeoutSeconds", 31.into())],
        vec![("/reinvocationPolicy", "Always".into())],
        vec![("/admissionReviewVersions", json!([]))],
        vec![("/admissionReviewVersions", json!(["v9"]))],
        vec![("/admissionReviewVersions", json!(["v1", "v1"]))],
        vec![("/admissionReviewVersions", json!(["v1", "V2"]))],
        vec![("/namespaceSelector", json!({"matchLabels": {"not a key": "x"}}))],
        vec![(
            "/objectSelector",
            json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": []}]}),
        )],
        vec![("/rules/0/operations", json!([]))],
        vec![("/rules/0/operations", json!(["*", "CREATE"]))],
        vec![("/rules/0/operations", json!(["READ"]))],
        vec![("/rules/0/apiGroups", json!([]))],
        vec![("/rules/0/apiGroups", json!(["*", "apps"]))],
        vec![("/rules/0/apiVersions", json!([]))],
        vec![("/rules/0/apiVersions", json!([""]))],
        vec![("/rules/0/apiVersions", json!(["*", "v1"]))],
        vec![("/rules/0/resources", json!([]))],
        vec![("/rules/0/resources", json!([""]))],
        vec![("/rules/0/resources", json!(["*/*", "pods"]))],
        vec![("/rules/0/resources", json!(["*", "pods"]))],
        vec![("/rules/0/resources", json!(["pods/*", "pods/status"]))],
        vec![("/rules/0/resources", json!(["*/status", "pods/status"]))],
        vec![("/rules/0/scope", "Galaxy".into())],
        vec![("/clientConfig", json!({}))],
        vec![service(json!({"name": "", "namespace": ""}))],
        vec![service(json!({"name": "a", "namespace": "b", "port": 0}))],
        vec![service(json!({"name": "a", "namespace": "b", "port": 65536}))],
        vec![service(json!({"name": "a", "namespace": "b", "path": "x"}))],
        vec![service(json!({"name": "a", "namespace": "b", "path": "//"}))],
        vec![service(json!({"name": "a", "namespace": "b", "path": "/a//b"}))],
        vec![service(json!({"name": "a", "namespace": "b", "path": "/a_b/"}))],
        vec![("/clientConfig/url", "http://x.example/".into())],
        vec![("/clientConfig/url", "https:///path".into())],
        vec![("/clientConfig/url", "x.example".into())],
        vec![("/clientConfig/url", "https://me:pw@x.example/".into())],
        vec![("/clientConfig/url", "https://x.example/?q=1#f".into())],
        vec![(
            "/clientConfig",
            json!({"url": "https://x.example", "service": {"name": "a", "namespace": "b"}}),
        )],
        vec![("/clientConfig/caBundle", "***".into())],
        vec![("/matchConditions", json!([{"name": "m", "expression": "object. +"}]))],
        vec![("/matchConditions", json!([{"name": "m", "expression": "object.x.y + 1 > 'a'"}]))],
        vec![("/matchConditions", json!([{"name": "m", "expression": "'text'"}]))],
        vec![("/matchConditions", json!([{"name": "", "expression": " "}]))],
        vec![("/matchConditions", json!([{"name": "a b", "expression": "true"}]))],
        vec![("/matchConditions", json!([{"name": "m", "expression": "request.nothing == 1"}]))],
        vec![(
            "/matchConditions",
            json!([{"name": "m", "expression": "true"}, {"name": "m", "expression": "true"}]),
        )],
        vec![
            ("/sideEffects", "Some".into()),
            ("/name", "a".into()),
            ("/rules/0/scope", "x".into()),
        ],
    ]
}

fn changed(changes: &[(&'static str, Value)]) -> Value {
    let mut webhook = good();
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        webhook.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    webhook
}

pub async fn compare(own: &Side, real: &Side) {
    let mut differing = Vec::new();
    for kind in ["Mutating", "Validating"] {
        let path = configurations(kind);
        for changes in bad() {
            // Unknown to the kind: a warning, not an error.
            if kind == "Validating" && changes[0].0 == "/reinvocationPolicy" {
                continue;
            }
            let body = configuration(kind, "bad", vec![changed(&changes)]);
            let real_response = real.send("POST", &path, body.clone()).await;
            let found = own.send("POST", &path, body).await;
            assert!(real_response.code >= 400, "{changes:?}: {}", real_response.body);
            // The texts of URL and syntax errors are those of other parsers.
            let parser = ["url must be a valid URL", "compilation failed"];
            let same = match parser.iter().any(|text| real_response.message().contains(text)) {
                true => found.code == real_response.code,
                false => found.body == real_response.body,
            };
            if !same {
                differing.push(format!("{changes:?}:\n  {}\n  {}", found.body, real_response.body));
            }
        }
        let twice = configuration(kind, "twice", vec![good(), good()]);
        let real_response = real.send("POST", &path, twice.clone()).await;
        assert_eq!(own.send("POST", &path, twice).await.body, real_response.body);
        filled(own, real, kind).await;
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// The defaults, the generation and the row.
async fn filled(own: &Side, real: &Side, kind: &str) {
    let path = configurations(kind);
    let service = json!({"service": {"name": "a", "namespace": "b"}});
    let bare = json!({
        "name": "bare.b.c", "clientConfig": service, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["*"], "apiGroups": ["nowhere.example"], "apiVersions": ["*"],
            "resources": ["*"]}],
    });
    let body = configuration(kind, "good", vec![bare]);
    let mut responses = Vec::new();
    for side in [own, real] {
        let created = side.make("POST", &path, body.clone()).await;
        let place = format!("{path}/good");
        let relabel = json!({"metadata": {"labels": {"a": "b"}}});
        let relabelled = side.make("PATCH", &place, relabel).await;
        let slower = json!({"webhooks": []});
        let changed = side.make("PATCH", &place, slower).await;
        let generations =
            [&created, &relabelled, &changed].map(|one| one["metadata"]["generation"].clone());
        let list = side.make("GET", "/apis/admissionregistration.k8s.io/v1", Value::Null).await;
        let resource = list["resources"].as_array().unwrap().iter();
        let mut resource: Value = resource
            .filter(|one| one["kind"] == configuration(kind, "", vec![])["kind"])
            .cloned()
            .collect();
        for one in resource.as_array_mut().unwrap() {
            one.as_object_mut().unwrap().remove("storageVersionHash");
        }
        side.make("DELETE", &place, Value::Null).await;
        responses.push(json!([created["webhooks"], generations, changed["webhooks"], resource]));
    }
    assert_eq!(responses[0], responses[1]);
}
