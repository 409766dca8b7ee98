//! Compares with a real kube-apiserver: for everything in its discovery, its response in one
//! encoding, transcoded, equals its response in the other.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubernetes_protobuf::openapi::{self, OpenApiVersion};
use kubernetes_protobuf::{MEDIA_TYPE, decode, encode, encode_as};
use serde_json::{Value, json};
use testbed::RealCluster;

/// Maximum time until a definition is published.
const SCHEMAS_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

struct Server {
    client: Client,
}

impl Server {
    async fn of(cluster: &RealCluster) -> Self {
        let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Self { client: Client::try_from(config).unwrap() }
    }

    async fn call(&self, method: Method, path: &str, form: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, form)
            .header(CONTENT_TYPE, form)
            .body(Body::from(body))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        let answered = parts.headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap());
        assert!(answered.starts_with(form), "{path} returns {answered}");
        (parts.status.as_u16(), bytes)
    }

    /// The content type of a response, and its body.
    async fn get(&self, path: &str, accept: &str) -> (String, Vec<u8>) {
        let request = Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        assert_eq!(parts.status, 200, "{path}");
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        (parts.headers[CONTENT_TYPE].to_str().unwrap().to_owned(), bytes)
    }

    /// Reads a document about types in both encodings and compares the encoder's result with them.
    async fn compare_schemas(&self, path: &str, version: OpenApiVersion) -> Value {
        let (_, before) = self.get(path, "application/json").await;
        let (new, protobuf) = self.get(path, version.media_type()).await;
        let (old, _) = self.get(path, version.old_media_type()).await;
        let (_, after) = self.get(path, "application/json").await;
        if before != after {
            return Box::pin(self.compare_schemas(path, version)).await;
        }
        assert_eq!((&*new, &*old), (version.media_type(), version.media_type()));
        let document = serde_json::from_slice(&before).unwrap();
        // The server has another order of members, so the order of bytes differs too.
        let sorted = |mut bytes: Vec<u8>| {
            bytes.sort_unstable();
            bytes
        };
        let own = openapi::encode(version, &document);
        assert_eq!(own.len(), protobuf.len(), "{path}");
        assert!(sorted(own) == sorted(protobuf), "{path}: other bytes");
        document
    }

    async fn json(&self, path: &str) -> Value {
        let (code, bytes) = self.call(Method::GET, path, "application/json", Vec::new()).await;
        assert_eq!(code, 200, "{path}");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Reads in both encodings, compares the transcoded objects with each, and returns the number
    /// of items.
    async fn compare(&self, path: &str) -> usize {
        let (_, before) = self.call(Method::GET, path, "application/json", Vec::new()).await;
        let (code, protobuf) = self.call(Method::GET, path, MEDIA_TYPE, Vec::new()).await;
        let (_, after) = self.call(Method::GET, path, "application/json", Vec::new()).await;
        if before != after {
            // The object changed in between. Without a change, both responses have the same state.
            return Box::pin(self.compare(path)).await;
        }
        assert_eq!(code, 200, "{path}");
        let json: Value = serde_json::from_slice(&before).unwrap();
        let own = encode(&before).unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert!(own == protobuf, "{path}\n{}\n{}", text(&own), text(&protobuf));
        let mut decoded = decode(&protobuf, Some(("v1", ""))).unwrap();
        if json.get("apiVersion").is_none() {
            // Discovery omits it in both encodings.
            decoded.as_object_mut().unwrap().remove("apiVersion");
        }
        if json["items"] == json!([]) {
            // Go itself would write null; its server replaces nil lists before it responds.
            assert_eq!(decoded["items"].take(), Value::Null, "{path}");
            decoded["items"] = json!([]);
        }
        assert_eq!(decoded, json, "{path}: other JSON");
        json["items"].as_array().map_or(1, Vec::len)
    }
}

/// Path and kind of every resource that can be listed.
async fn listable(server: &Server) -> Vec<(String, String, String)> {
    let mut versions = vec![("/api/v1".to_owned(), "v1".to_owned())];
    for group in server.json("/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let name = version["groupVersion"].as_str().unwrap();
            versions.push((format!("/apis/{name}"), name.to_owned()));
        }
    }
    let mut all = Vec::new();
    for (path, version) in versions {
        for resource in server.json(&path).await["resources"].as_array().unwrap() {
            // Component statuses are queried one by one and arrive in any order.
            let stored = resource["name"] != "componentstatuses";
            if stored && resource["verbs"].as_array().unwrap().contains(&json!("list")) {
                let (plural, kind) = (&resource["name"], &resource["kind"]);
                let path = format!("{path}/{}", plural.as_str().unwrap());
                all.push((path, version.clone(), kind.as_str().unwrap().to_owned()));
            }
        }
    }
    all
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn samples() -> Vec<(&'static str, Value)> {
    let template = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "containers": [{
                "name": "c", "image": "example.invalid/c:1", "args": ["--x", ""],
                "ports": [{"name": "http", "containerPort": 80}],
                "env": [{"name": "A", "value": "b"},
                        {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "envFrom": [{"configMapRef": {"name": "m", "optional": true}}],
                "resources": {"requests": {"cpu": 1, "memory": "0.5Gi"}, "limits": {"cpu": "1500m"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
                "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
                "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"]}},
            }],
            "volumes": [{"name": "e", "emptyDir": {"sizeLimit": "1Gi"}},
                        {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}}],
            "tolerations": [{"operator": "Exists"}],
        },
    });
    let apps = |kind: &str, more: Value| {
        let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "sample"}, "spec": spec})
    };
    let named = |api_version: &str, kind: &str, more: Value| {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "sample"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    vec![
        (
            "/api/v1/namespaces/default/configmaps",
            named(
                "v1",
                "ConfigMap",
                json!({"data": {"a": "", "b": "ü"}, "binaryData": {"x": "AP8="}}),
            ),
        ),
        (
            "/api/v1/namespaces/default/secrets",
            named("v1", "Secret", json!({"stringData": {"a": "b"}, "immutable": true})),
        ),
        ("/api/v1/namespaces/default/pods", named("v1", "Pod", json!({"spec": template["spec"]}))),
        (
            "/api/v1/namespaces/default/podtemplates",
            named("v1", "PodTemplate", json!({"template": template})),
        ),
        (
            "/api/v1/namespaces/default/services",
            named(
                "v1",
                "Service",
                json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"app": "a"}}}),
            ),
        ),
        (
            "/api/v1/namespaces/default/limitranges",
            named(
                "v1",
                "LimitRange",
                json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]}}),
            ),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            named("v1", "ResourceQuota", json!({"spec": {"hard": {"pods": "10000"}}})),
        ),
        (
            "/api/v1/persistentvolumes",
            named(
                "v1",
                "PersistentVolume",
                json!({"spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
            ),
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            named(
                "v1",
                "PersistentVolumeClaim",
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}),
            ),
        ),
        (
            "/api/v1/nodes",
            named(
                "v1",
                "Node",
                json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4"}, "images": [{"names": ["a"], "sizeBytes": 1}]}}),
            ),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            apps(
                "Deployment",
                json!({"strategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}}),
            ),
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            apps("StatefulSet", json!({"serviceName": "s"})),
        ),
        ("/apis/apps/v1/namespaces/default/daemonsets", apps("DaemonSet", json!({}))),
        (
            "/apis/apps/v1/namespaces/default/controllerrevisions",
            named(
                "apps/v1",
                "ControllerRevision",
                json!({"revision": 3, "data": {"apiVersion": "x/v1", "kind": "Y", "spec": {"b": [1, null], "a": 1.5}}}),
            ),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            named(
                "batch/v1",
                "CronJob",
                json!({"spec": {
            "schedule": "* * * * *", "suspend": true, "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}}}}}),
            ),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            named(
                "networking.k8s.io/v1",
                "Ingress",
                json!({"spec": {"rules": [{"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
            ),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            named(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
            ),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            named(
                "policy/v1",
                "PodDisruptionBudget",
                json!({"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "none"}}}}),
            ),
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            named(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                json!({"spec": {"maxReplicas": 3, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sample"}}}),
            ),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            named(
                "storage.k8s.io/v1",
                "StorageClass",
                json!({"provisioner": "x.example/y", "parameters": {"a": "b"}}),
            ),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            named(
                "coordination.k8s.io/v1",
                "Lease",
                json!({"spec": {"holderIdentity": "h", "renewTime": "2026-01-02T03:04:05.678901Z"}}),
            ),
        ),
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            named(
                "events.k8s.io/v1",
                "Event",
                json!({"eventTime": "2026-01-02T03:04:05.000001Z", "reason": "R", "action": "A", "type": "Normal",
                "reportingController": "c.example/d", "reportingInstance": "i",
                "regarding": {"kind": "Pod", "namespace": "default", "name": "x"}}),
            ),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            named(
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                json!({"webhooks": [{
                "name": "a.example.org", "clientConfig": {"url": "https://a.example"},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"],
                "apiGroups": ["none.example"], "apiVersions": ["*"], "resources": ["*"]}]}]}),
            ),
        ),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "things.example.org"},
                "spec": {"group": "example.org", "scope": "Namespaced",
                    "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                            "list": {"type": "array", "default": [{"a": 1.5}, {}],
                                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                            "map": {"type": "object", "additionalProperties": {"type": "number", "maximum": 1.5}},
                            "any": {"x-kubernetes-int-or-string": true},
                            "choice": {"type": "string", "enum": ["a", ""], "default": "a"},
                            "date": {"type": "string", "nullable": true, "enum": ["2026-01-02", "yes", "1.5", null],
                                "description": "Two\n  lines: # of \"text\" 😀", "externalDocs": {"url": "https://a.example"}},
                            "parts": {"type": "array", "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["name", "no"],
                                "items": {"type": "object", "required": ["name", "no"], "properties": {
                                    "name": {"type": "string", "maxLength": 9}, "no": {"type": "integer", "minimum": -1}}}},
                            "rules": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                                "properties": {"a": {"type": "string"}, "b": {"type": "boolean", "default": false}},
                                "x-kubernetes-validations": [{"message": "no: # 'way'",
                                    "rule": "!has(self.a) ||\n  self.a != 'b' // \"never\"\n"}]},
                        }}}}]},
            }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_a_real_server_lists_is_equal_in_both_encodings() {
    let cluster = tokio::task::spawn_blocking(|| RealCluster::start().unwrap()).await.unwrap();
    let server = Server::of(&cluster).await;
    for (path, object) in samples() {
        // Sent in protobuf, read in JSON: the server accepts the encoder's bytes.
        let form = MEDIA_TYPE;
        let body = encode(object.to_string().as_bytes()).unwrap();
        let (code, answer) = server.call(Method::POST, path, form, body).await;
        let answer = decode(&answer, None).unwrap();
        assert_eq!(StatusCode::from_u16(code).unwrap(), StatusCode::CREATED, "{path}: {answer}");
        let name = object["metadata"]["name"].as_str().unwrap();
        server.compare(&format!("{path}/{name}")).await;
    }
    let (mut kinds, mut items) = (0, 0);
    for (path, api_version, kind) in listable(&server).await {
        if !kubernetes_protobuf::is_known(&api_version, &kind) {
            assert!(
                !api_version.ends_with("/v1") || api_version == "example.org/v1",
                "{api_version} {kind}"
            );
            continue;
        }
        kinds += 1;
        items += server.compare(&path).await;
    }
    assert!(kinds > 50 && items > 200, "{kinds} kinds, {items} items");
    println!("{kinds} kinds, {items} items");
    statuses(&server).await;
    schemas(&server).await;
}

/// The documents about types, including those of the sample definition.
async fn schemas(server: &Server) {
    let start = std::time::Instant::now();
    let mut paths = Vec::new();
    while !paths.contains(&"/openapi/v3/apis/example.org/v1".to_owned()) {
        // The server publishes definitions asynchronously.
        assert!(start.elapsed() < SCHEMAS_PATIENCE, "{paths:?}");
        let (_, index) = server.get("/openapi/v3", "application/json").await;
        let index: Value = serde_json::from_slice(&index).unwrap();
        let known = index["paths"].as_object().unwrap().keys();
        paths = known.map(|path| format!("/openapi/v3/{path}")).collect();
    }
    for path in &paths {
        server.compare_schemas(path, OpenApiVersion::V3).await;
    }
    let whole = server.compare_schemas("/openapi/v2", OpenApiVersion::V2).await;
    let definitions = whole["definitions"].as_object().unwrap().len();
    assert!(paths.len() > 30 && definitions > 300, "{} paths, {definitions}", paths.len());
    println!("{} documents, {definitions} definitions", paths.len() + 1);
}

/// Refusals, options of deletes, and subresources have both encodings too.
async fn statuses(server: &Server) {
    server.compare("/apis/apps/v1/namespaces/default/deployments/sample/scale").await;
    for path in ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
        server.compare(path).await;
    }
    let missing = "/api/v1/namespaces/default/pods/missing";
    let (code, json) = server.call(Method::GET, missing, "application/json", Vec::new()).await;
    let (_, protobuf) = server.call(Method::GET, missing, MEDIA_TYPE, Vec::new()).await;
    assert_eq!(code, 404);
    assert_eq!(encode(&json).unwrap(), protobuf);
    assert_eq!(decode(&protobuf, None).unwrap(), serde_json::from_slice::<Value>(&json).unwrap());
    let options = json!({"propagationPolicy": "Background", "preconditions": {"uid": "no"}});
    let body = encode_as("v1", "DeleteOptions", options.to_string().as_bytes()).unwrap();
    let path = "/api/v1/namespaces/default/configmaps/sample";
    let (code, answer) = server.call(Method::DELETE, path, MEDIA_TYPE, body).await;
    assert_eq!((code, &decode(&answer, None).unwrap()["reason"]), (409, &json!("Conflict")));
}
