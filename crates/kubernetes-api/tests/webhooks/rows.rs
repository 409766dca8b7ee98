//! Single responses of writes that both servers share: applied scales, configurations with a uid,
//! rules over status, and objects in versions that are no longer stored or converted.

use serde_json::{Value, json};

use super::side::{MAPS, Side, TestResponse};
use super::{decisions, wait};

type Outcomes = Vec<(String, TestResponse)>;

const APPLY: [(&str, &str); 1] = [("content-type", "application/apply-patch+yaml")];
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/rows.example/v1/namespaces/default/widgets";

fn definition(plural: &str, kind: &str, storage: &str, conversion: Value) -> Value {
    let counted = json!({"type": "object", "properties": {
        "count": {"type": "integer"}, "most": {"type": "integer"}}});
    let mut status = counted.clone();
    status["x-kubernetes-validations"] = json!([
        {"rule": "!has(self.most) || !has(self.count) || self.count <= self.most",
            "message": "too many"}]);
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == storage,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": counted, "status": status}}}})
    };
    json!({
        "metadata": {"name": format!("{plural}.rows.example")},
        "spec": {
            "group": "rows.example", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version("v1"), version("v2")], "conversion": conversion,
        },
    })
}

async fn define(side: &Side, plural: &str, kind: &str, conversion: Value) {
    side.make("POST", DEFINITIONS, definition(plural, kind, "v1", conversion)).await;
    let path = format!("/apis/rows.example/v1/namespaces/default/{plural}");
    wait::until("the kind is served", async || {
        side.send("GET", &path, Value::Null).await.code == 200
    })
    .await;
}

pub async fn run(side: &Side) -> Outcomes {
    let mut outcomes = Vec::new();
    let ghost = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "ghost", "uid": "6b1d7a3c-7a53-4a3b-8d7e-0c6c6f0f7a11"}});
    let path = format!("{MAPS}/ghost?fieldManager=m");
    outcomes.push(("uid".to_owned(), side.send_with("PATCH", &path, ghost, &APPLY).await));

    let deployment = json!({
        "metadata": {"name": "scaled"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "x"}]}},
        },
    });
    side.make("POST", &format!("{DEPLOYMENTS}?fieldManager=owner"), deployment).await;
    outcomes.extend(scales(side, "deployment", &format!("{DEPLOYMENTS}/scaled")).await);

    define(side, "widgets", "Widget", json!({"strategy": "None"})).await;
    let widget = json!({"apiVersion": "rows.example/v1", "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"count": 1}});
    side.make("POST", &format!("{WIDGETS}?fieldManager=owner"), widget).await;
    outcomes.extend(scales(side, "widget", &format!("{WIDGETS}/a")).await);
    outcomes.extend(status_rules(side).await);
    outcomes.extend(storage_version(side).await);
    outcomes.extend(broken_conversion(side).await);
    outcomes.push(("large".to_owned(), large(side).await));
    for (_, response) in outcomes.iter_mut().filter(|(_, response)| !response.body.is_object()) {
        response.body = json!({"seen": response.body});
    }
    outcomes
}

/// An object that is too large only because of its managed fields, and the message about it.
async fn large(side: &Side) -> TestResponse {
    // The real storage accepts 1.5 MiB, this one 4 MiB.
    let count = if side.name == "own" { 9000 } else { 4000 };
    let data: serde_json::Map<String, Value> =
        (0..count).map(|index| (format!("{index:0>250}"), "".into())).collect();
    let map = json!({"metadata": {"name": "large"}, "data": data});
    let mut response = side.send("POST", MAPS, map).await;
    if response.code < 300 {
        response.body = response.body["metadata"]["managedFields"].is_array().into();
    }
    response
}

/// Several managers apply a scale.
async fn scales(side: &Side, what: &str, object: &str) -> Outcomes {
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"},
            "spec": {"replicas": replicas}})
    };
    let mut unknown = scale(4);
    unknown["spec"]["unknown"] = 1.into();
    let mut other = scale(4);
    other["kind"] = "Other".into();
    let mut old = scale(4);
    old["metadata"]["resourceVersion"] = "1".into();
    let steps = [
        ("conflict", "?fieldManager=one", scale(3)),
        ("forced", "?fieldManager=one&force=true", scale(3)),
        ("again", "?fieldManager=one", scale(3)),
        ("shared", "?fieldManager=two", scale(3)),
        ("taken", "?fieldManager=one", scale(5)),
        ("dry", "?fieldManager=two&force=true&dryRun=All", scale(7)),
        ("nobody", "", scale(3)),
        ("kind", "?fieldManager=one", other),
        ("unknown", "?fieldManager=one", unknown),
        ("old", "?fieldManager=one&force=true", old),
        ("negative", "?fieldManager=one&force=true", scale(-1)),
    ];
    let mut outcomes = Vec::new();
    for (step, query, mut body) in steps {
        let name = object.rsplit('/').next().unwrap();
        body["metadata"]["name"] = name.into();
        let path = format!("{object}/scale{query}");
        let mut response = side.send_with("PATCH", &path, body, &APPLY).await;
        if response.code < 300 {
            response.body = response.body["spec"].clone();
        }
        let mut stored = side.make("GET", object, Value::Null).await;
        let mut owners = stored["metadata"]["managedFields"].take();
        for owner in owners.as_array_mut().unwrap() {
            owner.as_object_mut().unwrap().remove("time");
        }
        if let Some(count) = stored["spec"].get("replicas").or(stored["spec"].get("count")) {
            owners = json!([count, owners]);
        }
        outcomes.push((format!("{what} {step}"), response.clone()));
        outcomes.push((format!("{what} {step} owners"), TestResponse { body: owners, ..response }));
    }
    let missing = format!("{}/missing/scale?fieldManager=one", object.rsplit_once('/').unwrap().0);
    let mut body = scale(1);
    body["metadata"]["name"] = "missing".into();
    let response = side.send_with("PATCH", &missing, body, &APPLY).await;
    outcomes.push((format!("{what} missing"), response));
    outcomes
}

/// Rules over status apply to writes of status. Values that were invalid before may stay.
async fn status_rules(side: &Side) -> Outcomes {
    let mut outcomes = Vec::new();
    let status = format!("{WIDGETS}/a/status");
    for (step, status_of) in [
        ("right", json!({"count": 1, "most": 2})),
        ("wrong", json!({"count": 3})),
        ("more", json!({"most": 5, "count": 4})),
    ] {
        let mut response = side.send("PATCH", &status, json!({"status": status_of})).await;
        if response.code < 300 {
            response.body = response.body["status"].clone();
        }
        outcomes.push((format!("status {step}"), response));
    }
    outcomes
}

/// A write without changes moves an object to a new storage version, once.
async fn storage_version(side: &Side) -> Outcomes {
    let mut outcomes = Vec::new();
    let place = format!("{DEFINITIONS}/widgets.rows.example");
    for (storage, through) in [("v2", "v2"), ("v1", "v2")] {
        let spec = definition("widgets", "Widget", storage, json!({"strategy": "None"}));
        side.make("PATCH", &place, json!({"spec": spec["spec"]})).await;
        let object = format!("/apis/rows.example/{through}/namespaces/default/widgets/a");
        let version = async || {
            let same = json!({"spec": {}});
            side.make("PATCH", &object, same).await["metadata"]["resourceVersion"].clone()
        };
        let before =
            side.make("GET", &object, Value::Null).await["metadata"]["resourceVersion"].clone();
        wait::until("a write without a change brings the new version", async || {
            version().await != before
        })
        .await;
        let (once, twice) = (version().await, version().await);
        let body = json!([once == twice]);
        let case = format!("stored as {storage} through {through}");
        outcomes.push((case, TestResponse { code: 200, body, warnings: Vec::new() }));
    }
    outcomes
}

/// An object that needs no conversion can be deleted although conversion fails.
async fn broken_conversion(side: &Side) -> Outcomes {
    let client = json!({"url": "https://127.0.0.1:1/convert"});
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
    let conversion = json!({"strategy": "Webhook", "webhook": webhook});
    define(side, "gadgets", "Gadget", conversion).await;
    let path = |version: &str| format!("/apis/rows.example/{version}/namespaces/default/gadgets");
    let gadget =
        json!({"apiVersion": "rows.example/v1", "kind": "Gadget", "metadata": {"name": "a"}});
    side.make("POST", &path("v1"), gadget).await;
    let mut outcomes = Vec::new();
    for (step, method, version) in [
        ("read", "GET", "v2"),
        ("delete converted", "DELETE", "v2"),
        ("delete", "DELETE", "v1"),
        ("gone", "GET", "v1"),
    ] {
        let mut response = side.send(method, &format!("{}/a", path(version)), Value::Null).await;
        // Messages about connections differ, and uids.
        response.body = response.body["reason"].clone();
        outcomes.push((format!("conversion {step}"), response));
    }
    outcomes
}

/// All cases but scales of custom resources, whose apply requests kube-apiserver 1.36 refuses with
/// 500.
pub async fn compare(own: &Side, real: &Side) {
    let shared = |outcomes: Outcomes| -> Outcomes {
        outcomes.into_iter().filter(|(case, _)| !case.starts_with("widget ")).collect()
    };
    decisions::compare(&shared(run(own).await), &shared(run(real).await));
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let code = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        found.unwrap_or_else(|| panic!("no {case}")).1.code
    };
    let found = [
        "uid",
        "deployment conflict",
        "deployment forced",
        "deployment shared",
        "deployment missing",
        "widget conflict",
        "widget forced",
        "status right",
        "status wrong",
        "conversion delete converted",
        "conversion delete",
        "conversion gone",
    ]
    .map(code);
    let expected_codes = [409, 409, 200, 200, 404, 409, 200, 200, 422, 500, 200, 404];
    assert_eq!(found, expected_codes, "{outcomes:#?}");
    let large = &outcomes.last().unwrap().1;
    assert_eq!((large.code, &large.body), (201, &json!({"seen": false})));
}
