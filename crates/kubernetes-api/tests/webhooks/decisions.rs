//! Valid responses and their effects.

use serde_json::{Value, json};

use super::faults::Outcomes;
use super::hook_server::HookServer;
use super::side::{MAPS, Side, TestResponse, case, map};

const DENIALS: [&str; 5] = ["deny", "deny-silent", "deny-reason", "deny-low", "deny-status"];
const PATCHES: [&str; 5] = ["empty-patch", "label", "patch-unknown", "warn", "annotate"];

/// Runs the cases and returns the responses.
pub async fn run(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut outcomes = Vec::new();
    let named = |name: &str| case(name, side.client(hooks, name), "Fail");
    for kind in ["Mutating", "Validating"] {
        side.configure(hooks, kind, "denials", DENIALS.map(named).to_vec()).await;
        for name in DENIALS {
            let response = side.send("POST", MAPS, map(name, name)).await;
            assert!(response.code >= 400, "{} {name}: {}", side.name, response.body);
            outcomes.push((format!("{kind} {name}"), response));
        }
        side.deconfigure(kind, "denials").await;
    }
    let mut webhooks = PATCHES.map(named).to_vec();
    webhooks.extend(["patch-name", "patch-kind"].map(named));
    side.configure(hooks, "Mutating", "patches", webhooks).await;
    for name in PATCHES {
        let response = side.send("POST", MAPS, map(name, name)).await;
        assert_eq!(response.code, 201, "{} {name}: {}", side.name, response.body);
        outcomes.push((name.to_owned(), response));
    }
    for name in ["patch-name", "patch-kind"] {
        let response = side.send("POST", MAPS, map(name, name)).await;
        outcomes.push((name.to_owned(), response));
    }
    let place = format!("{MAPS}/label");
    let bare = json!({"metadata": {"labels": {"seen": null, "case": "label"}}});
    outcomes.push(("patched".to_owned(), side.send("PATCH", &place, bare).await));
    let renamed = json!({"metadata": {"labels": {"case": "patch-name"}}});
    outcomes.push(("renamed".to_owned(), side.send("PATCH", &place, renamed).await));
    side.deconfigure("Mutating", "patches").await;
    outcomes.extend(order(side, hooks).await);
    side.make("DELETE", &format!("{MAPS}?labelSelector=case"), Value::Null).await;
    outcomes
}

/// Configurations are called in the order of their names; those that request it are reinvoked after
/// a change.
async fn order(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut counts = case("again", side.client(hooks, "count"), "Fail");
    counts["reinvocationPolicy"] = "IfNeeded".into();
    let once = case("again", side.client(hooks, "second"), "Fail");
    // The second one is created first.
    side.configure(hooks, "Mutating", "b-second", vec![once]).await;
    side.configure(hooks, "Mutating", "a-first", vec![counts]).await;
    hooks.take(&format!("/{}/", side.name));
    let response = side.send("POST", MAPS, map("again", "again")).await;
    assert_eq!(response.body["metadata"]["labels"]["count"], "xx", "{}", response.body);
    let mine = format!("/{}/", side.name);
    let called: Vec<String> = hooks.take(&mine).into_iter().map(|call| call.path).collect();
    let expected = ["count", "second", "count"].map(|name| format!("{mine}{name}"));
    assert_eq!(called, expected);
    side.deconfigure("Mutating", "a-first").await;
    side.deconfigure("Mutating", "b-second").await;
    vec![("reinvocation".to_owned(), response)]
}

/// Cases whose messages end in the words of libraries, and where those begin.
const WORDED: [(&str, &str); 14] = [
    ("unknown-authority", "x509: certificate signed by unknown authority"),
    ("wrong-name", "x509: "),
    ("truncated", "?timeout=1s\": "),
    ("not-json", "failed to call webhook: "),
    ("wrong-kind", "failed to call webhook: "),
    ("wrong-version", "failed to call webhook: "),
    ("wrong-uid", "expected response.uid="),
    ("patch-no-json", "received undecodable patch in webhook response: "),
    ("patch-no-base64", "failed to call webhook: "),
    ("patch-missing", "Internal error occurred: "),
    ("patch-test", "Internal error occurred: "),
    ("patch-kind", "Internal error occurred: "),
    ("another-uid", "expected response.uid="),
    // There, the kind's own rules report it a second time.
    ("renamed", "is invalid: metadata.name: "),
];

/// Compares the responses, except for values that differ between any two servers.
pub fn compare(own: &Outcomes, real: &Outcomes) {
    assert_eq!(own.len(), real.len());
    let mut differing = Vec::new();
    for ((case, found), (_, expected)) in own.iter().zip(real) {
        let (found, expected) = (plain(case, found, "own"), plain(case, expected, "real"));
        if found != expected {
            differing.push(format!("{case}:\n  {found}\n  {expected}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Removes generated values, the server's part of paths, and words of libraries.
fn plain(case: &str, response: &TestResponse, side: &str) -> Value {
    let mut body = response.body.clone();
    let given = ["uid", "creationTimestamp", "resourceVersion", "managedFields"];
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.retain(|field, _| !given.contains(&field.as_str()));
    }
    let mut text = body.to_string().replace(&format!("/{side}/"), "/");
    if response.code >= 400
        && let Some((_, begin)) = WORDED.iter().find(|(name, _)| case.starts_with(name))
    {
        let message = response.message();
        let at = message.find(begin).unwrap_or_else(|| panic!("{side} {case}: {message}"));
        text = message[..at + begin.len()].replace(&format!("/{side}/"), "/");
    }
    json!([response.code, text, response.warnings])
}
