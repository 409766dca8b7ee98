//! MutatingAdmissionPolicies: the same policies and objects have the same results, texts and codes
//! on both servers.

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::mutation_cases::{
    Mutating, apply, bad_bindings, bad_policies, cases, constraints, definition, map, patch,
};
use super::policies::{guarded, named, prepare, refused, stored};
use super::policy_cases::{NAMESPACE, merge};
use super::policy_faults;
use super::side::{self, CONFIGURATIONS, NO_ANSWER, Side, TestResponse};
use super::wait;

type Outcomes = Vec<(String, TestResponse)>;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The real server closes the connection when this policy is created.
const UNANSWERED: &str = "optional";

fn policies() -> String {
    format!("{CONFIGURATIONS}/mutatingadmissionpolicies")
}

fn bindings() -> String {
    format!("{CONFIGURATIONS}/mutatingadmissionpolicybindings")
}

/// The path of the collection for `body`.
fn place(body: &Value) -> String {
    let (api, plural) = match body["kind"].as_str().unwrap() {
        "ConfigMap" => ("api", "configmaps"),
        "Deployment" => ("apis", "deployments"),
        _ => ("apis", "things"),
    };
    let version = body["apiVersion"].as_str().unwrap();
    format!("/{api}/{version}/namespaces/{NAMESPACE}/{plural}")
}

fn object(case: &str, name: &str, body: &Value) -> Value {
    let mut object = body.clone();
    object["metadata"] = json!({"name": name, "labels": {"case": case}});
    object
}

/// Creates policies with their bindings, and waits until they are effective.
async fn enact(side: &Side, cases: &[Mutating]) {
    let marker = json!({"matchConstraints": constraints("marker"), "reinvocationPolicy": "Never",
        "mutations": [apply("Object{metadata: Object.metadata{labels: {'marked': 'yes'}}}")]});
    let last = ("marker", marker, json!({"policyName": "marker"}));
    let all = cases.iter().map(|case| (case.name, case.policy.clone(), case.binding.clone()));
    for (name, policy, binding) in all.chain([last]) {
        let made = side.send("POST", &policies(), named(name, policy)).await;
        if made.code == NO_ANSWER {
            assert_eq!((side.name, name), ("real", UNANSWERED), "hung up");
            continue;
        }
        assert_eq!(made.code, 201, "{} {name}: {}", side.name, made.body);
        side.make("POST", &bindings(), named(name, binding)).await;
    }
    let thing = json!({"apiVersion": "mutated.example/v1", "kind": "Thing"});
    for body in [map(json!({})), thing] {
        let path = format!("{}?dryRun=All", place(&body));
        wait::until("the policies are in force", async || {
            let response = side.send("POST", &path, object("marker", "marker", &body)).await;
            response.body["metadata"]["labels"]["marked"] == "yes"
        })
        .await;
    }
}

/// Creates, changes and deletes an object for each body of each case, and does one dry run.
pub async fn run(side: &Side) -> Outcomes {
    prepare(side).await;
    side.make("POST", DEFINITIONS, definition()).await;
    let things = format!("/apis/mutated.example/v1/namespaces/{NAMESPACE}/things");
    wait::until("the kind is served", async || {
        side.send("GET", &things, Value::Null).await.code == 200
    })
    .await;
    let cases = cases();
    enact(side, &cases).await;
    let mut outcomes = Vec::new();
    for case in &cases {
        for (index, body) in case.bodies.iter().enumerate() {
            let name = format!("{}-{index}", case.name);
            let mut record = |what: &str, response| {
                outcomes.push((format!("{name}: {what}"), plain(response)));
            };
            let path = place(body);
            let body = object(case.name, &name, body);
            let dry = side.send("POST", &format!("{path}?dryRun=All"), body.clone()).await;
            record("dry", dry);
            let created = side.send("POST", &path, body.clone()).await;
            let is_there = created.code == 201;
            record("create", created);
            let path = format!("{path}/{name}");
            record("stored", side.send("GET", &path, Value::Null).await);
            if is_there {
                let change = json!({"metadata": {"annotations": {"changed": "yes"}}});
                record("patch", side.send("PATCH", &path, change).await);
                record("delete", side.send("DELETE", &path, Value::Null).await);
            }
        }
    }
    outcomes
}

/// Removes generated values.
fn plain(mut response: TestResponse) -> TestResponse {
    let given = ["uid", "creationTimestamp", "resourceVersion", "managedFields"];
    if let Some(metadata) = response.body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !given.contains(&field.as_str()));
    }
    if let Some(details) = response.body.get_mut("details").and_then(Value::as_object_mut) {
        details.remove("uid");
    }
    response
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let of = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        &found.unwrap_or_else(|| panic!("no {case}")).1
    };
    for what in ["dry", "create", "stored"] {
        assert_eq!(of(&format!("labels-0: {what}")).body["metadata"]["labels"]["added"], "yes");
    }
    assert_eq!(of("in-order-0: stored").body["data"]["third"], "value!!");
    let containers = &of("containers-0: stored").body["spec"]["template"]["spec"]["containers"];
    let names: Vec<_> = containers.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "b", "added"]);
    assert_eq!(containers[0]["imagePullPolicy"], "Never");
    assert_eq!(containers[0]["args"], json!(["x"]));
    // What a mutation adds is defaulted.
    assert_eq!(containers[2]["imagePullPolicy"], "IfNotPresent");
    let item = &of("keyed-0: stored").body["spec"]["keyed"];
    assert_eq!(
        *item,
        json!([{"name": "b", "size": 7}, {"name": "a", "size": 2},
        {"name": "new", "size": 7}])
    );
    // And validated.
    assert_eq!(of("too-many-0: create").code, 422);
    assert_eq!(of("too-many-0: stored").code, 404);
    let refused = of("atomic-0: create");
    assert_eq!((refused.code, refused.body["reason"].as_str()), (403, Some("Invalid")));
    assert_eq!(
        refused.message(),
        "policy 'atomic' with binding 'atomic' denied request: error applying patch: invalid \
         ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
         .spec.template.spec.containers[0].args"
    );
    assert_eq!(of("patch-test-0: stored").body["data"]["c"], "d");
    assert_eq!(of("patch-test-1: stored").body["data"], json!({"key": "other"}));
    assert_eq!(of("error-0: stored").code, 404);
    assert_eq!(of("error-ignored-0: stored").body["data"], json!({"key": "value", "b": "set"}));
    assert_eq!(of("twice-0: create").body["data"]["count"], "2");
    assert_eq!(of("once-0: create").body["data"]["count"], "1");
    assert_eq!(of("again-0: create").body["data"]["seen"], "later");
}

/// Compares objects, refusals, and stored policies and bindings of both servers.
pub async fn compare(own: &Side, real: &Side) {
    let (found, expected) = (run(own).await, run(real).await);
    let to_lines = |outcomes: &Outcomes| -> Vec<String> {
        let lines = outcomes.iter().map(|(case, response)| {
            format!("{case}: {} {} {:?}", response.code, response.body, response.warnings)
        });
        lines.collect()
    };
    assert_eq!(found.len(), expected.len());
    let (found, expected) = (to_lines(&found), to_lines(&expected));
    let unanswered = format!("{UNANSWERED}-");
    let pairs = found.iter().zip(&expected).filter(|(found, expected)| found != expected);
    // There, the generation counts a field that is pruned anyway.
    let explained = [unanswered.as_str(), "patch-unknown-1: patch"];
    let pairs = pairs.filter(|(found, _)| !explained.iter().any(|case| found.starts_with(case)));
    let mut differing: Vec<String> =
        pairs.map(|(found, expected)| format!("{found}\n  {expected}")).collect();
    let bad = [(policies(), bad_policies()), (bindings(), bad_bindings())];
    differing.extend(refused(own, real, bad).await);
    let paths = cases()
        .into_iter()
        .filter(|case| case.name != UNANSWERED)
        .flat_map(|case| [policies(), bindings()].map(|path| format!("{path}/{}", case.name)));
    differing.extend(stored(own, real, paths.collect()).await);
    let kind = json!({"matchConstraints": constraints("x"), "reinvocationPolicy": "Never",
        "mutations": [apply("Object{}")], "paramKind": {"apiVersion": "v1", "kind": "Secret"}});
    let reference = json!({"policyName": "params", "paramRef": {"name": "x", "namespace": "default",
        "parameterNotFoundAction": "Deny"}});
    differing.extend(guarded(own, real, vec![(policies(), kind)]).await);
    // There, the message has the user and the verb in each other's position.
    let refusals = guarded(own, real, vec![(bindings(), reference)]).await;
    assert!(refusals.len() == 1 && refusals[0].contains("user get does not have"), "{refusals:?}");
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Each stage of a mutation fails in turn: no unmutated object is written, unless the policy allows
/// it.
pub async fn faults(side: &Side) {
    side.make("POST", DEFINITIONS, policy_faults::definition()).await;
    wait::until("the kind is served", async || {
        side.send("GET", policy_faults::BOUNDS, Value::Null).await.code == 200
    })
    .await;
    let bound = json!({"apiVersion": "faults.example/v1", "kind": "Bound",
        "metadata": {"name": "present"}});
    side.make("POST", policy_faults::BOUNDS, bound).await;
    let params = |version: &str, kind: &str, name: &str| {
        let kind = json!({"apiVersion": format!("faults.example/{version}"), "kind": kind});
        (kind, json!({"name": name, "parameterNotFoundAction": "Deny"}))
    };
    let none = (Value::Null, Value::Null);
    let adds = || apply("Object{data: {'added': 'yes'}}");
    let check = "authorizer.group('').resource('pods').check('get').allowed()";
    let costly = format!("Object{{data: {{'x': string({})}}}}", [check; 30].join(" && "));
    let condition = json!([{"name": "one", "expression": "object.data.no == 'x'"}]);
    let stages = [
        ("kind", params("v1", "Absent", "present"), adds(), "referenced by paramKind"),
        ("lookup", params("v1", "Bound", "absent"), adds(), "no params found"),
        ("conversion", params("v2", "Bound", "present"), adds(), "conversion webhook"),
        ("condition", none.clone(), adds(), "no such key: no"),
        ("evaluation", none.clone(), apply("Object{data: {'x': object.data.no}}"), "no such key"),
        ("cost", none.clone(), apply(&costly), "cost"),
        ("schema", none.clone(), apply("Object{nothing: 1}"), "field not declared in schema"),
        ("names", none.clone(), apply("Object{data: Object.x{}}"), "unexpected type name"),
        ("operation", none, patch("[JSONPatch{op: 'remove', path: '/x'}]"), "nonexistent key"),
    ];
    for (policy, passes) in [("Fail", false), ("Ignore", true)] {
        for (stage, (kind, reference), mutation, says) in &stages {
            let name = format!("{stage}-{}", policy.to_lowercase());
            let mut spec = json!({"matchConstraints": constraints(&name), "failurePolicy": policy,
                "reinvocationPolicy": "Never", "mutations": [mutation]});
            let mut bound = json!({"policyName": name});
            if !kind.is_null() {
                spec["paramKind"] = kind.clone();
                bound["paramRef"] = reference.clone();
            }
            if *stage == "condition" {
                spec["matchConditions"] = condition.clone();
            }
            side.make("POST", &policies(), named(&name, spec)).await;
            side.make("POST", &bindings(), named(&name, bound)).await;
            let body = side::map(&name, &name);
            if !passes {
                let path = format!("{}?dryRun=All", side::MAPS);
                wait::until(&name, async || {
                    side.send("POST", &path, body.clone()).await.code == 403
                })
                .await;
            }
            let response = side.send("POST", side::MAPS, body).await;
            let code = if passes { 201 } else { 403 };
            assert_eq!(response.code, code, "{name}: {}", response.body);
            assert!(passes || response.message().contains(says), "{name}: {}", response.message());
            let there = side.send("GET", &format!("{}/{name}", side::MAPS), Value::Null).await;
            assert_eq!(there.code == 200, passes, "{name}");
        }
    }
}

/// Policies run before webhooks, and are reinvoked for objects that webhooks change.
pub async fn with_webhooks(side: &Side, hooks: &HookServer) -> TestResponse {
    let mut counts = side::case("hooked", side.client(hooks, "count"), "Fail");
    counts["reinvocationPolicy"] = "IfNeeded".into();
    side.configure(hooks, "Mutating", "hooked", vec![counts]).await;
    let label = |name: &str| {
        format!("has(object.metadata.labels.{name}) ? object.metadata.labels.{name} : 'none'")
    };
    let expression = format!(
        "Object{{metadata: Object.metadata{{labels: {{'seen': {}, 'before': {}}}}}}}",
        label("count"),
        label("seen")
    );
    let mut spec = json!({"matchConstraints": constraints("hooked"),
        "reinvocationPolicy": "IfNeeded"});
    merge(&mut spec, json!({"mutations": [apply(&expression)]}));
    side.make("POST", &policies(), named("hooked", spec)).await;
    side.make("POST", &bindings(), named("hooked", json!({"policyName": "hooked"}))).await;
    let path = format!("{}?dryRun=All", side::MAPS);
    let mut response = None;
    wait::until("the policy is in force", async || {
        let hooked = side.send("POST", &path, side::map("hooked", "hooked")).await;
        let seen = !hooked.body["metadata"]["labels"]["seen"].is_null();
        response = Some(hooked);
        seen
    })
    .await;
    let response = plain(response.unwrap());
    let labels = json!({"case": "hooked", "seen": "x", "before": "none", "count": "xx"});
    assert_eq!(response.body["metadata"]["labels"], labels);
    side.deconfigure("Mutating", "hooked").await;
    response
}
