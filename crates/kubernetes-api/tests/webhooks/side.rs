//! An API server for the same requests: this one, or a real one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use apiserver::attributes::GROUP_MASTERS;
use apiserver::audit::AuditFlags;
use apiserver::built_in_plugins::{BuiltInPlugins, Switchable};
use apiserver::service_accounts::SigningKey;
use apiserver::{ApiServer, UserInfo};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubernetes_api::assembly::{Assembly, Profile, Running};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::{Expect, Storage};
use testbed::{Program, RealCluster};

use super::hook_server::HookServer;
use super::wait;

pub const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Replaces the code when a server disconnects without a response.
pub const NO_ANSWER: u16 = 0;

pub struct Side {
    /// First segment of the webhook paths of this server.
    pub name: &'static str,
    server: Server,
}

enum Server {
    Own { server: ApiServer, _running: Box<Running>, folder: tempfile::TempDir },
    Real { client: Client, cluster: Box<Mutex<RealCluster>> },
}

#[derive(Clone, Debug)]
pub struct TestResponse {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

fn audit_log(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("audit.log")
}

impl TestResponse {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Side {
    pub async fn own() -> Self {
        Self::own_with(&[]).await
    }

    /// With objects that were in its storage before, by their keys.
    pub async fn own_with(stored: &[(&str, Value)]) -> Self {
        Self::own_of(stored, BuiltInPlugins::default()).await
    }

    /// With the plugin that requires rights to name an owner.
    pub async fn own_guarded() -> Self {
        let guarded =
            BuiltInPlugins::default().with(Switchable::OwnerReferencesPermissionEnforcement);
        Self::own_of(&[], guarded).await
    }

    async fn own_of(stored: &[(&str, Value)], built_in_plugins: BuiltInPlugins) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        for (key, object) in stored {
            let bytes = object.to_string().into();
            storage.put(key, bytes, Expect::Absent, None).await.unwrap();
        }
        let audit = AuditFlags { log_path: Some(audit_log(&folder)), ..AuditFlags::default() };
        let running = Assembly {
            root_ca_pem: "CA".to_owned(),
            audit: audit.resolve().unwrap(),
            built_in_plugins,
            ..Assembly::new(storage, Profile::Full, SigningKey::generate_pem())
        };
        let running = Box::new(running.start().await.unwrap());
        let server = running.server.clone();
        let server = Server::Own { server, _running: running, folder };
        Self { name: "own", server }
    }

    pub async fn real() -> Self {
        let cluster = tokio::task::spawn_blocking(|| {
            let mut cluster = RealCluster::start().unwrap_or_else(|error| panic!("{error}"));
            // Its controllers would call the test's webhooks too.
            cluster.crash(Program::KubeControllerManager);
            cluster.crash(Program::KubeScheduler);
            cluster
        })
        .await
        .unwrap();
        let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let server = Server::Real { client, cluster: Box::new(Mutex::new(cluster)) };
        Self { name: "real", server }
    }

    /// The annotations in this server's audit log for the request with this `Audit-Id`.
    pub async fn audited(&self, id: &str) -> BTreeMap<String, String> {
        let Server::Own { folder, .. } = &self.server else { return BTreeMap::new() };
        let mut found = None;
        wait::until("the request is recorded", async || {
            let lines = std::fs::read_to_string(audit_log(folder)).unwrap();
            // A line that is being written has no end yet.
            let whole = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
            let mut events = whole.filter(|event: &Value| event["stage"] == "ResponseComplete");
            found = events.find(|event| event["auditID"] == id);
            found.is_some()
        })
        .await;
        serde_json::from_value(found.unwrap()["annotations"].take()).unwrap()
    }

    /// Starts the controllers of the real server. This server has them inside.
    pub fn start_controllers(&self) {
        if let Server::Real { cluster, .. } = &self.server {
            let mut cluster = cluster.lock().unwrap();
            tokio::task::block_in_place(|| cluster.revive(Program::KubeControllerManager)).unwrap();
        }
    }

    pub async fn send(&self, method: &str, path: &str, body: Value) -> TestResponse {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.send_with(method, path, body, &[("content-type", media)]).await
    }

    /// As `user`, who has no groups.
    pub async fn send_as(&self, user: &str, method: &str, path: &str, body: Value) -> TestResponse {
        let headers = [("content-type", "application/json"), ("impersonate-user", user)];
        self.send_with(method, path, body, &headers).await
    }

    pub async fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> TestResponse {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers.iter().chain(&[("accept", "application/json")]) {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::from(bytes)).unwrap();
        let (parts, bytes) = match &self.server {
            Server::Own { server, .. } => {
                let admin = UserInfo::new("admin", &[GROUP_MASTERS, "system:authenticated"]);
                request.extensions_mut().insert(admin);
                let (parts, body) = server.handle(request).await.into_parts();
                (parts, body.collect().await.unwrap().to_bytes())
            }
            Server::Real { client, .. } => {
                let Ok(response) = client.send(request).await else {
                    return TestResponse {
                        code: NO_ANSWER,
                        body: Value::Null,
                        warnings: Vec::new(),
                    };
                };
                let (parts, body) = response.into_parts();
                (parts, body.collect().await.unwrap().to_bytes())
            }
        };
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        let warnings = parts.headers.get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        TestResponse { code: parts.status.as_u16(), body, warnings }
    }

    /// Sends a request that must succeed.
    pub async fn make(&self, method: &str, path: &str, body: Value) -> Value {
        let response = self.send(method, path, body).await;
        assert!(response.code < 300, "{} {method} {path}: {}", self.name, response.body);
        response.body
    }

    /// A `clientConfig` for this server.
    pub fn client(&self, hooks: &HookServer, behaviour: &str) -> Value {
        hooks.client(&format!("/{}/{behaviour}", self.name))
    }

    /// Creates a configuration and waits until it is effective. `kind` is `Mutating` or
    /// `Validating`.
    pub async fn configure(
        &self,
        hooks: &HookServer,
        kind: &str,
        name: &str,
        mut webhooks: Vec<Value>,
    ) {
        let mut marker = webhook("marker.ready.example", self.client(hooks, "deny"), "Fail");
        marker["objectSelector"] = json!({"matchLabels": {"marker": format!("{kind}-{name}")}});
        webhooks.push(marker);
        let configuration = configuration(kind, name, webhooks);
        self.make("POST", &configurations(kind), configuration).await;
        wait::until("the configuration is in effect", async || self.is_marked(kind, name).await)
            .await;
    }

    pub async fn deconfigure(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}", configurations(kind));
        self.make("DELETE", &path, Value::Null).await;
        wait::until("the configuration is deleted", async || !self.is_marked(kind, name).await)
            .await;
    }

    async fn is_marked(&self, kind: &str, name: &str) -> bool {
        let marker = format!("{kind}-{name}");
        let map = json!({"metadata": {"name": "marker", "labels": {"marker": marker}}});
        self.send("POST", &format!("{MAPS}?dryRun=All"), map).await.code == 400
    }
}

/// Path of the configurations of a kind.
pub fn configurations(kind: &str) -> String {
    format!("{CONFIGURATIONS}/{}webhookconfigurations", kind.to_lowercase())
}

pub fn configuration(kind: &str, name: &str, webhooks: Vec<Value>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name},
        "webhooks": webhooks,
    })
}

/// A webhook for all writes of ConfigMaps.
pub fn webhook(name: &str, client: Value, policy: &str) -> Value {
    json!({
        "name": name, "clientConfig": client, "failurePolicy": policy,
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
    })
}

/// Like [`webhook`], only for objects whose label `case` has this value.
pub fn case(case: &str, client: Value, policy: &str) -> Value {
    let mut webhook = webhook(&format!("{case}.case.example"), client, policy);
    webhook["objectSelector"] = json!({"matchLabels": {"case": case}});
    webhook
}

/// A ConfigMap for a case.
pub fn map(name: &str, case: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"case": case}}, "data": {"key": "value"}})
}
