//! The real server: raw requests, and the schemas that it publishes.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use structured_merge::Schema;
use testbed::{Program, RealCluster};

use super::bodies::TestKind;
use super::wait;

/// A definition is served some 0.1 s after it is created, and published some 0.5 s later.
const PUBLISH_ATTEMPTS: usize = 100;
const PUBLISH_INTERVAL: Duration = Duration::from_millis(200);

pub struct Server {
    client: Client,
    _cluster: RealCluster,
}

pub struct ServerResponse {
    pub code: u16,
    pub text: String,
    pub body: Value,
}

impl Server {
    pub async fn start() -> Self {
        let mut cluster = tokio::task::spawn_blocking(|| {
            RealCluster::start().unwrap_or_else(|error| panic!("{error}"))
        })
        .await
        .unwrap();
        // Its controllers would write to the test's objects too.
        cluster.crash(Program::KubeControllerManager);
        let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Self { client: Client::try_from(config).unwrap(), _cluster: cluster }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> ServerResponse {
        let body = if method == Method::GET { Vec::new() } else { body.to_string().into() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("accept", "application/json")
            .body(Body::from(body))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| text.clone().into());
        ServerResponse { code, text, body }
    }

    async fn get(&self, path: &str) -> ServerResponse {
        self.send(Method::GET, path, "application/json", &Value::Null).await
    }

    pub async fn define(&self, definition: Value) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let response = self.send(Method::POST, path, "application/json", &definition).await;
        assert_eq!(response.code, 201, "{}", response.text);
    }

    /// The schema of a kind as the server publishes it. Waits until it is published.
    pub async fn schema(&self, kind: &TestKind) -> Schema {
        let (group, version) = api_meta::object::group_version(kind.api_version);
        let path = match group {
            "" => format!("/openapi/v3/api/{version}"),
            group => format!("/openapi/v3/apis/{group}/{version}"),
        };
        for _ in 0..PUBLISH_ATTEMPTS {
            let document = self.get(&path).await.body;
            let models = document["components"]["schemas"].as_object();
            let found = models.and_then(|models| {
                let is_kind = |model: &Value| {
                    let gvks = model["x-kubernetes-group-version-kind"].as_array();
                    gvks.into_iter().flatten().any(|gvk| {
                        gvk["group"] == group
                            && gvk["version"] == version
                            && gvk["kind"] == kind.kind
                    })
                };
                let name = models.iter().find(|(_, model)| is_kind(model))?.0;
                Some(Schema::from_openapi(models, name).unwrap())
            });
            if let Some(schema) = found {
                return schema;
            }
            wait::pause(PUBLISH_INTERVAL).await;
        }
        panic!("the server does not publish {} {}", kind.api_version, kind.kind);
    }
}
