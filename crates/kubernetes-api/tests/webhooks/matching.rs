//! The writes for which a webhook is called.

use serde_json::{Value, json};

use super::faults::Outcomes;
use super::hook_server::HookServer;
use super::side::{MAPS, Side, TestResponse, case, configuration, configurations, map, webhook};
use super::wait;

const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.org";

pub async fn run(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut outcomes = selectors(side, hooks).await;
    outcomes.extend(conditions(side, hooks).await);
    outcomes.extend(deletions(side, hooks).await);
    outcomes.extend(versions(side, hooks).await);
    outcomes.extend(groups(side, hooks).await);
    exempt(side, hooks).await;
    outcomes
}

/// Sends a request and expects the webhook to deny it, or not to be called.
async fn expect(
    side: &Side,
    outcomes: &mut Outcomes,
    (what, denied): (&str, bool),
    (method, path): (&str, &str),
    body: Value,
) -> TestResponse {
    let response = side.send(method, path, body).await;
    assert_eq!(response.code >= 400, denied, "{} {what}: {}", side.name, response.body);
    outcomes.push((what.to_owned(), response.clone()));
    response
}

async fn selectors(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    let team = |label: &str| json!({"metadata": {"name": "team", "labels": {"guard": label}}});
    side.make("POST", NAMESPACES, team("on")).await;
    let mut by_namespace = webhook("namespaces.sel.example", side.client(hooks, "deny"), "Fail");
    by_namespace["namespaceSelector"] = json!({"matchLabels": {"guard": "on"}});
    by_namespace["rules"][0]["resources"] = json!(["configmaps", "namespaces"]);
    let mut by_object = case("old", side.client(hooks, "deny"), "Fail");
    by_object["rules"][0]["operations"] = json!(["UPDATE"]);
    let mut clustered = case("clustered", side.client(hooks, "deny"), "Fail");
    clustered["rules"][0]["scope"] = "Cluster".into();
    let webhooks = vec![by_namespace, by_object, clustered];
    side.configure(hooks, "Validating", "selectors", webhooks).await;

    let maps = format!("{NAMESPACES}/team/configmaps");
    expect(side, &mut out, ("namespace", true), ("POST", &maps), map("a", "none")).await;
    expect(side, &mut out, ("other namespace", false), ("POST", MAPS), map("a", "none")).await;
    let other = json!({"metadata": {"name": "second", "labels": {"guard": "on"}}});
    expect(side, &mut out, ("namespace itself", true), ("POST", NAMESPACES), other).await;
    let off = json!({"metadata": {"labels": {"guard": "off"}}});
    let team = format!("{NAMESPACES}/team");
    expect(side, &mut out, ("new labels count", false), ("PATCH", &team), off).await;
    // A watch delivers the labels of namespaces.
    wait::until("the new labels are known", async || {
        let probe = format!("{maps}?dryRun=All");
        side.send("POST", &probe, map("probe", "none")).await.code == 201
    })
    .await;
    expect(side, &mut out, ("no longer", false), ("POST", &maps), map("a", "none")).await;
    expect(side, &mut out, ("not updates", false), ("POST", MAPS), map("b", "old")).await;
    let place = format!("{MAPS}/b");
    let relabel = json!({"metadata": {"labels": {"case": "new"}}});
    expect(side, &mut out, ("old object", true), ("PATCH", &place), relabel).await;
    expect(side, &mut out, ("scope", false), ("POST", MAPS), map("c", "clustered")).await;
    side.deconfigure("Validating", "selectors").await;
    side.make("DELETE", &format!("{MAPS}?labelSelector=case"), Value::Null).await;
    out
}

async fn conditions(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    let hook = |name: &str, policy: &str, expressions: &[&str]| {
        let mut hook = case(name, side.client(hooks, "deny"), policy);
        let named = expressions.iter().enumerate();
        hook["matchConditions"] = named
            .map(|(at, expression)| json!({"name": format!("c{at}"), "expression": expression}))
            .collect();
        hook
    };
    let webhooks = vec![
        hook("holds", "Fail", &["object.data.key == 'value'", "request.operation == 'CREATE'"]),
        hook("not", "Fail", &["object.data.key == 'value'", "request.name == 'other'"]),
        hook("user", "Fail", &["'system:masters' in request.userInfo.groups"]),
        hook("old", "Fail", &["oldObject == null && request.kind.kind == 'ConfigMap'"]),
        hook("fails", "Fail", &["object.data.absent == 'x'"]),
        hook("fails-false", "Fail", &["object.data.absent == 'x'", "false"]),
        hook("ignored", "Ignore", &["object.data.absent == 'x'"]),
    ];
    side.configure(hooks, "Validating", "conditions", webhooks).await;
    let cases = [
        ("holds", true),
        ("not", false),
        ("user", true),
        ("old", true),
        ("fails", true),
        ("fails-false", false),
        ("ignored", false),
    ];
    for (name, denied) in cases {
        expect(side, &mut out, (name, denied), ("POST", MAPS), map(name, name)).await;
    }
    side.deconfigure("Validating", "conditions").await;
    side.make("DELETE", &format!("{MAPS}?labelSelector=case"), Value::Null).await;
    out
}

async fn deletions(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    side.make("POST", MAPS, map("kept", "kept")).await;
    let mut hook = case("kept", side.client(hooks, "deny"), "Fail");
    hook["rules"][0]["operations"] = json!(["DELETE"]);
    let mut warns = case("warned", side.client(hooks, "warn"), "Fail");
    warns["rules"][0]["operations"] = json!(["DELETE"]);
    side.configure(hooks, "Validating", "deletions", vec![hook, warns]).await;
    let place = format!("{MAPS}/kept");
    expect(side, &mut out, ("delete", true), ("DELETE", &place), Value::Null).await;
    let all = format!("{MAPS}?labelSelector=case%3Dkept");
    expect(side, &mut out, ("collection", true), ("DELETE", &all), Value::Null).await;
    side.make("POST", MAPS, map("warned", "warned")).await;
    let warned = format!("{MAPS}/warned");
    let response = side.send("DELETE", &warned, Value::Null).await;
    assert_eq!((response.code, response.warnings.len()), (200, 2), "{}", response.body);
    side.make("GET", &place, Value::Null).await;
    side.deconfigure("Validating", "deletions").await;
    side.make("DELETE", &place, Value::Null).await;

    // A mutating webhook is called, and changes nothing.
    side.make("POST", MAPS, map("kept", "kept")).await;
    let mut hook = case("kept", side.client(hooks, "label"), "Ignore");
    hook["rules"][0]["operations"] = json!(["DELETE"]);
    side.configure(hooks, "Mutating", "deletions", vec![hook]).await;
    expect(side, &mut out, ("patched delete", true), ("DELETE", &place), Value::Null).await;
    side.deconfigure("Mutating", "deletions").await;
    side.make("DELETE", &place, Value::Null).await;
    out
}

/// A rule for one version also matches the others, unless its match policy is `Exact`.
async fn versions(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    let schema = json!({"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.org"},
        "spec": {
            "group": "ex.org", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    });
    side.make("POST", DEFINITIONS, definition).await;
    let old = format!("{WIDGETS}/v1beta1/widgets");
    wait::until("the kind is served", async || {
        side.send("GET", &old, Value::Null).await.code == 200
    })
    .await;
    let hook = |name: &str, behaviour: &str, policy: &str| {
        let mut hook = case(name, side.client(hooks, behaviour), "Fail");
        hook["matchPolicy"] = policy.into();
        hook["rules"] = json!([{"operations": ["CREATE"], "apiGroups": ["ex.org"],
            "apiVersions": ["v1"], "resources": ["widgets"]}]);
        hook
    };
    let webhooks =
        vec![hook("equivalent", "patch-spec", "Equivalent"), hook("exact", "patch-spec", "Exact")];
    side.configure(hooks, "Mutating", "versions", webhooks).await;
    let mine = format!("/{}/patch-spec", side.name);
    hooks.take(&mine);
    for (name, called) in [("equivalent", true), ("exact", false)] {
        let widget = json!({"apiVersion": "ex.org/v1beta1", "kind": "Widget", "spec": {"a": 1},
            "metadata": {"name": name, "labels": {"case": name}}});
        let response = expect(side, &mut out, (name, false), ("POST", &old), widget).await;
        assert_eq!(response.body["apiVersion"], "ex.org/v1beta1");
        assert_eq!(response.body["spec"]["webhook"].is_string(), called, "{}", response.body);
    }
    let calls = hooks.take(&mine);
    let request = &calls[0].review["request"];
    assert_eq!(calls.len(), 1);
    assert_eq!(request["object"]["apiVersion"], "ex.org/v1");
    assert_eq!(request["kind"]["version"], "v1");
    assert_eq!(request["requestKind"]["version"], "v1beta1");
    side.deconfigure("Mutating", "versions").await;
    side.make("DELETE", &format!("{DEFINITIONS}/widgets.ex.org"), Value::Null).await;
    out
}

/// Events are equal in both of their groups: a rule for one matches the other.
async fn groups(side: &Side, hooks: &HookServer) -> Outcomes {
    let mut out = Outcomes::new();
    let core = "/api/v1/namespaces/default/events";
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let hook = |name: &str, group: &str, policy: &str| {
        let mut hook = case(name, side.client(hooks, "label"), "Fail");
        hook["matchPolicy"] = policy.into();
        hook["rules"] = json!([{"operations": ["CREATE"], "apiGroups": [group],
            "apiVersions": ["v1"], "resources": ["events"]}]);
        hook
    };
    let mutating = vec![
        hook("as-core", "", "Equivalent"),
        hook("as-new", "events.k8s.io", "Equivalent"),
        hook("only-core", "", "Exact"),
    ];
    let mut validating = mutating.clone();
    for hook in &mut validating {
        hook["clientConfig"] = side.client(hooks, "allow");
    }
    side.configure(hooks, "Mutating", "groups", mutating).await;
    side.configure(hooks, "Validating", "groups", validating).await;
    let mine = format!("/{}/", side.name);
    hooks.take(&mine);
    for (case, path) in
        [("as-core", new), ("as-new", core), ("only-core", new), ("only-core", core)]
    {
        let name = format!("{case}-{}", if path == core { "core" } else { "new" });
        let metadata = json!({"name": name, "namespace": "default", "labels": {"case": case}});
        let object = json!({"kind": "ConfigMap", "name": "x", "namespace": "default"});
        let event = match path == core {
            true => json!({"metadata": metadata, "involvedObject": object, "message": "m",
                "reason": "r", "type": "Normal", "source": {"component": "c"}}),
            false => json!({"metadata": metadata, "regarding": object, "note": "m", "reason": "r",
                "type": "Normal", "action": "a", "reportingController": "example.com/c",
                "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z"}),
        };
        expect(side, &mut out, (&name, false), ("POST", path), event).await;
        for call in hooks.take(&mine) {
            let request = &call.review["request"];
            let mut object = request["object"].clone();
            for field in ["uid", "creationTimestamp", "managedFields"] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
            let seen = json!({"object": object, "kind": request["kind"],
                "resource": request["resource"], "requestKind": request["requestKind"],
                "requestResource": request["requestResource"]});
            let called = TestResponse { code: 0, body: seen, warnings: Vec::new() };
            out.push((
                format!("{name} asked by {}", call.path.rsplit('/').next().unwrap()),
                called,
            ));
        }
    }
    let called = out.iter().filter(|(_, response)| response.code == 0).count();
    assert_eq!(called, 6, "{}: each of both stages, but for the one that is exact", side.name);
    side.deconfigure("Validating", "groups").await;
    side.deconfigure("Mutating", "groups").await;
    side.make("DELETE", &format!("{core}?labelSelector=case"), Value::Null).await;
    out
}

/// No webhook is called for webhook configurations.
async fn exempt(side: &Side, hooks: &HookServer) {
    let mut hook = webhook("everything.lock.example", side.client(hooks, "deny"), "Fail");
    hook["rules"] = json!([{"operations": ["*"], "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["*"], "resources": ["*"]}]);
    side.configure(hooks, "Validating", "lock", vec![hook.clone()]).await;
    side.configure(hooks, "Mutating", "lock", vec![hook]).await;
    for kind in ["Mutating", "Validating"] {
        let path = configurations(kind);
        side.make("POST", &path, configuration(kind, "free", vec![])).await;
        side.make("DELETE", &format!("{path}/free"), Value::Null).await;
        side.deconfigure(kind, "lock").await;
    }
}

/// A webhook behind a Service.
pub async fn service(side: &Side, hooks: &HookServer) -> Outcomes {
    let services = "/api/v1/namespaces/default/services";
    let service = json!({
        "metadata": {"name": "hook"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    side.make("POST", services, service).await;
    let port = hooks.address.port();
    let ca_bundle = hooks.client("/")["caBundle"].clone();
    let named = |case_name: &str, name: &str| {
        let client = json!({"caBundle": ca_bundle, "service": {"namespace": "default",
            "name": name, "port": port, "path": format!("/{}/deny", side.name)}});
        case(case_name, client, "Fail")
    };
    let webhooks = vec![named("named", "hook"), named("missing", "nothing")];
    side.configure(hooks, "Validating", "services", webhooks).await;
    let mut out = Outcomes::new();
    let named = expect(side, &mut out, ("named", true), ("POST", MAPS), map("a", "named")).await;
    assert_eq!(named.code, 400, "{}", named.body);
    expect(side, &mut out, ("missing", true), ("POST", MAPS), map("a", "missing")).await;
    side.deconfigure("Validating", "services").await;
    side.make("DELETE", &format!("{services}/hook"), Value::Null).await;
    out
}

/// A ready endpoint is called at its address.
pub async fn endpoint(side: &Side, hooks: &HookServer) {
    let services = "/api/v1/namespaces/default/services";
    let port = hooks.address.port();
    let host = host_address();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "pods"}},
        "ports": [{"name": "", "port": 9}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": true}}],
    });
    let ports = json!([{"port": port, "targetPort": 9}]);
    let with_endpoints = json!({"metadata": {"name": "pods"}, "spec": {"ports": ports}});
    side.make("POST", services, with_endpoints).await;
    side.make("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await;
    let client = json!({"service": {"namespace": "default", "name": "pods", "port": port}});
    let webhooks = vec![case("pods", client, "Fail")];
    side.configure(hooks, "Validating", "endpoints", webhooks).await;
    let response = side.send("POST", MAPS, map("a", "pods")).await;
    let refused = format!("dial tcp {host}:9: connect: connection refused");
    assert!(response.message().ends_with(&refused), "{}", response.message());
}

/// A non-loopback address of this machine, since endpoints must not have loopback ones. Nothing is
/// sent.
fn host_address() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    match socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) {
        Ok(address) => address.ip().to_string(),
        Err(error) => panic!("this machine has no address but loopback: {error}"),
    }
}

/// Connections to missing targets return 404 for every user, and no webhook is called.
pub async fn connections(side: &Side, hooks: &HookServer) {
    let mut all = webhook("all.connections.example", side.client(hooks, "allow"), "Fail");
    all["rules"] = json!([{"operations": ["CONNECT"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["*/*"]}]);
    side.configure(hooks, "Validating", "connections", vec![all]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = json!({"containers": [{"name": "c", "image": "x"}]});
    side.make("POST", pods, json!({"metadata": {"name": "one"}, "spec": containers})).await;
    let services = "/api/v1/namespaces/default/services";
    let ports = json!({"ports": [{"port": 80}]});
    side.make("POST", services, json!({"metadata": {"name": "one"}, "spec": ports})).await;
    side.make("POST", "/api/v1/nodes", json!({"metadata": {"name": "one"}})).await;
    for place in [
        format!("{pods}/one/exec?command=ls&stdout=true"),
        format!("{pods}/one/attach?stdout=true"),
        format!("{pods}/one/portforward?ports=80"),
        format!("{pods}/one/proxy"),
        format!("{pods}/one/proxy/index.html"),
        format!("{services}/one/proxy/index.html"),
        "/api/v1/nodes/one/proxy/healthz".to_owned(),
    ] {
        for method in ["GET", "POST"] {
            let response = side.send(method, &place, Value::Null).await;
            let text = "the server could not find the requested resource";
            assert_eq!((response.code, response.message()), (404, text), "{method} {place}");
        }
    }
    let called = hooks.take(&format!("/{}/allow", side.name));
    assert!(called.is_empty(), "{called:?}");
}
