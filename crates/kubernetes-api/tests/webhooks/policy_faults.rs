//! Writes when a policy cannot be evaluated, and the delay until a new one is effective.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::policies::{bindings, named, policies};
use super::policy_cases::constraints;
use super::side::{MAPS, Side, case, configuration, configurations, map};
use super::wait;

/// Objects of [`definition`].
pub const BOUNDS: &str = "/apis/faults.example/v1/namespaces/default/bounds";
/// Maximum delay from the write of a configuration until it is effective.
const SOON: Duration = Duration::from_secs(1);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind whose objects are converted by a missing webhook.
pub fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let client = json!({"url": "https://127.0.0.1:1/convert"});
    json!({
        "metadata": {"name": "bounds.faults.example"},
        "spec": {
            "group": "faults.example", "scope": "Namespaced",
            "names": {"plural": "bounds", "kind": "Bound"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    })
}

/// Each stage of the evaluation of a policy fails in turn. No write passes, unless the policy
/// allows it.
pub async fn run(side: &Side, hooks: &HookServer) {
    side.make("POST", DEFINITIONS, definition()).await;
    wait::until("the kind is served", async || {
        side.send("GET", BOUNDS, Value::Null).await.code == 200
    })
    .await;
    let bound = json!({"apiVersion": "faults.example/v1", "kind": "Bound",
        "metadata": {"name": "present"}});
    side.make("POST", BOUNDS, bound).await;
    let kind =
        |version: &str| json!({"apiVersion": format!("faults.example/{version}"), "kind": "Bound"});
    let named_param = |name: &str| json!({"name": name, "parameterNotFoundAction": "Deny"});
    let check = "authorizer.group('').resource('pods').check('get').allowed()";
    let costly = vec![json!({"expression": format!("{check} && {check}")}); 15];
    let holds = || json!([{"expression": "true"}]);
    // Stage, parameters' kind, their reference, validations, the message of the refusal.
    let stages = [
        (
            "kind",
            json!({"apiVersion": "faults.example/v1", "kind": "Absent"}),
            named_param("present"),
            holds(),
            "failed to find resource referenced by paramKind",
        ),
        ("lookup", kind("v1"), named_param("absent"), holds(), "no params found"),
        ("conversion", kind("v2"), named_param("present"), holds(), "conversion webhook"),
        (
            "evaluation",
            Value::Null,
            Value::Null,
            json!([{"expression": "object.data.no == 'x'"}]),
            "no such key: no",
        ),
        ("budget", Value::Null, Value::Null, Value::Array(costly), "out of cost budget"),
        (
            "verdict",
            kind("v1"),
            named_param("present"),
            json!([{"expression": "false"}]),
            "failed expression: false",
        ),
    ];
    for (policy, passes) in [("Fail", false), ("Ignore", true)] {
        for (stage, kind, reference, validations, says) in &stages {
            let name = format!("{stage}-{}", policy.to_lowercase());
            let mut spec = json!({"matchConstraints": constraints(&name), "failurePolicy": policy,
                "validations": validations});
            let mut bound = json!({"policyName": name, "validationActions": ["Deny"]});
            if !kind.is_null() {
                spec["paramKind"] = kind.clone();
                bound["paramRef"] = reference.clone();
            }
            side.make("POST", &policies(), named(&name, spec)).await;
            side.make("POST", &bindings(), named(&name, bound)).await;
            // Failures pass where the policy allows it; refusals do not.
            let passes = passes && *stage != "verdict";
            let code = if passes { 201 } else { 422 };
            let path = format!("{MAPS}?dryRun=All");
            wait::until(&name, async || {
                side.send("POST", &path, map(&name, &name)).await.code == code
            })
            .await;
            let response = side.send("POST", MAPS, map(&name, &name)).await;
            assert_eq!(response.code, code, "{name}: {}", response.body);
            assert!(passes || response.message().contains(says), "{name}: {}", response.message());
            let place = format!("{MAPS}/{name}");
            let there = side.send("GET", &place, Value::Null).await.code == 200;
            assert_eq!(there, passes, "{name}");
        }
    }
    exempt(side, hooks).await;
}

/// No policy or webhook applies to admission configuration: everything can be undone.
async fn exempt(side: &Side, hooks: &HookServer) {
    let mut spec =
        json!({"matchConstraints": constraints("x"), "validations": [{"expression": "false"}]});
    spec["matchConstraints"] = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
        "operations": ["*"], "resources": ["*/*"]}]});
    side.make("POST", &policies(), named("everything", spec)).await;
    let bound = json!({"policyName": "everything", "validationActions": ["Deny"]});
    side.make("POST", &bindings(), named("everything", bound)).await;
    wait::until("everything is refused", async || {
        side.send("POST", &format!("{MAPS}?dryRun=All"), map("any", "any")).await.code == 422
    })
    .await;
    let client = side.client(hooks, "deny");
    let hook = configuration("Validating", "allowed", vec![case("x", client, "Fail")]);
    side.make("POST", &configurations("Validating"), hook).await;
    side.make("DELETE", &format!("{}/allowed", configurations("Validating")), Value::Null).await;
    side.make("DELETE", &format!("{}/everything", bindings()), Value::Null).await;
    side.make("DELETE", &format!("{}/everything", policies()), Value::Null).await;
}

/// From the response to the write of a configuration until it is effective.
pub async fn soon(side: &Side, hooks: &HookServer) {
    let spec =
        json!({"matchConstraints": constraints("soon"), "validations": [{"expression": "false"}]});
    side.make("POST", &policies(), named("soon", spec)).await;
    let bound = json!({"policyName": "soon", "validationActions": ["Deny"]});
    side.make("POST", &bindings(), named("soon", bound)).await;
    let written = Instant::now();
    wait::until("the policy holds", async || {
        side.send("POST", &format!("{MAPS}?dryRun=All"), map("soon", "soon")).await.code == 422
    })
    .await;
    assert!(written.elapsed() < SOON, "a policy holds after {:?}", written.elapsed());
    for kind in super::KINDS {
        let hook = case("hooked", side.client(hooks, "deny"), "Fail");
        let hook = configuration(kind, "soon", vec![hook]);
        side.make("POST", &configurations(kind), hook).await;
        let written = Instant::now();
        wait::until("the webhook holds", async || {
            side.send("POST", &format!("{MAPS}?dryRun=All"), map("hooked", "hooked")).await.code
                == 400
        })
        .await;
        assert!(written.elapsed() < SOON, "a webhook holds after {:?}", written.elapsed());
        side.make("DELETE", &format!("{}/soon", configurations(kind)), Value::Null).await;
    }
}
