//! Validation of Ingresses.

use serde_json::{Value, json};

use super::side::Side;
use super::world::run;

const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All";

/// Specs that each have one fault.
fn specs() -> Vec<Value> {
    let served_by = |backend: Value| json!({"defaultBackend": backend});
    let port = json!({"number": 80});
    let service = json!({"service": {"name": "web", "port": port}});
    let path = |kind: &str, path: &str| {
        let path = json!({"path": path, "pathType": kind, "backend": service});
        json!({"rules": [{"http": {"paths": [path]}}]})
    };
    let host = |host: &str| json!({"rules": [{"host": host}]});
    let with_host = |more: Value| {
        let mut spec = host("a.b");
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let backends = [
        json!({}),
        service.clone(),
        json!({"service": {"name": ""}}),
        json!({"service": {"name": "1web", "port": {"number": 70000}}}),
        json!({"service": {"name": "Web_", "port": {"name": "a_"}}}),
        json!({"service": {"name": "web", "port": {"number": 80, "name": "http"}}}),
        json!({"service": {"name": "web", "port": port}, "resource": {"kind": "A", "name": "b"}}),
        json!({"resource": {"kind": "Bucket", "name": "b", "apiGroup": "ex.org"}}),
        json!({"resource": {"kind": "", "name": ""}}),
        json!({"resource": {"kind": "a/b", "name": "..", "apiGroup": "A_"}}),
    ];
    let paths = [
        ("Prefix", "/a//b/./c/../%2f%2F"),
        ("Exact", "/a/.."),
        ("Prefix", "/a/."),
        ("Prefix", "a"),
        ("Exact", ""),
        ("ImplementationSpecific", ""),
        ("ImplementationSpecific", "a//b"),
        ("Regex", "/"),
        ("Prefix", "/"),
    ];
    let mut specs = vec![
        json!({}),
        json!({"tls": [{}]}),
        json!({"rules": [{"http": {}}]}),
        json!({"rules": [{"http": {"paths": []}}]}),
        json!({"rules": [{"http": {"paths": [{"path": "/", "backend": service}]}}]}),
        with_host(json!({"tls": [{"hosts": ["A_", "*.b", "", "1.2.3.4"], "secretName": "A_"}]})),
        with_host(json!({"tls": [{"hosts": ["*.A"], "secretName": ""}]})),
        with_host(json!({"ingressClassName": "A_"})),
    ];
    specs.extend(backends.map(served_by));
    specs.extend(paths.map(|(kind, text)| path(kind, text)));
    specs.extend(["a", "*.a", "*.a_", "A", "1.2.3.4", "::1", "*"].map(host));
    specs
}

/// The parts of the response that are compared.
async fn comparable(side: &Side, spec: &Value) -> Value {
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web"}, "spec": spec,
    });
    let response = side.post(INGRESSES, &ingress).await;
    let body = response.json();
    json!([response.code, body["message"], body["details"]])
}

#[test]
fn ingresses_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let (mut refused, mut taken) = (0, 0);
        for spec in specs() {
            let (real, drover) =
                tokio::join!(comparable(&world.real, &spec), comparable(&world.drover, &spec));
            assert_eq!(real, drover, "{spec}");
            if real[0] == 422 { refused += 1 } else { taken += 1 }
        }
        assert!(refused > 20 && taken > 4, "{refused} {taken}");
    });
}
