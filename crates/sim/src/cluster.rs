//! One simulated cluster: storage, API server, listener, simulation.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use apiserver::ApiServer;
use apiserver::aggregation::FrontProxy;
use apiserver::audit::AuditFlags;
use apiserver::built_in_plugins::BuiltInPlugins;
use apiserver::service_accounts::SigningKey;
use kubernetes_api::assembly::{Assembly, Controllers, Profile, Running};
use kubernetes_api::controllers;
use kubernetes_api::service_range::ServiceRange;
use pki::{ClientCertificatePolicy, ServingCertificate};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::access::{self, AdminToken};
use crate::agent::{AgentCommand, pods_folder};
use crate::authentication::Authentication;
use crate::kubelet::PodConnector;
use crate::simulation::{self, Setting};

/// Storage of a simulated cluster: there may be hundreds in one process, and none is large.
const CACHE_WRITER: usize = 256 * 1024;
const CACHE_READER: usize = 64 * 1024;
const HISTORY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Settings of one simulated cluster.
pub struct ClusterConfig {
    pub index: u32,
    pub folder: PathBuf,
    pub listen: SocketAddr,
    pub nodes: u32,
    pub pods: u32,
    /// How many of the newest revisions are retained; the storage's own limits when absent.
    pub history_revisions: Option<u64>,
    pub controllers: Controllers,
    pub ca_pem: String,
    pub certificate: Arc<ServingCertificate>,
    pub authentication: Authentication,
    pub agent: AgentCommand,
    pub front_proxy: FrontProxy,
    pub audit: AuditFlags,
    pub built_in_plugins: BuiltInPlugins,
    pub service_range: ServiceRange,
}

impl ClusterConfig {
    /// The cluster's own folder.
    pub fn own_folder(&self) -> PathBuf {
        self.folder.join("clusters").join(self.index.to_string())
    }
}

/// A running cluster.
pub struct SimulatedCluster {
    address: SocketAddr,
    kubeconfig: String,
    running: Running,
    storage: Arc<EmbeddedStorage>,
    end: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl SimulatedCluster {
    /// Starts the cluster. When it returns, the API responds, the nodes exist, and the kubeconfig
    /// is written.
    ///
    /// # Errors
    /// Storage, address or files cannot be used.
    pub async fn start(config: ClusterConfig) -> anyhow::Result<Self> {
        let own = config.own_folder();
        std::fs::create_dir_all(&own)
            .with_context(|| format!("cannot create the folder \"{}\"", own.display()))?;
        let storage = EmbeddedStorage::open(&own, storage_config(config.history_revisions))?;
        let token = AdminToken::ensure(&own.join("admin.token"))?;
        let key_file = own.join("service-account-key.pem");
        if !key_file.exists() {
            let key = SigningKey::generate_pem();
            access::write(&key_file, &key)?;
        }
        let running = Assembly {
            controllers: config.controllers,
            version_suffix: "+drover.sim".to_owned(),
            tokens: vec![Arc::new(token.authenticator())],
            client_authorities_pem: config.authentication.client_authorities_pem.clone(),
            bootstrap_tokens: config.authentication.bootstrap_tokens,
            tokens_outside: config.authentication.outside.clone(),
            front_proxy: Some(config.front_proxy.clone()),
            root_ca_pem: config.ca_pem.clone(),
            pods: Some(Arc::new(PodConnector::new(pods_folder(&own)))),
            built_in_plugins: config.built_in_plugins,
            service_range: config.service_range,
            audit: config.audit.resolve().map_err(anyhow::Error::msg)?,
            ..Assembly::new(storage.clone(), Profile::Full, std::fs::read_to_string(&key_file)?)
        }
        .start()
        .await?;

        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!(
                "cannot listen on {}: choose another --listen, or stop the program that uses it",
                config.listen
            )
        })?;
        let address = listener.local_addr()?;
        let (end, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        controllers::advertise(running.server.registry(), address).await?;
        let tls = tls(&config)?;
        serve(&running.server, listener, tls, ended.clone(), &mut tasks);
        let setting = Setting {
            nodes: config.nodes,
            pods: config.pods,
            controllers: config.controllers,
            address,
            folder: own.clone(),
            agent: config.agent.clone(),
        };
        simulation::start(&running.server, setting, ended, &mut tasks).await?;
        running.server.set_ready(true);

        let kubeconfig = write_kubeconfigs(&config, &own, address, &token)?;
        Ok(Self { address, kubeconfig, running, storage, end, tasks })
    }

    /// URL of the API server.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    /// The API server, for requests in process.
    pub fn server(&self) -> &ApiServer {
        &self.running.server
    }

    /// Stops the child processes, lets open requests finish for a short time, and closes the
    /// storage.
    pub async fn stop(mut self) {
        self.running.server.begin_stop();
        self.running.server.end_watches();
        self.end.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        drop(self.running);
        let storage = self.storage;
        // A cluster in the same folder may follow.
        let closed = tokio::task::spawn_blocking(move || storage.close()).await;
        closed.unwrap_or_else(|error| tracing::error!(%error, "the storage was not closed"));
    }
}

/// Writes `DIR/admin.kubeconfig` for the first cluster, `DIR/admin-N.kubeconfig` for the others,
/// and `DIR/clusters/N/admin.kubeconfig` for all. Returns the text.
fn write_kubeconfigs(
    config: &ClusterConfig,
    own: &std::path::Path,
    address: SocketAddr,
    token: &AdminToken,
) -> anyhow::Result<String> {
    let (name, url) = (format!("sim-{}", config.index), format!("https://{address}"));
    let text = access::kubeconfig(&name, &url, &config.ca_pem, token.expose());
    access::write(&own.join("admin.kubeconfig"), &text)?;
    let index = usize::try_from(config.index)?;
    access::write(&config.folder.join(access::shared_file(index)), &text)?;
    Ok(text)
}

fn storage_config(history_revisions: Option<u64>) -> EmbeddedConfig {
    let usual = EmbeddedConfig::default();
    EmbeddedConfig {
        readers: 2,
        cache_bytes_writer: CACHE_WRITER,
        cache_bytes_reader: CACHE_READER,
        history_bytes_max: HISTORY_BYTES_MAX,
        history_revisions_min: history_revisions.unwrap_or(usual.history_revisions_min),
        history_revisions_max: history_revisions.unwrap_or(usual.history_revisions_max),
        ..usual
    }
}

fn tls(config: &ClusterConfig) -> anyhow::Result<rustls::ServerConfig> {
    let clients = match config.authentication.client_authorities_pem {
        // The server decides which certificates are trusted. Others get 401, like from
        // kube-apiserver.
        Some(_) => ClientCertificatePolicy::Requested,
        None => ClientCertificatePolicy::None,
    };
    Ok(pki::server_config(config.certificate.clone(), &clients)?)
}

fn serve(
    server: &ApiServer,
    listener: TcpListener,
    tls: rustls::ServerConfig,
    ended: watch::Receiver<bool>,
    tasks: &mut JoinSet<()>,
) {
    let (keep, tls) = watch::channel(Arc::new(tls));
    let server = server.clone();
    let service = tower::service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    tasks.spawn(async move {
        apiserver::serve::serve(listener, tls, service, ended).await;
        drop(keep);
    });
}
