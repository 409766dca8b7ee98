//! A whole cluster's API: pod subresources, the Service of the API, and in modules of their own
//! certificate requests and metadata that the server writes.

#![allow(clippy::unwrap_used)]

#[path = "cluster/certificates.rs"]
mod certificates;
#[path = "cluster/metadata.rs"]
mod metadata;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apiserver::authentication::StaticTokens;
use apiserver::service_accounts::SigningKey;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kubernetes_api::assembly::{Assembly, Controllers, Profile, Running};
use kubernetes_api::controllers;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

struct World {
    running: Running,
    _folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let people = "t-root,root,,system:masters\nt-ann,ann,\nt-bob,bob,7,devs";
        let running = Assembly {
            controllers: Controllers::Outside,
            tokens: vec![Arc::new(StaticTokens::parse(people).unwrap())],
            ..Assembly::new(
                EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap(),
                Profile::Full,
                SigningKey::generate_pem(),
            )
        };
        let world = Self { running: running.start().await.unwrap(), _folder: folder };
        let account = json!({"metadata": {"name": "default"}});
        world.root(Method::POST, "/api/v1/namespaces/default/serviceaccounts", account).await;
        world
    }

    async fn send(&self, who: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let (code, _, answer) = self.send_request(who, method, path, body).await;
        (code, answer)
    }

    /// As root. Returns the warnings of a response, which must be successful.
    async fn send_with_warnings(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> (Vec<String>, Value) {
        let (code, warnings, answer) = self.send_request("root", method, path, body).await;
        assert!(code < 300, "{path}: {answer}");
        (warnings, answer)
    }

    async fn send_request(
        &self,
        who: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> (u16, Vec<String>, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer t-{who}"))
            .header("content-type", "application/json");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.running.server.handle(request.body(Full::from(body)).unwrap()).await;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, warnings, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// As root, and the request must succeed.
    async fn root(&self, method: Method, path: &str, body: Value) -> Value {
        let (code, answer) = self.send("root", method, path, body).await;
        assert!(code < 300, "{path}: {answer}");
        answer
    }

    async fn get(&self, path: &str) -> Value {
        self.root(Method::GET, path, Value::Null).await
    }

    /// Grants a user a rule everywhere, and waits until it is effective.
    async fn grant(&self, user: &str, rule: Value) {
        let name = format!("{user}-{}", rule["verbs"][0].as_str().unwrap());
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        self.root(Method::POST, &format!("{rbac}/clusterroles"), role).await;
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user}],
        });
        self.root(Method::POST, &format!("{rbac}/clusterrolebindings"), binding).await;
        let attributes = json!({
            "group": rule["apiGroups"][0], "resource": rule["resources"][0],
            "verb": rule["verbs"][0], "name": rule["resourceNames"][0],
        });
        let mut attributes = attributes;
        if let Some((resource, part)) =
            rule["resources"][0].as_str().and_then(|text| text.split_once('/'))
        {
            attributes["resource"] = resource.into();
            attributes["subresource"] = part.into();
        }
        let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let allowed = async {
            while self.root(Method::POST, path, review.clone()).await["status"]["allowed"] != true {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), allowed).await.unwrap();
    }

    async fn pod(&self, name: &str) -> Value {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "x"}},
            "spec": {"containers": [{
                "name": "c", "image": "i",
                "resources": {"requests": {"cpu": "100m", "memory": "10Mi"}},
            }]},
        });
        self.root(Method::POST, PODS, pod).await
    }
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let world = World::start().await;
    world.pod("a").await;
    let bind = |node: &str| {
        json!({
            "metadata": {"name": "a", "labels": {"l": "m"}}, "target": {"kind": "Node", "name": node},
        })
    };
    let path = format!("{PODS}/a/binding");
    let (code, returned) = world.send("root", Method::POST, &path, bind("")).await;
    assert_eq!((code, message(&returned)), (500, "target.name: Required value"));
    let (code, returned) =
        world.send("root", Method::POST, &format!("{PODS}/b/binding"), bind("n1")).await;
    assert_eq!(
        (code, message(&returned)),
        (400, "name in URL does not match name in Binding object")
    );
    let answer = world.root(Method::POST, &path, bind("n1")).await;
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let pod = world.get(&format!("{PODS}/a")).await;
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["metadata"]["labels"], json!({"app": "x", "l": "m"}));
    let scheduled = &pod["status"]["conditions"][0];
    assert_eq!(
        (&scheduled["type"], &scheduled["status"]),
        (&json!("PodScheduled"), &json!("True"))
    );
    // The collection does the same.
    let bindings = "/api/v1/namespaces/default/bindings";
    let (code, returned) = world.send("root", Method::POST, bindings, bind("n2")).await;
    let expected = "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned \
                    to node \"n1\"";
    assert_eq!((code, message(&returned)), (409, expected));
}

#[tokio::test]
async fn an_eviction_respects_the_budget() {
    let world = World::start().await;
    for name in ["a", "b"] {
        let mut pod = world.pod(name).await;
        let target = json!({"metadata": {"name": name}, "target": {"name": "n1"}});
        world.root(Method::POST, &format!("{PODS}/{name}/binding"), target).await;
        pod["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        pod["status"] = json!({
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        });
        world.root(Method::PUT, &format!("{PODS}/{name}/status"), pod).await;
    }
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    });
    let mut budget = world.root(Method::POST, BUDGETS, budget).await;
    let evict = async |name: &str| {
        let body = json!({"metadata": {"name": name}});
        world.send("root", Method::POST, &format!("{PODS}/{name}/eviction"), body).await
    };
    let (code, returned) = evict("a").await;
    assert_eq!(code, 429);
    assert_eq!(returned["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(
        returned["details"]["causes"][0]["message"],
        "The disruption budget b is still being processed by the server."
    );
    assert_eq!(returned["details"]["retryAfterSeconds"], 10);

    budget["status"] = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1,
        "expectedPods": 2,
    });
    world.root(Method::PUT, &format!("{BUDGETS}/b/status"), budget).await;
    let (code, answer) = evict("a").await;
    assert_eq!((code, &answer["status"]), (201, &json!("Success")));
    let going = world.get(&format!("{PODS}/a")).await;
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let conditions = going["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "DisruptionTarget"), "{conditions:?}");
    let status = world.get(&format!("{BUDGETS}/b")).await["status"].clone();
    assert_eq!(status["disruptionsAllowed"], 0);
    assert!(status["disruptedPods"]["a"].is_string(), "{status}");

    let (code, returned) = evict("b").await;
    assert_eq!(code, 429);
    assert_eq!(
        returned["details"]["causes"][0]["message"],
        "The disruption budget b needs 1 healthy pods and has 2 currently"
    );
    assert!(returned["details"].get("retryAfterSeconds").is_none(), "{returned}");
}

#[tokio::test]
async fn parts_of_a_pod_are_written_by_their_subresources_alone() {
    let world = World::start().await;
    let pod = world.pod("a").await;
    let path = |part: &str| format!("{PODS}/a/{part}");
    let mut debugged = pod.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "x:1", "ports": [
        {"containerPort": 1},
    ]}]);
    let put = async |part: &str, body: &Value| {
        world.send("root", Method::PUT, &path(part), body.clone()).await
    };
    let (code, returned) = put("ephemeralcontainers", &debugged).await;
    let expected = "Pod \"a\" is invalid: spec.ephemeralContainers[0].ports: Forbidden: cannot be \
                    set for an Ephemeral Container";
    assert_eq!((code, message(&returned)), (422, expected));
    debugged["spec"]["ephemeralContainers"][0].as_object_mut().unwrap().remove("ports");
    debugged["spec"]["nodeName"] = "elsewhere".into();
    debugged["metadata"]["labels"] = json!({"other": "label"});
    let (code, debugged) = put("ephemeralcontainers", &debugged).await;
    assert_eq!(code, 200, "{debugged}");
    assert_eq!(debugged["metadata"]["labels"], json!({"app": "x"}));
    assert!(debugged["spec"].get("nodeName").is_none());
    assert_eq!(debugged["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "IfNotPresent");
    let mut removed = debugged.clone();
    removed["spec"].as_object_mut().unwrap().remove("ephemeralContainers");
    let (code, returned) = put("ephemeralcontainers", &removed).await;
    assert_eq!(code, 422);
    assert!(message(&returned).contains("existing ephemeral containers \"e\" may not be removed"));

    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let hard = json!({"requests.cpu": "250m"});
    let quota = json!({"metadata": {"name": "room"}, "spec": {"hard": hard}});
    let mut quota = world.root(Method::POST, quotas, quota).await;
    quota["status"] = json!({"hard": hard, "used": {"requests.cpu": "100m"}});
    world.root(Method::PUT, &format!("{quotas}/room/status"), quota).await;
    let mut greedy = debugged.clone();
    greedy["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "300m".into();
    let (code, returned) = put("resize", &greedy).await;
    assert_eq!(code, 403);
    assert!(
        message(&returned).contains("exceeded quota: room, requested: requests.cpu=200m"),
        "{returned}"
    );
    let mut resized = debugged.clone();
    resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m".into();
    resized["spec"]["containers"][0]["image"] = "other".into();
    let (code, resized) = put("resize", &resized).await;
    assert_eq!(code, 200, "{resized}");
    assert_eq!(resized["spec"]["containers"][0]["image"], "i");
    assert_eq!(resized["spec"]["containers"][0]["resources"]["requests"]["cpu"], "200m");
    assert_eq!(resized["metadata"]["generation"], 3);
    let mut freed = resized.clone();
    freed["spec"]["containers"][0]["resources"] = json!({});
    let (code, returned) = put("resize", &freed).await;
    let expected = "Pod \"a\" is invalid: [spec: Invalid value: \"Burstable\": Pod QOS Class may not \
                    change as a result of resizing, spec.containers[0].resources.requests: \
                    Forbidden: resource requests cannot be removed]";
    assert_eq!((code, message(&returned)), (422, expected));
    let mut renamed = resized.clone();
    renamed["spec"]["containers"][0]["name"] = "other".into();
    let (code, returned) = put("resize", &renamed).await;
    assert_eq!(code, 422);
    assert!(message(&returned).contains("containers may not be renamed or reordered on resize"));
}

#[tokio::test]
async fn the_service_of_the_api_leads_to_the_server() {
    let world = World::start().await;
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let advertise = async |address: &str| {
        let address: SocketAddr = address.parse().unwrap();
        controllers::advertise(world.running.server.registry(), address).await.unwrap();
    };
    // The unspecified address leads nowhere.
    advertise("0.0.0.0:6443").await;
    assert_eq!(world.send("root", Method::GET, endpoints, Value::Null).await.0, 404);
    for (address, ip, port) in
        [("192.0.2.1:6443", "192.0.2.1", 6443), ("127.0.0.1:1", "127.0.0.1", 1)]
    {
        advertise(address).await;
        let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
        let found = world.get(endpoints).await;
        let label = &found["metadata"]["labels"]["endpointslice.kubernetes.io/skip-mirror"];
        assert_eq!(*label, "true");
        assert_eq!(found["subsets"], json!([{"addresses": [{"ip": ip}], "ports": ports}]));
        let found = world.get(slice).await;
        assert_eq!(
            found["metadata"]["labels"],
            json!({"kubernetes.io/service-name": "kubernetes"})
        );
        assert_eq!(found["endpoints"], json!([{"addresses": [ip], "conditions": {"ready": true}}]));
        assert_eq!((&found["addressType"], &found["ports"]), (&json!("IPv4"), &ports));
    }
}
