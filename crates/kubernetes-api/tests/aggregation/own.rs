//! This API server, in the process and behind TLS for programs.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use apiserver::aggregation::FrontProxy;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::service_accounts::SigningKey;
use apiserver::{UserInfo, serve};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kubernetes_api::assembly::{Assembly, Profile, Running};
use pki::{CertificateAuthority, CertificateFiles, ClientCertificatePolicy, ServingCertificate};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use testbed::{Binaries, Program};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub struct Own {
    running: Running,
    pub address: std::net::SocketAddr,
    pub ca_pem: String,
    folder: tempfile::TempDir,
    _end: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

fn admin() -> UserInfo {
    UserInfo::new("admin", &[GROUP_MASTERS, "system:authenticated"])
}

impl Own {
    /// Every client over TLS is the administrator.
    pub async fn start(front_proxy: Option<FrontProxy>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = EmbeddedConfig::default();
        let storage = EmbeddedStorage::open(&folder.path().join("storage"), config).unwrap();
        let running = Assembly {
            front_proxy,
            root_ca_pem: "CA".to_owned(),
            ..Assembly::new(storage, Profile::Full, SigningKey::generate_pem())
        };
        let running = running.start().await.unwrap();
        let now = SystemTime::now();
        let authority = CertificateAuthority::generate("test", now).unwrap();
        let files = CertificateFiles::in_directory(folder.path(), "serving");
        pki::files::ensure_serving(&files, &authority, "test", &[], now).unwrap();
        let certificate = ServingCertificate::load(files).unwrap();
        let tls = pki::server_config(certificate, &ClientCertificatePolicy::None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = watch::channel(false);
        let server = running.server.clone();
        let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(admin());
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (_keep, tls) = watch::channel(Arc::new(tls));
            serve::serve(listener, tls, service, ended).await;
        });
        let ca_pem = authority.certificate_pem().to_owned();
        Self { running, address, ca_pem, folder, _end: end, _tasks: tasks }
    }

    /// The code and body of a response; text when it is no JSON.
    pub async fn send(
        &self,
        user: UserInfo,
        method: &str,
        path: &str,
        accept: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("accept", accept)
            .body(Full::new(bytes))
            .unwrap();
        request.extensions_mut().insert(user);
        let (parts, body) = self.running.server.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        (parts.status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
    }

    pub async fn send_admin(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send(admin(), method, path, "application/json", body).await
    }

    /// Aggregated discovery of all named groups.
    pub async fn aggregated(&self) -> Value {
        let accept = apiserver::body::negotiate::AGGREGATED_MEDIA_TYPE;
        self.send(admin(), "GET", "/apis", accept, &Value::Null).await.1
    }

    /// Changes the Service of the other server, so that its availability is checked again.
    pub async fn touch_service(&self) {
        let path = "/api/v1/namespaces/default/services/away";
        let mut service = self.get(path).await;
        let now = jiff::Timestamp::now().to_string();
        service["metadata"]["annotations"]["touched"] = now.into();
        self.make("PUT", path, service).await;
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(admin(), "GET", path, "application/json", &Value::Null).await.1
    }

    /// Sends a request that must succeed.
    pub async fn make(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, response) = self.send(admin(), method, path, "application/json", &body).await;
        assert!(code.is_success(), "{method} {path}: {code} {response}");
        response
    }

    /// A kubeconfig for programs.
    pub fn kubeconfig(&self) -> PathBuf {
        let file = self.folder.path().join("kubeconfig");
        let ca = self.folder.path().join("ca.pem");
        std::fs::write(&ca, &self.ca_pem).unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "own",
            "clusters": [{"name": "own", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority": ca}}],
            "users": [{"name": "own", "user": {"token": "unused"}}],
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        });
        std::fs::write(&file, config.to_string()).unwrap();
        file
    }

    /// The output of an unmodified kubectl, successful or not.
    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(Binaries::locate().path(Program::Kubectl).unwrap());
        command
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.folder.path());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    }
}
