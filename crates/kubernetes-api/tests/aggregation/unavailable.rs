//! Unavailable servers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::own::Own;
use super::real::Real;
use super::through::GROUP;
use super::{SERVICES, api_service, wait};

const SERVICES_OF_DEFAULT: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// Two Services: an external one, and one of this cluster.
fn services() -> [Value; 2] {
    let service = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    [
        service("away", json!({"type": "ExternalName", "externalName": "localhost"})),
        service("bare", json!({"ports": [{"name": "https", "port": 443}]})),
    ]
}

/// An EndpointSlice whose only port has another name than the Service's.
fn slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": "misnamed", "labels": {"kubernetes.io/service-name": "misnamed"},
        },
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": true}}],
        "ports": [{"name": "other", "port": 443, "protocol": "TCP"}],
    })
}

/// The same APIServices are refused, or have the same condition, on both servers.
pub async fn compare(own: &Own, real: &Real) {
    let [away, bare] = services();
    let mut misnamed = bare.clone();
    misnamed["metadata"]["name"] = "misnamed".into();
    let make = [
        (SERVICES_OF_DEFAULT, away),
        (SERVICES_OF_DEFAULT, bare),
        (SERVICES_OF_DEFAULT, misnamed),
        (SLICES, slice()),
    ];
    for (path, body) in make {
        own.make("POST", path, body.clone()).await;
        let (code, response) = real.send(Method::POST, path, &body).await;
        assert_eq!(code, 201, "{response}");
    }
    for bad in refused() {
        let own_result = own.send_admin("POST", SERVICES, &bad).await;
        let real_result = real.send(Method::POST, SERVICES, &bad).await;
        assert_eq!((own_result.0.as_u16(), own_result.1), real_result);
    }
    let cases = [
        ("missing", "missing", 443, "ServiceNotFound"),
        ("port", "bare", 444, "ServicePortError"),
        ("bare", "bare", 443, "EndpointsNotFound"),
        ("misnamed", "misnamed", 443, "MissingEndpoints"),
        ("refused", "away", 1, "FailedDiscoveryCheck"),
    ];
    for (group, service, port, _) in cases {
        let body = api_service(&format!("{group}.example"), service, port);
        own.make("POST", SERVICES, body.clone()).await;
        assert_eq!(real.send(Method::POST, SERVICES, &body).await.0, 201);
    }
    for (group, _, _, reason) in cases {
        let path = format!("{SERVICES}/v1.{group}.example");
        wait::until(reason, async || {
            let comparable = |object: Value| {
                let mut condition = object["status"]["conditions"][0].clone();
                if let Some(condition) = condition.as_object_mut() {
                    condition.remove("lastTransitionTime");
                }
                condition
            };
            let own_result = comparable(own.get(&path).await);
            let real_result = comparable(real.send(Method::GET, &path, &Value::Null).await.1);
            match own_result["reason"] == reason && own_result == real_result {
                true => Ok(()),
                false => Err(format!("{own_result} here and {real_result} there")),
            }
        })
        .await;
    }
    for path in
        ["/apis/missing.example/v1/things", "/apis/missing.example/v1", "/apis/missing.example"]
    {
        let (code, body) = own.send_admin("GET", path, &Value::Null).await;
        assert_eq!((code.as_u16(), body), real.send(Method::GET, path, &Value::Null).await);
    }
    paths(own, real).await;
    for (group, ..) in cases {
        let path = format!("{SERVICES}/v1.{group}.example");
        own.make("DELETE", &path, Value::Null).await;
    }
}

/// Paths that one server lists at `/` are listed by the other too, with all versions.
async fn paths(own: &Own, real: &Real) {
    let list = |document: &Value| -> Vec<String> {
        serde_json::from_value(document["paths"].clone()).unwrap()
    };
    let own_result = list(&own.get("/").await);
    let real_result = list(&real.send(Method::GET, "/", &Value::Null).await.1);
    let unknown: Vec<&String> =
        own_result.iter().filter(|path| !real_result.contains(path)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let groups = own.get("/apis").await;
    let groups = groups["groups"].as_array().unwrap();
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().unwrap());
    for version in versions {
        let path = format!("/apis/{}", version["groupVersion"].as_str().unwrap());
        assert!(own_result.contains(&path), "{path}");
    }
}

/// Objects that break rules of the kind.
fn refused() -> Vec<Value> {
    let mut local = api_service("", "", 443);
    local["metadata"]["name"] = "bad".into();
    local["spec"] = json!({
        "group": "", "version": "V2", "groupPriorityMinimum": 0, "versionPriority": 1001,
        "insecureSkipTLSVerify": true, "caBundle": "AAAA",
    });
    let mut remote = api_service("bad.example", "", 443);
    remote["spec"]["group"] = "Bad_example".into();
    remote["spec"]["groupPriorityMinimum"] = 20001.into();
    remote["spec"]["caBundle"] = "AAAA".into();
    remote["spec"]["service"] = json!({"port": 70000});
    vec![local, remote]
}

/// The other server ends and is started again. `namespace` has objects there.
pub async fn down(own: &Own, real: Real, namespace: &str) {
    let real = real.end().await;
    let path = format!("/apis/{GROUP}/v1/namespaces/default/gadgets");
    let (code, body) = own.send_admin("GET", &path, &Value::Null).await;
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    // That request has reported the failure.
    let service = format!("{SERVICES}/v1.{GROUP}");
    wait::until("it is known to be away", async || {
        own.get(&service).await["status"]["conditions"][0]["reason"] == "FailedDiscoveryCheck"
    })
    .await;
    // Requests are routed by a view that follows the stored condition.
    wait::until("requests are refused without a dial", async || {
        own.send_admin("GET", &path, &Value::Null).await
            == (StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n".into())
    })
    .await;

    let groups = own.get("/apis").await;
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert!(names.contains(&GROUP) && names.contains(&"apps"), "{names:?}");
    let all = own.aggregated().await;
    let of = |name: &str| {
        let items = all["items"].as_array().unwrap();
        items.iter().find(|item| item["metadata"]["name"] == name).unwrap()["versions"][0].clone()
    };
    assert_eq!(of(GROUP)["freshness"], "Stale");
    assert_eq!(of("apps")["freshness"], "Current");
    assert_eq!(of("apps")["resources"].as_array().unwrap().len(), 5);
    assert!(own.kubectl(&["get", "deployments"]).await.contains("No resources found"));

    let holder = format!("/api/v1/namespaces/{namespace}");
    own.make("POST", &format!("{holder}/configmaps"), json!({"metadata": {"name": "here"}})).await;
    own.make("DELETE", &holder, Value::Null).await;
    wait::until("the namespace tells why it stays", async || {
        let conditions = own.get(&holder).await["status"]["conditions"].clone();
        let failed = &conditions[0];
        failed["type"] == "NamespaceDeletionDiscoveryFailure" && failed["status"] == "True"
    })
    .await;
    let left = own.get(&format!("{holder}/configmaps")).await;
    assert_eq!(left["items"], json!([]), "objects of this server are deleted anyway");

    let real = real.revive().await;
    wait::until("the namespace is deleted", async || own.get(&holder).await["code"] == 404).await;
    let there = format!("/apis/{GROUP}/v1/namespaces/{namespace}/gadgets");
    let (_, left) = real.send(Method::GET, &there, &Value::Null).await;
    assert_eq!(left["items"], json!([]), "objects of the other server are deleted too");
}
