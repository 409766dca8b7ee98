//! All failures of a call, with both failure policies, before and after validation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::side::{MAPS, Side, TestResponse, case, configuration, configurations, map};

/// Invalid responses: these calls have failed, and `Ignore` skips them.
const FAILED_CALLS: &[&str] = &[
    "refused",
    "unknown-authority",
    "wrong-name",
    "broken-bundle",
    "hang",
    "status-500",
    "status-404",
    "truncated",
    "empty",
    "not-json",
    "no-response",
    "wrong-uid",
    "wrong-kind",
    "wrong-version",
];
/// The same, only for mutating webhooks.
const FAILED_MUTATIONS: &[&str] =
    &["patch-no-json", "patch-no-base64", "patch-no-type", "type-no-patch"];
/// Only for validating webhooks.
const FAILED_VALIDATIONS: &[&str] = &["label"];
/// Valid responses: they refuse the write, whatever the failure policy is.
const REFUSED_MUTATIONS: &[&str] =
    &["patch-missing", "patch-test", "patch-invalid", "patch-type", "patch-namespace"];

pub struct Servers {
    pub hooks: HookServer,
    /// With a certificate for another name.
    pub misnamed: HookServer,
}

fn client(side: &Side, servers: &Servers, fault: &str) -> Value {
    let Servers { hooks, misnamed } = servers;
    match fault {
        // A port on which nobody listens.
        "refused" => json!({"url": "https://127.0.0.1:1/refused"}),
        "unknown-authority" => {
            let mut client = side.client(hooks, "allow");
            client["caBundle"] = misnamed.client("/")["caBundle"].clone();
            client
        }
        "broken-bundle" => {
            let mut client = side.client(hooks, "allow");
            client["caBundle"] = "bm90IGEgY2VydGlmaWNhdGU=".into();
            client
        }
        "wrong-name" => side.client(misnamed, "allow"),
        fault => side.client(hooks, fault),
    }
}

/// The faults of a stage, and whether `Ignore` skips them.
fn faults(kind: &str) -> Vec<(&'static str, bool)> {
    let own = if kind == "Mutating" { FAILED_MUTATIONS } else { FAILED_VALIDATIONS };
    let passed = FAILED_CALLS.iter().chain(own).map(|fault| (*fault, true));
    let refused = if kind == "Mutating" { REFUSED_MUTATIONS } else { &[] };
    passed.chain(refused.iter().map(|fault| (*fault, false))).collect()
}

/// The name of a case, and the response to its create.
pub type Outcomes = Vec<(String, TestResponse)>;

/// Runs all cases of a stage.
pub async fn run(side: &Side, servers: &Servers, kind: &str) -> Outcomes {
    let mut webhooks = Vec::new();
    let mut cases = Vec::new();
    for (fault, passed) in faults(kind) {
        for policy in ["Fail", "Ignore"] {
            let name = format!("{fault}-{}", policy.to_lowercase());
            let mut webhook = case(&name, client(side, servers, fault), policy);
            webhook["timeoutSeconds"] = 1.into();
            webhooks.push(webhook);
            cases.push((name, passed && policy == "Ignore"));
        }
    }
    side.configure(&servers.hooks, kind, "faults", webhooks).await;
    let mut outcomes = Vec::new();
    let mut written = BTreeSet::new();
    for (case, passes) in cases {
        let response = side.send("POST", MAPS, map(&case, &case)).await;
        assert_eq!(response.code == 201, passes, "{} {kind} {case}: {}", side.name, response.body);
        if passes {
            written.insert(case.clone());
        }
        outcomes.push((case, response));
    }
    let list = side.make("GET", &format!("{MAPS}?labelSelector=case"), Value::Null).await;
    let names = list["items"].as_array().unwrap().iter();
    let found: BTreeSet<String> =
        names.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(found, written, "{} {kind}: what was refused was not written", side.name);
    side.deconfigure(kind, "faults").await;
    side.make("DELETE", &format!("{MAPS}?labelSelector=case"), Value::Null).await;
    outcomes
}

/// Webhooks with side effects can no longer be configured, but may be stored.
pub async fn side_effects(hooks: &HookServer) {
    let mut hook = case("effects", hooks.client("/own/allow"), "Fail");
    hook["sideEffects"] = "Some".into();
    let refused = configuration("Validating", "refused", vec![hook.clone()]);
    hook["namespaceSelector"] = json!({});
    let mut stored = configuration("Validating", "old", vec![hook]);
    stored["metadata"] = json!({"name": "old", "uid": "6b1d7a3c-7a53-4a3b-8d7e-0c6c6f0f7a11",
        "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1});
    let key = "/registry/validatingwebhookconfigurations/old";
    let side = Side::own_with(&[(key, stored)]).await;
    let response = side.send("POST", &configurations("Validating"), refused).await;
    assert_eq!(response.code, 422, "{}", response.body);

    let dry = format!("{MAPS}?dryRun=All");
    let response = side.send("POST", &dry, map("effects", "effects")).await;
    let text = "admission webhook \"effects.case.example\" does not support dry run";
    assert_eq!((response.code, response.message()), (400, text));
    assert_eq!(side.send("POST", &dry, map("other", "other")).await.code, 201);
    assert!(hooks.take("/own/").is_empty(), "no webhook was called");
    assert_eq!(side.send("POST", MAPS, map("effects", "effects")).await.code, 201);
    assert_eq!(hooks.take("/own/").len(), 1);
    for method in ["PATCH", "DELETE"] {
        let path = format!("{MAPS}/effects?dryRun=All");
        let body = if method == "PATCH" { json!({"data": {"a": "b"}}) } else { Value::Null };
        let response = side.send(method, &path, body).await;
        assert_eq!((response.code, response.message()), (400, text), "{method}");
    }

    let mut aware = case("aware", hooks.client("/own/deny"), "Fail");
    aware["sideEffects"] = "NoneOnDryRun".into();
    side.configure(hooks, "Validating", "aware", vec![aware]).await;
    let response = side.send("POST", &dry, map("aware", "aware")).await;
    assert!(response.message().contains("denied the request"), "{}", response.body);
}
