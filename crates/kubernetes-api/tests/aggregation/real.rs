//! A real kube-apiserver: as the aggregated server, and as an aggregator to compare with.

use std::path::PathBuf;

use apiserver::aggregation::FrontProxy;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use testbed::{Program, RealCluster};

pub struct Real {
    client: Client,
    cluster: RealCluster,
}

impl Real {
    pub async fn start() -> Self {
        let start = || {
            let mut cluster = RealCluster::start().unwrap_or_else(|error| panic!("{error}"));
            cluster.crash(Program::KubeControllerManager);
            cluster.crash(Program::KubeScheduler);
            cluster
        };
        let cluster = tokio::task::spawn_blocking(start).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        // 503 is a valid response.
        config.default_retry = false;
        Self { client: Client::try_from(config).unwrap(), cluster }
    }

    /// The identity that it trusts.
    pub fn front_proxy(&self) -> FrontProxy {
        let read = |name: &str| {
            std::fs::read_to_string(self.cluster.folder().join("pki").join(name)).unwrap().into()
        };
        FrontProxy {
            authority_pem: read("front-proxy-ca.pem"),
            certificate_pem: read("front-proxy.pem"),
            key_pem: read("front-proxy.key"),
        }
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig_path()
    }

    pub fn port(&self) -> u16 {
        self.cluster.server_url().rsplit(':').next().unwrap().parse().unwrap()
    }

    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(bytes))
            .unwrap();
        let (parts, body) = self.client.send(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
    }

    /// Ends the API server as a crash would.
    pub async fn end(self) -> Self {
        self.with_cluster(|cluster| cluster.crash(Program::KubeApiserver)).await
    }

    /// Starts it again, with the same data at the same port.
    pub async fn revive(self) -> Self {
        let revive = |cluster: &mut RealCluster| cluster.revive(Program::KubeApiserver).unwrap();
        self.with_cluster(revive).await
    }

    async fn with_cluster(self, work: impl FnOnce(&mut RealCluster) + Send + 'static) -> Self {
        let Self { client, mut cluster } = self;
        let work = move || {
            work(&mut cluster);
            cluster
        };
        let cluster = tokio::task::spawn_blocking(work).await.unwrap();
        Self { client, cluster }
    }
}
