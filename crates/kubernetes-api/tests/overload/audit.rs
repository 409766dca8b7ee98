//! The audit log compared with that of a real kube-apiserver: `audit_recorded.jsonl` is the log of
//! version 1.36.3 under [`POLICY`] for the requests of [`send_all`], sent with curl over loopback.

use std::path::Path;
use std::time::Duration;

use apiserver::audit::log::LogSettings;
use apiserver::audit::policy::AuditPolicy;
use apiserver::audit::{AuditFlags, AuditSettings};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::world::{MAPS, World};

const RECORDED: &str = include_str!("audit_recorded.jsonl");
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: Request
  resources: [{group: "", resources: [serviceaccounts]}]
# Without its name, a config map would be recorded as Metadata only.
- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
- level: RequestResponse
"#;

fn settings(path: &Path, policy: &str) -> AuditSettings {
    let policy = AuditPolicy::parse(policy).unwrap();
    let (backups_max, age_max) = (0, Duration::ZERO);
    let log = LogSettings { path: path.to_owned(), size_max: u64::MAX, backups_max, age_max };
    AuditSettings { policy, log, sensitive: vec![("apps", "secretsauces")] }
}

/// Stops the server, which flushes its log, and reads the log.
fn read(world: World, path: &Path) -> Vec<Value> {
    drop(world);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn send_all(world: &World) {
    const JSON: (&str, &str) = ("content-type", "application/json");
    let send = |number: u32,
                who: &'static str,
                method: Method,
                path: &str,
                more: &[(&'static str, &'static str)],
                body: &'static str| {
        let id = format!("request-{number}");
        let (path, more) = (path.to_owned(), more.to_vec());
        async move {
            let mut headers = vec![("audit-id", id.as_str())];
            if !more.iter().any(|(name, _)| *name == "user-agent") {
                headers.push(("user-agent", "curl/7.88.1"));
            }
            headers.extend(more);
            let response = world.open(who, method, &path, &headers, body).await;
            assert_eq!(response.headers()["audit-id"].to_str().unwrap(), id);
            response
        }
    };
    let core = "/api/v1/namespaces/default";
    let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a1"},"data":{"k":"v"}}"#;
    send(1, "admin", Method::POST, MAPS, &[JSON, ("user-agent", "probe/1")], map).await;
    let one = format!("{MAPS}/a1");
    let as_bob = [
        ("impersonate-user", "bob"),
        ("impersonate-group", "qa"),
        ("x-forwarded-for", "1.2.3.4, 5.6.7.8"),
    ];
    send(2, "admin", Method::GET, &one, &as_bob, "").await;
    let merge = [("content-type", "application/merge-patch+json")];
    send(3, "admin", Method::PATCH, &one, &merge, r#"{"data":{"x":"y"}}"#).await;
    let watch = format!("{MAPS}?watch=1");
    let mut watch = send(4, "admin", Method::GET, &watch, &[], "").await.into_body();
    watch.frame().await.unwrap().unwrap();
    drop(watch);
    let secret =
        r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s1"},"data":{"k":"dg=="}}"#;
    send(5, "admin", Method::POST, &format!("{core}/secrets"), &[JSON], secret).await;
    let account =
        r#"{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"generateName":"sa-"}}"#;
    send(6, "admin", Method::POST, &format!("{core}/serviceaccounts"), &[JSON], account).await;
    send(7, "admin", Method::DELETE, &one, &[], "").await;
    send(8, "admin", Method::GET, &format!("{MAPS}/nosuch"), &[], "").await;
    send(9, "wrong", Method::GET, "/api/v1/pods", &[], "").await;
    send(11, "admin", Method::GET, "/version", &[], "").await;
    let some = format!("{MAPS}?labelSelector=q%3Dw");
    send(12, "admin", Method::DELETE, &some, &[], "").await;
    send(14, "admin", Method::GET, &format!("{core}/nosuch"), &[], "").await;
    let yaml = [("content-type", "application/yaml")];
    let namespace = r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","labels":{"x":"y"}}}"#;
    send(15, "admin", Method::PUT, core, &yaml, namespace).await;
}

/// The parts that must be equal: everything but times, identifiers and values that depend on the
/// connection.
fn comparable(mut event: Value) -> Value {
    for field in ["requestReceivedTimestamp", "stageTimestamp"] {
        let time = event[field].as_str().unwrap_or_default().to_owned();
        assert!(time.len() == 27 && time.ends_with('Z'), "{field}: {time}");
        event[field] = json!("TIME");
    }
    // There is no connection in process: only the addresses that the client sent.
    let sources = event["sourceIPs"].as_array().cloned().unwrap_or_default();
    event["sourceIPs"] = sources.into_iter().filter(|ip| ip != "127.0.0.1").collect();
    // Kubernetes 1.36 reports the type of right by which a user impersonates; here there is one
    // type.
    let fields = event.as_object_mut().unwrap();
    fields.remove("authenticationMetadata");
    // For slow requests it reports how long each step took.
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.starts_with("apiserver.latency.k8s.io/"));
    }
    fn blank(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.as_str() {
                        "resourceVersion" | "creationTimestamp" | "time" => *value = json!("X"),
                        "uid" if value.as_str().is_some_and(|uid| uid.len() == 36) => {
                            *value = json!("UID");
                        }
                        // The first manager of the namespace has another name here.
                        "managedFields" => *value = json!(value.as_array().unwrap().len()),
                        _ => blank(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(blank),
            _ => {}
        }
    }
    blank(&mut event);
    event
}

#[tokio::test]
async fn events_are_those_that_kube_apiserver_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let world = World::start(Some(settings(&path, POLICY))).await;
    send_all(&world).await;
    let ours = read(world, &path);
    for recorded in RECORDED.lines() {
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        let (id, stage) = (&recorded["auditID"], &recorded["stage"]);
        let own = ours.iter().find(|event| event["auditID"] == *id && event["stage"] == *stage);
        let own = own.unwrap_or_else(|| panic!("no {stage} of {id}")).clone();
        let (own, recorded) = (comparable(own), comparable(recorded.clone()));
        assert_eq!(own, recorded, "\nown: {own}\nreal: {recorded}");
    }
    let mine = ours
        .iter()
        .filter(|event| event["auditID"].as_str().is_some_and(|id| id.starts_with("request-")));
    assert_eq!(mine.count(), RECORDED.lines().count(), "no event more");
}

#[tokio::test]
async fn secrets_stay_out_unless_a_rule_names_them_and_users_are_both_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], \
                  omitManagedFields: true, rules: [{level: RequestResponse}]}";
    let world = World::start(Some(settings(&path, policy))).await;
    let secret = json!({
        "metadata": {"name": "s"}, "stringData": {"password": "correct-horse"},
    });
    world.create("/api/v1/namespaces/default/secrets", &secret).await;
    world
        .create(MAPS, &json!({"metadata": {"name": "m"}, "data": {"token": "battery-staple"}}))
        .await;
    let review = json!({"spec": {"token": "t-alice"}});
    world.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await;
    world
        .create("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "a"}}))
        .await;
    let token = "/api/v1/namespaces/default/serviceaccounts/a/token";
    let issued = world.create(token, &json!({"spec": {}})).await;
    let issued = issued["status"]["token"].as_str().unwrap().to_owned();
    let as_alice = [("impersonate-user", "alice"), ("impersonate-group", "ops")];
    let listed = world.send("admin", Method::GET, MAPS, &as_alice, "").await;
    assert_eq!(listed.code, 403);
    let events = read(world, &path);
    let text = std::fs::read_to_string(&path).unwrap();
    for hidden in ["correct-horse", "battery-staple", "t-alice", "t-admin", issued.as_str()] {
        assert!(!text.contains(hidden), "{hidden} is in the log");
    }
    let of = |resource: &str, subresource: &str| {
        let found = events.iter().rfind(|event| {
            let reference = &event["objectRef"];
            reference["resource"] == resource
                && reference["subresource"].as_str().unwrap_or_default() == subresource
        });
        found.unwrap_or_else(|| panic!("no event of {resource}"))
    };
    assert_eq!(of("secrets", "")["level"], "Metadata");
    assert_eq!(of("tokenreviews", "")["level"], "Metadata");
    assert_eq!(of("serviceaccounts", "token")["level"], "Metadata");
    let account = of("serviceaccounts", "");
    assert_eq!(account["level"], "RequestResponse");
    assert_eq!(account["responseObject"]["metadata"]["name"], "a");
    assert!(account["responseObject"]["metadata"]["managedFields"].is_null());
    let refused = of("configmaps", "");
    assert_eq!(refused["user"]["username"], "admin");
    assert_eq!(refused["impersonatedUser"]["username"], "alice");
    assert_eq!(refused["impersonatedUser"]["groups"], json!(["ops", "system:authenticated"]));
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(refused["responseStatus"]["code"], 403);
}

#[tokio::test]
async fn a_client_that_disconnects_early_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    let world = World::start(Some(settings(&path, policy))).await;
    let stuck = r#"{"metadata": {"name": "stuck"}, "data": {"seconds": "never"}}"#;
    let headers = [("content-type", "application/json"), ("audit-id", "gone")];
    let request = world.send("admin", Method::POST, MAPS, &headers, stuck);
    assert!(tokio::time::timeout(Duration::from_millis(300), request).await.is_err());
    let events = read(world, &path);
    let stages: Vec<&Value> =
        events.iter().filter(|event| event["auditID"] == "gone").map(|e| &e["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    let last = events.iter().rfind(|event| event["auditID"] == "gone").unwrap();
    assert_eq!(last["responseStatus"]["code"], 499);
    assert_eq!(last["objectRef"]["name"], "stuck");
}

#[test]
fn flags_that_cannot_be_meant_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, "kind: Policy").unwrap();
    let log_path = Some(folder.path().join("audit.log"));
    let flags = AuditFlags { policy_file: Some(file.clone()), ..AuditFlags::default() };
    assert!(flags.resolve().err().unwrap().contains("needs audit-log-path"));
    let flags = AuditFlags { log_path: log_path.clone(), ..flags };
    assert!(flags.resolve().err().unwrap().contains("cannot be used"));
    let flags = AuditFlags { policy_file: Some(folder.path().join("no")), ..flags };
    assert!(flags.resolve().err().unwrap().contains("audit-policy-file: cannot read"));
    let flags = AuditFlags { log_path, ..AuditFlags::default() };
    let settings = flags.resolve().unwrap().unwrap();
    assert_eq!(settings.log.size_max, 100 * 1024 * 1024);
    assert!(AuditFlags::default().resolve().unwrap().is_none());
}
