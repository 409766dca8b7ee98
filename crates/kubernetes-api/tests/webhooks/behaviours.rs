//! The responses of the test webhook, by name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The response to `review`.
pub fn respond(behaviour: &str, review: &Value) -> Value {
    let uid = review["request"]["uid"].clone();
    let mut answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true},
    });
    let response = &mut answer["response"];
    match behaviour {
        "allow" => {}
        "warn" => response["warnings"] = json!(["first warning", "second \"warning\""]),
        "annotate" => response["auditAnnotations"] = json!({"why": "because"}),
        "deny" => deny(response, json!({"message": "not like this"})),
        "deny-silent" => deny(response, Value::Null),
        "deny-reason" => deny(response, json!({"reason": "Teapot"})),
        "deny-low" => deny(response, json!({"code": 200, "status": "Success", "message": "low"})),
        "deny-status" => deny(
            response,
            json!({
                "code": 409, "reason": "Conflict", "message": "taken",
                "details": {"name": "n", "kind": "k", "causes": [
                    {"reason": "FieldValueInvalid", "message": "m", "field": "spec.f"}]},
            }),
        ),
        "wrong-uid" => response["uid"] = "another".into(),
        "wrong-kind" => answer["kind"] = "ConversionReview".into(),
        "wrong-version" => answer["apiVersion"] = "admission.k8s.io/v1beta1".into(),
        "no-response" => answer["response"] = Value::Null,
        "patch-no-json" => {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode("[{").into();
        }
        "patch-no-base64" => {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = "*".into();
        }
        "patch-no-type" => {
            patch(response, &json!([{"op": "add", "path": "/data", "value": {}}]));
            response.as_object_mut().unwrap().remove("patchType");
        }
        "type-no-patch" => response["patchType"] = "JSONPatch".into(),
        other => patch(response, &operations(other, &review["request"]["object"])),
    }
    answer
}

/// What the patches of the tests do to `object`.
fn operations(behaviour: &str, object: &Value) -> Value {
    let labels = &object["metadata"]["labels"];
    let add = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
    match behaviour {
        "label" => json!([add_label(labels, "seen", "yes")]),
        // Each call adds a letter.
        "count" => {
            let before = labels["count"].as_str().unwrap_or_default();
            json!([add_label(labels, "count", &format!("{before}x"))])
        }
        "second" => json!([add_label(labels, "second", "yes")]),
        "empty-patch" => json!([]),
        "patch-missing" => json!([{"op": "remove", "path": "/nothing/here"}]),
        "patch-test" => json!([{"op": "test", "path": "/data", "value": {"no": "such"}}]),
        "patch-invalid" => add("/data", json!({"not a key": "x"})),
        "patch-type" => add("/data", 5.into()),
        "patch-kind" => add("/kind", "Secret".into()),
        "patch-name" => add("/metadata/name", "other".into()),
        "patch-namespace" => add("/metadata/namespace", "kube-system".into()),
        "patch-unknown" => add("/unknown", "x".into()),
        "patch-spec" => add("/spec/webhook", "was here".into()),
        other => panic!("the tests have no response called {other}"),
    }
}

fn deny(response: &mut Value, status: Value) {
    response["allowed"] = false.into();
    if !status.is_null() {
        response["status"] = status;
    }
}

fn patch(response: &mut Value, operations: &Value) {
    response["patchType"] = "JSONPatch".into();
    response["patch"] = STANDARD.encode(operations.to_string()).into();
}

fn add_label(labels: &Value, name: &str, value: &str) -> Value {
    if labels.is_null() {
        return json!({"op": "add", "path": "/metadata/labels", "value": {name: value}});
    }
    json!({"op": "add", "path": format!("/metadata/labels/{name}"), "value": value})
}
