//! ValidatingAdmissionPolicies: the same policies and requests have the same decisions, texts and
//! codes on both servers.

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::policy_cases::{
    Case, MAPS, NAMESPACE, READER, bad_bindings, bad_policies, cases, constraints,
};
use super::side::{CONFIGURATIONS, Side, TestResponse, webhook};
use super::wait;

type Outcomes = Vec<(String, TestResponse)>;

pub fn policies() -> String {
    format!("{CONFIGURATIONS}/validatingadmissionpolicies")
}

pub fn bindings() -> String {
    format!("{CONFIGURATIONS}/validatingadmissionpolicybindings")
}

pub fn named(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn map(case: &str, value: &str) -> Value {
    json!({"metadata": {"name": format!("{case}-{value}"), "labels": {"case": case}},
        "data": {"key": value}})
}

/// Creates policies with their bindings, and waits until they are effective.
async fn enact(side: &Side, cases: &[Case]) {
    for case in cases {
        side.make("POST", &policies(), named(case.name, case.policy.clone())).await;
    }
    for case in cases {
        side.make("POST", &bindings(), named(case.name, case.binding.clone())).await;
    }
    let marker = json!({"matchConstraints": constraints("marker"),
        "validations": [{"expression": "false"}]});
    side.make("POST", &policies(), named("marker", marker)).await;
    let bound = json!({"policyName": "marker", "validationActions": ["Deny"]});
    side.make("POST", &bindings(), named("marker", bound)).await;
    wait::until("the policies are in force", async || {
        side.send("POST", &format!("{MAPS}?dryRun=All"), map("marker", "x")).await.code == 422
    })
    .await;
}

/// The shared objects of the cases: a namespace, parameters, and a user with few rights.
pub async fn prepare(side: &Side) {
    // The cases of several kinds of policies share them.
    if side.send("GET", &format!("/api/v1/namespaces/{NAMESPACE}"), Value::Null).await.code == 200 {
        return;
    }
    let namespace = json!({"metadata": {"name": NAMESPACE, "labels": {"env": "prod"}}});
    side.make("POST", "/api/v1/namespaces", namespace).await;
    for name in ["limits", "others"] {
        let allowed = if name == "limits" { "allowed" } else { "other" };
        let map = json!({"metadata": {"name": name, "labels": {"limits": "yes"}},
            "data": {"allowed": allowed}});
        side.make("POST", "/api/v1/namespaces/default/configmaps", map).await;
    }
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": READER}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]});
    side.make("POST", &format!("{rbac}/clusterroles"), role).await;
    let binding = json!({"metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}]});
    side.make("POST", &format!("{rbac}/clusterrolebindings"), binding).await;
}

/// All cases: each value is written by an administrator, who then changes and deletes the object,
/// and by another user.
pub async fn run(side: &Side) -> Outcomes {
    prepare(side).await;
    let cases = cases();
    enact(side, &cases).await;
    let mut outcomes = Vec::new();
    for case in &cases {
        for value in case.values {
            let name = case.name;
            let path = format!("{MAPS}/{name}-{value}");
            let mut record = |what: &str, response| {
                outcomes.push((format!("{name} {value}: {what}"), plain(response)));
            };
            let body = map(name, value);
            record("as reader", {
                let path = format!("{MAPS}?dryRun=All");
                side.send_as(READER, "POST", &path, body.clone()).await
            });
            let created = side.send("POST", MAPS, body).await;
            let is_there = created.code == 201;
            record("create", created);
            if is_there {
                let patch = json!({"data": {"key": "changed"}});
                record("patch", side.send("PATCH", &path, patch).await);
                record("delete", side.send("DELETE", &path, Value::Null).await);
            }
        }
    }
    outcomes
}

/// Removes generated values.
fn plain(mut response: TestResponse) -> TestResponse {
    if response.code < 300 {
        response.body = response.body["data"].clone();
    }
    response
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let of = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        &found.unwrap_or_else(|| panic!("no {case}")).1
    };
    let refused = of("plain bad: create");
    assert_eq!(refused.code, 422);
    let text = "ValidatingAdmissionPolicy 'plain' with binding 'plain' denied request: failed \
                expression: object.data.key == 'good'";
    let whole = format!("configmaps \"plain-bad\" is forbidden: {text}");
    assert_eq!(refused.message(), whole);
    assert_eq!(refused.body["details"]["causes"], json!([{"message": text}]));
    assert_eq!(of("plain good: create").code, 201);
    assert_eq!(of("reason bad: create").body["reason"], "Forbidden");
    assert_eq!(of("conditions skip: create").code, 201);
    assert_eq!(of("warned bad: create").code, 201);
    assert_eq!(of("warned bad: create").warnings.len(), 2);
    assert_eq!(of("authorizer x: create").code, 201);
    assert!(of("authorizer x: as reader").message().ends_with("may not: reader"));
    assert!(of("budget x: as reader").message().contains("out of cost budget"));
}

/// Compares decisions, refusals of policies and bindings, and their stored objects on both servers.
pub async fn compare(own: &Side, real: &Side) {
    let (found, expected_result) = (run(own).await, run(real).await);
    let mut differing = Vec::new();
    assert_eq!(
        found.iter().map(|(case, _)| case).collect::<Vec<_>>(),
        expected_result.iter().map(|(case, _)| case).collect::<Vec<_>>()
    );
    for ((case, found), (_, expected_result)) in found.iter().zip(&expected_result) {
        let comparable =
            |response: &TestResponse| json!([response.code, response.body, response.warnings]);
        if comparable(found) != comparable(expected_result) {
            differing.push(format!(
                "{case}:\n  {}\n  {}",
                comparable(found),
                comparable(expected_result)
            ));
        }
    }
    let bad = [(policies(), bad_policies()), (bindings(), bad_bindings())];
    differing.extend(refused(own, real, bad).await);
    differing.extend(written(own, real).await);
    real.start_controllers();
    let (found, expected_result) = (types(own).await, types(real).await);
    if found != expected_result {
        differing.push(format!("types:\n  {found}\n  {expected_result}"));
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Specs that both servers refuse, and the differences of their responses.
pub async fn refused(own: &Side, real: &Side, specs: [(String, Vec<Value>); 2]) -> Vec<String> {
    let mut differing = Vec::new();
    for (path, specs) in specs {
        for spec in specs {
            let responses =
                [own, real].map(|side| side.send("POST", &path, named("bad", spec.clone())));
            let [found, expected_result] = responses;
            let (found, expected_result) = (found.await, expected_result.await);
            assert!(expected_result.code >= 400, "{spec}: {}", expected_result.body);
            if (found.code, &found.body) != (expected_result.code, &expected_result.body) {
                differing.push(format!("{spec}:\n  {}\n  {}", found.body, expected_result.body));
            }
        }
    }
    differing
}

/// The differences of the stored objects and of their rows.
pub async fn stored(own: &Side, real: &Side, paths: Vec<String>) -> Vec<String> {
    let mut differing = Vec::new();
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1"), ("content-type", "x")];
    for path in paths {
        let mut seen = Vec::new();
        for side in [own, real] {
            let object = side.make("GET", &path, Value::Null).await;
            let row = side.send_with("GET", &path, Value::Null, &table[..1]).await;
            let cells = row.body["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
            let cells = cells.split_last().map(|(_age, rest)| rest.to_vec());
            let generation = &object["metadata"]["generation"];
            let columns = row.body["columnDefinitions"].as_array().into_iter().flatten();
            let columns: Vec<_> = columns.map(|column| &column["name"]).collect();
            seen.push(json!([object["spec"], generation, cells, columns]));
        }
        if seen[0] != seen[1] {
            differing.push(format!("{path}:\n  {}\n  {}", seen[0], seen[1]));
        }
    }
    differing
}

/// The differences of the refusals of these writes for a user with few rights.
pub async fn guarded(own: &Side, real: &Side, writes: Vec<(String, Value)>) -> Vec<String> {
    let mut differing = Vec::new();
    for (path, spec) in writes {
        let mut responses = Vec::new();
        for side in [own, real] {
            let path = format!("{path}?dryRun=All");
            responses
                .push(side.send_as(READER, "POST", &path, named("guarded", spec.clone())).await);
        }
        assert_eq!(responses[1].code, 422, "{}", responses[1].body);
        if responses[0].body != responses[1].body {
            differing.push(format!("{spec}:\n  {}\n  {}", responses[0].body, responses[1].body));
        }
    }
    differing
}

/// The stored policies and their rows, and the rights to write them.
async fn written(own: &Side, real: &Side) -> Vec<String> {
    let paths = cases()
        .into_iter()
        .flat_map(|case| [policies(), bindings()].map(|path| format!("{path}/{}", case.name)));
    let mut differing = stored(own, real, paths.collect()).await;
    let kind = |kind: &str| {
        json!({"matchConstraints": constraints("x"), "validations": [{"expression": "true"}],
            "paramKind": {"apiVersion": "v1", "kind": kind}})
    };
    let reference = |policy: &str| {
        json!({"policyName": policy, "validationActions": ["Deny"],
            "paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}})
    };
    let writes = vec![
        (policies(), kind("Secret")),
        (policies(), kind("Unheard")),
        (bindings(), reference("params")),
        (bindings(), reference("nowhere")),
        (bindings(), reference("params-unknown")),
    ];
    differing.extend(guarded(own, real, writes).await);
    differing
}

/// The status about the types of expressions.
#[expect(clippy::too_many_lines, reason = "a table of policies")]
pub async fn types(side: &Side) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "count": {"type": "integer"}, "open": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}}});
    let definition = json!({
        "metadata": {"name": "typeds.types.example"},
        "spec": {"group": "types.example", "scope": "Namespaced",
            "names": {"plural": "typeds", "kind": "Typed"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]},
    });
    side.make("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    wait::until("the kind is served", async || {
        let path = "/apis/types.example/v1/namespaces/default/typeds";
        side.send("GET", path, Value::Null).await.code == 200
    })
    .await;
    let about = |group: &str, resources: &[&str], checks: Value| {
        json!({"validations": checks, "matchConstraints": {"resourceRules": [
            {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"],
                "resources": resources}]}})
    };
    let mut with_params = about(
        "",
        &["configmaps"],
        json!([
        {"expression": "params.data.x == 'a' && params.nothing == 1"}]),
    );
    with_params["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    with_params["variables"] = json!([{"name": "count", "expression": "object.data.size()"}]);
    let policies_of = [
        (
            "right",
            about(
                "apps",
                &["deployments"],
                json!([
            {"expression": "object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'",
                "messageExpression": "string(object.spec.template.spec.containers[0].name)"}]),
            ),
        ),
        (
            "wrong",
            about(
                "apps",
                &["deployments", "statefulsets"],
                json!([
            {"expression": "object.spec.nothing > 1"},
            {"expression": "object.spec.replicas > 'x'", "messageExpression": "string(object.spec.replicas.nothing)"}]),
            ),
        ),
        ("any", about("*", &["*"], json!([{"expression": "object.nothing == 1"}]))),
        ("params", with_params),
        (
            "custom",
            about(
                "types.example",
                &["typeds"],
                json!([
            {"expression": "object.spec.count > 1 && object.spec.nothing == 1"},
            {"expression": "object.spec.count == 'x' || object.metadata.name == ''"}]),
            ),
        ),
    ];
    let mut statuses = Vec::new();
    for (name, spec) in policies_of {
        let name = format!("types-{name}");
        side.make("POST", &policies(), named(&name, spec)).await;
        let path = format!("{}/{name}", policies());
        let mut status = Value::Null;
        wait::until("the status is written", async || {
            status = side.make("GET", &path, Value::Null).await["status"].clone();
            status["observedGeneration"] == 1
        })
        .await;
        statuses.push(json!([name, status]));
    }
    Value::Array(statuses)
}

/// Audit annotations of admission are part of the audit log.
pub async fn annotations(side: Side, hooks: &HookServer) {
    prepare(&side).await;
    let cases = cases().into_iter().filter(|case| ["annotated", "recorded"].contains(&case.name));
    enact(&side, &cases.collect::<Vec<_>>()).await;
    let mut hook = webhook("noted.case.example", side.client(hooks, "annotate"), "Fail");
    hook["objectSelector"] = json!({"matchLabels": {"case": "noted"}});
    side.configure(hooks, "Validating", "noted", vec![hook]).await;
    for (case, key, value) in [
        ("noted", "noted.case.example/why", "because"),
        ("annotated", "annotated/value", "key is x"),
        ("recorded", "validation.policy.admission.k8s.io/validation_failure", ""),
    ] {
        let headers = [("content-type", "application/json"), ("audit-id", case)];
        let response = side.send_with("POST", MAPS, map(case, "x"), &headers).await;
        assert_eq!(response.code, 201);
        let mut annotations = side.audited(case).await;
        annotations.retain(|key, _| !key.starts_with("authorization.k8s.io/"));
        assert_eq!(annotations.len(), 1, "{annotations:?}");
        let found = &annotations[key];
        if value.is_empty() {
            let failures: Value = serde_json::from_str(found).unwrap();
            let expected_result = json!([{"message": "failed expression: object.data.key == 'good'",
                "policy": "recorded", "binding": "recorded", "expressionIndex": 0,
                "validationActions": ["Audit"]}]);
            assert_eq!(failures, expected_result);
        } else {
            assert_eq!(found, value);
        }
    }
}
