//! JSON patches in cases that RFC 6902 leaves open.

use serde_json::{Value, json};

use super::side::Side;
use super::wait::until;
use super::world::{loose_definition, run};

const TREES: &str = "/apis/patches.example.org/v1/namespaces/default/trees";

/// Creates a kind whose objects may have any fields, and one object of it.
async fn furnish(side: &Side) {
    let definition = loose_definition("patches.example.org", "Tree");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    side.post(definitions, &definition).await.success();
    let tree = json!({
        "apiVersion": "patches.example.org/v1",
        "kind": "Tree",
        "metadata": {"name": "oak"},
        "spec": {
            "m": {"a": 1, "n": null, "text": "x", "": 0, "a/b": 1, "m~n": 2},
            "l": [0, {"x": 1}, [2, 3], null],
            "float": 1.5,
        },
    });
    until("the kind is served", async || {
        let response = side.post(TREES, &tree).await;
        response.code == 201
    })
    .await;
}

/// The parts of the response to a patch that are compared. The patch is a dry run.
async fn patched(side: &Side, patch: &Value, validation: &str) -> Value {
    let path = format!("{TREES}/oak?dryRun=All&fieldValidation={validation}");
    let response = side.patch(&path, "json-patch+json", patch.to_string()).await;
    let body = response.json();
    match response.code {
        200 => json!([200, body["spec"]]),
        400 => json!([400, body["reason"]]),
        code => json!([code, body["message"], body["reason"], body["details"]]),
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Value> {
    let one =
        |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    let two = |op: &str, from: &str, path: &str| json!([{"op": op, "from": from, "path": path}]);
    let paths = [
        "/spec/m/a",
        "/spec/m/n",
        "/spec/m/missing",
        "/spec/m/missing/x",
        "/spec/m/text/x",
        "/spec/m/n/x",
        "/spec/m/",
        "/spec/m/a~1b",
        "/spec/m/m~0n",
        "/spec/m/~",
        "/spec/l/0",
        "/spec/l/3",
        "/spec/l/4",
        "/spec/l/5",
        "/spec/l/-",
        "/spec/l/-1",
        "/spec/l/-4",
        "/spec/l/-5",
        "/spec/l/-6",
        "/spec/l/00",
        "/spec/l/+1",
        "/spec/l/-0",
        "/spec/l/1e0",
        "/spec/l/x",
        "/spec/l/",
        "/spec/l/1/x",
        "/spec/l/1/y",
        "/spec/l/-3/x",
        "/spec/l/2/-1",
        "/spec/l/9/x",
        "/spec/l/3/x",
        "spec/m/a",
        "x/spec/m/a",
        "/spec/l/99999999999999999999",
    ];
    let mut cases = Vec::new();
    for path in paths {
        for value in [json!(1), Value::Null] {
            for op in ["add", "replace", "test"] {
                cases.push(one(op, path, value.clone()));
            }
        }
        for op in ["add", "replace", "test", "remove"] {
            cases.push(json!([{"op": op, "path": path}]));
        }
        for op in ["move", "copy"] {
            cases.push(two(op, path, "/spec/m/to"));
            cases.push(two(op, "/spec/m/a", path));
            cases.push(two(op, "/spec/l/1", path));
        }
    }
    cases.extend([
        one("test", "/spec/l", json!([0, {"x": 1}, [2, 3]])),
        one("test", "/spec/m/a", json!(1.0)),
        one("test", "/spec/m/a", json!("1")),
        one("test", "/spec/m/text", json!("x")),
        one("test", "/spec/l/1", json!({"x": 1})),
        one("test", "/spec/l/2", json!([2, 3])),
        one("test", "/spec/float", json!(1.5)),
        two("move", "/spec/m", "/spec/m/a"),
        two("move", "/spec/l/0", "/spec/l/0/y"),
        two("move", "/spec/m/a", "/spec/m/a"),
        two("copy", "/spec/m", "/spec/m/m"),
        two("copy", "", "/spec/m/root"),
        two("copy", "/spec/m/a", ""),
        two("move", "/spec/m/a", ""),
        one("add", "", json!({})),
        one("remove", "", Value::Null),
        one("replace", "", json!(1)),
        one("replace", "", json!([])),
        one("test", "", json!({"x": 1})),
        json!([{"op": "zap", "path": "/spec/m/a"}]),
        json!([{"op": null, "path": "/spec/m/a"}]),
        json!([{"path": "/spec/m/a"}]),
        json!([{"op": "remove"}]),
        json!([{"op": "remove", "path": null}]),
        json!([{"op": "move", "path": "/spec/m/a"}]),
        json!([{"op": "copy", "from": null, "path": "/spec/m/a"}]),
        json!([{}]),
        json!([null]),
        json!([]),
        Value::Null,
        json!([{"op": 1, "path": "/spec/m/a"}]),
        json!([{"op": "remove", "path": 1}]),
        json!([1]),
        json!({}),
        json!("x"),
        json!([
            {"op": "add", "path": "/spec/m/new"},
            {"op": "test", "path": "/spec/m/new", "value": null},
            {"op": "remove", "path": "/spec/m/new"},
            {"op": "copy", "from": "/spec/m/nothing", "path": "/spec/l/-"},
            {"op": "replace", "path": "/spec/l/-1", "value": {"deep": []}},
            {"op": "add", "path": "/spec/l/-2/deep/-", "value": 1},
            {"op": "add", "path": "/spec/l/4/deep/-1", "value": 2},
        ]),
    ]);
    cases
}

#[test]
fn json_patches_apply_and_fail_like_with_kube_apiserver() {
    run(async |world| {
        tokio::join!(furnish(&world.real), furnish(&world.drover));
        let mut differences = Vec::new();
        let mut codes = std::collections::BTreeMap::<u64, usize>::new();
        for patch in cases() {
            let (real, drover) = tokio::join!(
                patched(&world.real, &patch, "Warn"),
                patched(&world.drover, &patch, "Warn")
            );
            *codes.entry(real[0].as_u64().unwrap()).or_default() += 1;
            if real != drover {
                differences.push(format!("{patch}\n  kube-apiserver {real}\n  drover {drover}"));
            }
        }
        assert!(
            differences.is_empty(),
            "{} differ:\n{}",
            differences.len(),
            differences.join("\n")
        );
        assert!(codes[&200] > 100 && codes[&422] > 100, "{codes:?}");
    });
}
