//! Both servers, shared by the tests that run at the same time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use apiserver::authentication::StaticTokens;
use apiserver::service_accounts::SigningKey;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubernetes_api::assembly::{Assembly, Profile, Running};
use pki::{CertificateFiles, ClientCertificatePolicy, ServingCertificate};
use serde_json::json;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use testbed::RealCluster;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::side::Side;

const TOKEN: &str = "t-admin";

pub struct World {
    pub real: Side,
    pub drover: Side,
    /// The storage of this server.
    pub storage: Arc<EmbeddedStorage>,
    _running: Running,
    _end: watch::Sender<bool>,
    _folder: tempfile::TempDir,
    _cluster: RealCluster,
}

/// A definition whose objects may have any fields in their `spec`. The plural is the kind's, with
/// an `s`.
pub fn loose_definition(group: &str, kind: &str) -> serde_json::Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

/// Runs the steps of a test against both servers.
pub fn run(test: impl AsyncFnOnce(&World)) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    static WORLD: Mutex<Weak<World>> = Mutex::new(Weak::new());
    let runtime = RUNTIME.get_or_init(|| Runtime::new().unwrap());
    let world = {
        let mut held = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
        held.upgrade().unwrap_or_else(|| {
            let cluster = RealCluster::start().unwrap_or_else(|error| panic!("{error}"));
            let world = Arc::new(runtime.block_on(World::start(cluster)));
            *held = Arc::downgrade(&world);
            world
        })
    };
    runtime.block_on(test(&world));
}

impl World {
    async fn start(cluster: RealCluster) -> Self {
        let real = real(&cluster).await;
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let people = format!("{TOKEN},admin,1,system:masters");
        let running = Assembly {
            tokens: vec![Arc::new(StaticTokens::parse(&people).unwrap())],
            root_ca_pem: "CA".to_owned(),
            ..Assembly::new(storage.clone(), Profile::Full, SigningKey::generate_pem())
        };
        let running = running.start().await.unwrap();

        let now = SystemTime::now();
        let authority = CertificateFiles::in_directory(folder.path(), "ca");
        let authority = pki::files::ensure_authority(&authority, "test", now).unwrap();
        let files = CertificateFiles::in_directory(folder.path(), "serving");
        let names = ["127.0.0.1".to_owned()];
        pki::files::ensure_serving(&files, &authority, "test", &names, now).unwrap();
        let ca_pem = std::fs::read_to_string(folder.path().join("ca.pem")).unwrap();
        let certificate = ServingCertificate::load(files).unwrap();
        let tls = pki::server_config(certificate, &ClientCertificatePolicy::None).unwrap();
        let (keep, tls) = watch::channel(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let server = running.server.clone();
        let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        let (end, ended) = watch::channel(false);
        tokio::spawn(async move {
            apiserver::serve::serve(listener, tls, service, ended).await;
            drop(keep);
        });
        let drover = Side::new("drover", authority, &ca_pem, TOKEN.to_owned());
        Self {
            real,
            drover,
            storage,
            _running: running,
            _end: end,
            _folder: folder,
            _cluster: cluster,
        }
    }

    pub fn sides(&self) -> [&Side; 2] {
        [&self.real, &self.drover]
    }
}

/// The real server, with the token of a user who has all rights.
async fn real(cluster: &RealCluster) -> Side {
    let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let binding = json!({
        "metadata": {"name": "test-admin"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "default"}],
    });
    let post = |path: &str, body: &serde_json::Value| {
        let request = Request::post(path).header("content-type", "application/json");
        client.request::<serde_json::Value>(request.body(body.to_string().into_bytes()).unwrap())
    };
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    post(bindings, &binding).await.unwrap();
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let response = post(token, &json!({"spec": {"audiences": []}})).await.unwrap();
    let token = response["status"]["token"].as_str().unwrap().to_owned();
    let authority = cluster.server_url().trim_start_matches("https://").to_owned();
    Side::new("kube-apiserver", authority, cluster.ca_pem(), token)
}
