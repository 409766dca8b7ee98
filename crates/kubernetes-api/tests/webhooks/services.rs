//! Webhooks behind Services: real connections to the endpoints, in the test's own network, since
//! endpoints must not be loopback addresses.

use std::collections::BTreeSet;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::hook_server::HookServer;
use super::side::{MAPS, Side, case, map};

/// Set where the addresses below exist.
const INSIDE: &str = "DROVER_TEST_NETWORK";
const FIRST: &str = "10.77.0.1";
const SECOND: &str = "10.77.0.2";
/// No server listens there.
const DEAD_PORT: u16 = 9;
/// With this number of calls each of two endpoints is reached, except once in half a million runs.
const CALLS: usize = 20;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// Runs the test of this name again in a network of its own. Returns true inside it.
pub fn entered(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let script = format!(
        "ip link set lo up && ip address add {FIRST}/32 dev lo && ip address add {SECOND}/32 dev lo \
         && exec \"$@\""
    );
    // The network ends with the process.
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` of util-linux is there");
    let said = String::from_utf8_lossy(&run.stdout);
    let complained = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "it needs network namespaces and `ip`: {said}\n{complained}");
    assert!(said.contains("1 passed"), "the test ran inside: {said}");
    false
}

/// A Service without a cluster address, and its endpoints.
async fn serve(side: &Side, name: &str, port: u16, endpoints: Value) {
    let ports = json!([{"name": "https", "port": 443}, {"name": "other", "port": 8443}]);
    let service = json!({"metadata": {"name": name},
        "spec": {"clusterIP": "None", "ports": ports}});
    side.make("POST", SERVICES, service).await;
    let slice = json!({
        "metadata": {"name": format!("{name}-1"), "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "other", "port": DEAD_PORT}, {"name": "https", "port": port}],
    });
    side.make("POST", SLICES, slice).await;
}

#[expect(clippy::too_many_lines, reason = "one story")]
pub async fn run() {
    let hooks = HookServer::start_on(FIRST, &["pods.default.svc", "both.default.svc", FIRST]).await;
    let port = hooks.address.port();
    let second = HookServer::start_at(&format!("{SECOND}:{port}"), &["both.default.svc"]).await;
    let side = Side::own().await;
    let ready = |address: &str| json!({"addresses": [address], "conditions": {"ready": true}});
    let not_ready = json!({"addresses": [SECOND], "conditions": {"ready": false}});
    serve(&side, "pods", port, json!([not_ready, ready(FIRST)])).await;
    serve(&side, "both", port, json!([ready(FIRST), ready(SECOND)])).await;
    serve(&side, "nobody", port, json!([not_ready])).await;
    serve(&side, "misnamed", port, json!([ready(FIRST)])).await;

    let bundle = STANDARD.encode(format!("{}{}", hooks.ca_pem, second.ca_pem));
    let hook = |name: &str, service: &str, port: u16, bundle: &str| {
        let client = json!({"caBundle": bundle, "service": {"namespace": "default",
            "name": service, "port": port, "path": "/own/deny"}});
        case(name, client, "Fail")
    };
    let broken = STANDARD.encode("not a certificate");
    let webhooks = vec![
        hook("reached", "pods", 443, &bundle),
        hook("other-port", "pods", 8443, &bundle),
        hook("no-port", "pods", 9443, &bundle),
        hook("both", "both", 443, &bundle),
        hook("nobody", "nobody", 443, &bundle),
        hook("missing", "missing", 443, &bundle),
        hook("misnamed", "misnamed", 443, &bundle),
        hook("machine-roots", "pods", 443, ""),
        hook("broken-bundle", "pods", 443, &broken),
    ];
    // An untrusted certificate fails the call; the configuration is accepted.
    side.configure(&hooks, "Validating", "services", webhooks).await;
    hooks.take("/own/");
    let posted = |service: &str, port: u16| {
        format!(
            "failed to call webhook: Post \"https://{service}.default.svc:{port}/own/deny?timeout=5s\": "
        )
    };
    for (name, expected) in [
        ("reached", "denied the request: not like this".to_owned()),
        (
            "other-port",
            format!(
                "{}dial tcp {FIRST}:{DEAD_PORT}: connect: connection refused",
                posted("pods", 8443)
            ),
        ),
        (
            "no-port",
            format!("{}no service port 9443 found for service \"pods\"", posted("pods", 9443)),
        ),
        (
            "nobody",
            format!("{}no endpoints available for service \"nobody\"", posted("nobody", 443)),
        ),
        ("missing", format!("{}service \"missing\" not found", posted("missing", 443))),
        (
            "misnamed",
            format!("{}tls: failed to verify certificate: x509: ", posted("misnamed", 443)),
        ),
        (
            "machine-roots",
            format!(
                "{}tls: failed to verify certificate: x509: certificate signed by unknown authority",
                posted("pods", 443)
            ),
        ),
        ("broken-bundle", "unable to load root certificates".to_owned()),
    ] {
        let response = side.send("POST", MAPS, map(name, name)).await;
        assert!(response.code >= 400, "{name}: {}", response.body);
        assert!(
            response.message().contains(&expected),
            "{name}: {} | {expected}",
            response.message()
        );
    }
    assert_eq!(hooks.take("/own/").len(), 1, "only one could be called");

    let mut called = BTreeSet::new();
    for _ in 0..CALLS {
        let response = side.send("POST", MAPS, map("both", "both")).await;
        assert!(response.message().contains("denied the request"), "{}", response.message());
        called.extend((!hooks.take("/own/").is_empty()).then_some(FIRST));
        called.extend((!second.take("/own/").is_empty()).then_some(SECOND));
    }
    assert_eq!(called, BTreeSet::from([FIRST, SECOND]), "both endpoints are called");
}
