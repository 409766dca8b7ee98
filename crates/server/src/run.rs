//! The order in which the server comes up and goes down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use api_management::{Cluster, Token};
use apiserver::metrics::external::{self, ExternalCounter};
use apiserver::{ApiServer, Registry, rejections};
use cluster_access::ClusterAccess;
use cluster_access::proxy::Proxy;
use controller::ManagementScope;
use controller::error::is_code;
use driver_host::{Confinement, egress};
use feature_access::RoleGraph;
use feature_clusters::{AgentRegistrar, Connections, IndexReader, TunnelClients};
use feature_identity::{Directory, TokenRequest};
use feature_kit::{Clients, ControllerIdentity, Feature, ManagementContext};
use feature_provisioning::kontainer_driver::built_in::BuiltInDriver;
use feature_provisioning::kontainer_driver::files::DriverSettings;
use feature_settings::SettingsConfig;
use kind_view::{KindIndexes, KindView};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use kubernetes_api::assembly::{Assembly, Profile, Running};
use pki::ClientCertificatePolicy;
use storage::Storage;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tunnel::Sessions;

use crate::admission;
use crate::audit_view::AuditView;
use crate::authentication::Authentication;
use crate::bodies::Anonymous;
use crate::certificate::{Serving, Trust};
use crate::clients::InProcess;
use crate::door::Door;
use crate::features::{FeatureParts, features};
use crate::files::{DataFolder, Keys};
use crate::journal::Caches;
use crate::peer::TrustedProxies;
use crate::router::{Outbound, Parts, Router};
use crate::security_headers::SecurityHeaders;
use crate::settings::{DriverConfinement, ServerSettings};
use crate::store::Store;
use feature_identity::cluster_identity::ClusterIdentities;
use feature_identity::revocation::Revocations;

/// The version that clients of the management API get; see `docs/adr/0004-answer-as-2-6.md`.
const SERVER_VERSION: &str = "v2.6.9";

/// A server that is up. It goes down when [`Server::stop`] is awaited.
pub struct Server {
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// The administrator's password, when this start made it.
    pub password: Option<String>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    running: Running,
    storage: Store,
    shutdown_delay: Duration,
}

/// Runs until `shutdown`, with what the operator needs to know on standard error.
pub async fn run(settings: ServerSettings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let begun = Instant::now();
    crate::files::raise_open_max();
    let server = Server::start(settings).await?;
    let took = begun.elapsed();
    eprintln!("drover serves {} (ready in {} ms)", server.url, took.as_millis());
    if let Some(password) = &server.password {
        eprintln!("user: admin\npassword (shown only this once): {password}");
    }
    shutdown.cancelled().await;
    tracing::info!("stopping");
    server.stop().await;
    Ok(())
}

impl Server {
    /// Ready to serve when it returns.
    pub async fn start(settings: ServerSettings) -> anyhow::Result<Self> {
        let folder = DataFolder::open(&settings.data_dir)?;
        let listener = listen(settings.listen).await?;
        let address = listener.local_addr().context("cannot read the listener's address")?;
        let url = match settings.server_url.as_str() {
            "" => local_url(address),
            given => given.to_owned(),
        };
        let keys = Arc::new(folder.keys(&certificate_names(&settings.server_url, address))?);
        let serving = Arc::new(Serving::load(&settings.tls, &keys, SystemTime::now())?);
        let trust = serving.trust.clone();
        folder.write_authority(trust.pem())?;
        let key_file = settings.encryption_key_file.as_deref();
        let (storage, encrypted) =
            Store::open_to_serve(&settings.storage, key_file, &folder).await?;
        let running = management_api(encrypted.clone(), &keys, &trust, &settings).await?;
        let clients = InProcess(running.server.clone());
        let settings_config = SettingsConfig {
            server_url: url.clone(),
            ca_certs: trust.pem().trim_end().to_owned(),
            server_version: SERVER_VERSION.to_owned(),
            agent_image: settings.agent_image.clone(),
            install_uuid: folder.install_id()?,
            env: feature_settings::from_env(std::env::vars()),
        };
        let drivers = drivers(&folder, &settings.drivers);
        let plane = Plane::build(&clients, settings_config, drivers);
        plane.begin(&clients, running.server.registry()).await?;
        let given = settings.bootstrap_password.clone().map(identity::Secret::new);
        let admin = feature_identity::bootstrap(&clients.server(), given)
            .await
            .context("cannot make the administrator")?;
        plane.context.settings.synced().await;
        plane.directory.synced().await;

        let mut tasks = JoinSet::new();
        let tls = serve_certificate(&serving, &mut tasks)?;
        serving.warn(&url, SystemTime::now());
        let (end, ended) = watch::channel(false);
        let proxies = TrustedProxies::parse(&settings.trusted_proxies)
            .map_err(|entry| anyhow::anyhow!("\"{entry}\" is no trusted proxy's address"))?;
        let trusted = proxies.clone();
        let router = plane.router(&running.server, &serving, proxies);
        tasks.spawn(apiserver::serve::serve_behind::<_, Outbound>(
            Arc::new(move |address| trusted.contains(address)),
            listener,
            tls,
            router.clone(),
            ended,
        ));
        let token = renew_administrator_token(&folder, &plane.directory, &clients.server()).await?;
        folder.write_kubeconfig(&url, trust.pem(), &token)?;
        running.server.set_ready(true);
        let stop = plane.context.scope.stop.clone();
        let stopped = stop.clone();
        tasks.spawn(async move {
            stopped.cancelled().await;
            end.send_replace(true);
            router.closed().await;
        });
        let Plane { features, context, revocations, .. } = plane;
        tasks.spawn(revocations.watch(stop.clone()));
        tasks.spawn(crate::door::summarize(running.server.audit().cloned(), stop.clone()));
        tasks.spawn(crate::encryption::rewrite(encrypted, stop.clone()));
        tasks.spawn(async move { feature_kit::runtime::run(&features, context).await });
        folder.announce(&url)?;
        admin.confirm().await.context("cannot note that the administrator was made")?;
        let password = admin.generated.map(|password| password.expose().to_owned());
        let shutdown_delay = settings.shutdown_delay_duration;
        Ok(Self { url, address, password, stop, tasks, running, storage, shutdown_delay })
    }

    /// Says that it is not ready, waits for the configured delay, stops accepting, lets open
    /// requests finish, ends watches and controllers, closes the storage.
    pub async fn stop(mut self) {
        self.running.server.begin_stop();
        tokio::time::sleep(self.shutdown_delay).await;
        self.running.server.end_watches();
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        drop(self.running);
        self.storage.close();
    }
}

fn drivers(folder: &DataFolder, settings: &DriverConfinement) -> DriverSettings {
    DriverSettings {
        folder: folder.drivers(),
        confinement: Confinement::by_this_program(settings.exceptions.as_slice()),
        built_in: built_in_drivers(),
        allow_unconfined: settings.allow_unconfined_drivers,
        call_time_max: settings.driver_call_time_max,
    }
}

fn built_in_drivers() -> Arc<[BuiltInDriver]> {
    let all = drivers::clouds().into_iter();
    all.map(|(name, options)| BuiltInDriver { name, options }).collect()
}

/// The API that everything else stands on, with the definitions of our kinds.
async fn management_api(
    storage: Arc<dyn Storage>,
    keys: &Keys,
    trust: &Trust,
    settings: &ServerSettings,
) -> anyhow::Result<Running> {
    let audit = settings.audit.resolve().map_err(anyhow::Error::msg)?;
    crate::files::prepare_audit(&settings.data_dir, settings.audit.audit_log_path.as_deref())?;
    let root_ca_pem = match trust {
        Trust::Pinned(pem) => pem.clone(),
        Trust::Public => keys.authority.certificate_pem().to_owned(),
    };
    let running = Assembly {
        version_suffix: "+drover".to_owned(),
        root_ca_pem,
        audit,
        ..Assembly::new(storage, Profile::Management, keys.service_account_key_pem.clone())
    }
    .start()
    .await
    .context("cannot start the management API")?;
    let client = InProcess(running.server.clone()).server();
    // Before anything watches: a watch that is refused at first comes back late.
    crate::definitions::install(&client, &api_management::crds())
        .await
        .context("cannot install the definitions of our kinds")?;
    crate::priority::install(&client).await?;
    feature_kit::runtime::allow_watching(&client).await.context("cannot let controllers watch")?;
    Ok(running)
}

/// The features and what they share.
struct Plane {
    context: ManagementContext,
    features: Vec<Feature>,
    connections: Arc<Connections>,
    directory: Arc<Directory>,
    graph: Arc<RoleGraph>,
    sessions: Arc<Sessions>,
    access: ClusterAccess,
    revocations: Arc<Revocations>,
}

impl Plane {
    fn build(clients: &InProcess, settings: SettingsConfig, drivers: DriverSettings) -> Self {
        let watcher = ControllerIdentity::new(feature_kit::controller::REFLECTORS, Vec::new());
        let scope = ManagementScope::new(clients.controller(&watcher), CancellationToken::new());
        let sessions = Sessions::new();
        let exceptions = drivers.confinement.exceptions().clone();
        let access = ClusterAccess::new(
            sessions.clone(),
            Arc::new(move |host, port| {
                let exceptions = exceptions.clone();
                Box::pin(async move {
                    // What a driver says of its cluster leads no further than the driver itself.
                    let found = egress::addresses(&host, port, &exceptions).await;
                    found.map_err(std::io::Error::other)
                })
            }),
        );
        let tunnelled = TunnelClients::new(access.clone(), sessions.clone());
        let connections = Connections::new(clients.server(), tunnelled);
        let context = ManagementContext::new(scope, Arc::new(clients.clone()), connections.clone());
        let graph = RoleGraph::new(&context.scope.reflectors);
        let directory = Directory::new(&context);
        let parts = FeatureParts {
            settings,
            connections: connections.clone(),
            directory: directory.clone(),
            graph: graph.clone(),
            drivers,
        };
        let features = features(&context, &parts);
        let revocations = Revocations::new(directory.clone(), graph.clone());
        rejections::register("logins", identity::login_throttle::refused_count);
        rejections::register("downstream_responses", cluster_access::conduct::rejected);
        show_traffic();
        Self { context, features, connections, directory, graph, sessions, access, revocations }
    }

    /// Sets the rules of admission, and brings what is stored to the state that they assume.
    async fn begin(&self, clients: &InProcess, registry: &Arc<Registry>) -> anyhow::Result<()> {
        let credentials = self.context.credentials.clone();
        let rules = admission::FeatureRules::new(&self.features, credentials);
        registry.set_plugins(vec![Arc::new(rules)]);
        feature_kit::runtime::seed(&self.features, &clients.server())
            .await
            .context("cannot put the objects that every installation starts with")?;
        crate::credentials::migrate(registry, &clients.server()).await
    }

    fn router(&self, api: &ApiServer, serving: &Serving, proxies: TrustedProxies) -> Router {
        let ca_checksum = serving.trust.checksum();
        let registrar =
            AgentRegistrar::new(&self.context, self.connections.clone(), self.sessions.clone());
        let reflectors = &self.context.scope.reflectors;
        let revocations = self.revocations.clone();
        let resolver =
            ClusterIdentities::new(reflectors, self.connections.clone(), revocations.clone());
        let reserved = feature_kit::access::ROLE_GROUP_PREFIX;
        let routes = self.features.iter().flat_map(|feature| feature.routes.clone());
        let lists = rest_view::Index::new(Caches(api.registry().clone()));
        let reader = IndexReader::new(&self.context, self.connections.clone());
        let view = feature_kit::view::rest_view(&self.features, &self.context).with_lists(lists);
        let mut kinds = KindView::new(feature_kit::view::resource_of::<Cluster>())
            .with_indexes(KindIndexes::new(reader));
        if let Some(sockets) = view.sockets() {
            kinds = kinds.with_sockets(sockets.clone());
        }
        Router::new(Parts {
            api: api.clone(),
            view,
            kinds,
            routes: routes.collect(),
            acceptor: tunnel::Acceptor::new(registrar, self.sessions.clone(), &ca_checksum),
            proxy: Proxy::new(self.access.clone(), Arc::new(resolver), reserved)
                .checking(self.features.iter().flat_map(|feature| feature.write_checks.clone())),
            revocations,
            authentication: Authentication::new(
                self.directory.clone(),
                self.context.settings.clone(),
            ),
            access: self.graph.clone(),
            proxies,
            security_headers: SecurityHeaders::new(
                serving.certificate.clone(),
                serving.own_authority.clone(),
            ),
            anonymous: Anonymous::default(),
            door: Door::new(api.audit().cloned()),
            audit_view: AuditView::new(api),
        })
    }
}

/// Describes tokens in `admin.kubeconfig`.
const KUBECONFIG_TOKEN: &str = "admin.kubeconfig in the data folder";

/// A new token for the kubeconfig in the data folder. That of an earlier start ends, so that an old
/// copy of the folder, such as a backup, lets nobody in.
///
/// It ends before the new one is written: a start that is cut short leaves no token that is in no
/// file.
async fn renew_administrator_token(
    folder: &DataFolder,
    directory: &Directory,
    client: &kube::Client,
) -> anyhow::Result<String> {
    let user = directory
        .user_by_username("admin")
        .context("there is no user \"admin\" to write a kubeconfig for")?;
    let request = TokenRequest {
        user_id: user.name_any(),
        kind: api_management::token::KIND_KUBECONFIG,
        description: KUBECONFIG_TOKEN.to_owned(),
        ttl_millis: 0,
        cluster: None,
        project: None,
        derived: false,
        auth_provider: "local".to_owned(),
    };
    let issued = directory.issue(request).await.context("cannot make the administrator's token")?;
    if let Some(earlier) = folder.kubeconfig_token() {
        revoke(client, &earlier).await.context("cannot end the earlier administrator's token")?;
    }
    Ok(issued.key.expose())
}

/// Deletes the token if a start of the server made it: somebody may have put another into the file.
async fn revoke(client: &kube::Client, text: &str) -> kube::Result<()> {
    let tokens: Api<Token> = Api::all(client.clone());
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    match tokens.get_opt(name).await? {
        Some(token) if token.description == KUBECONFIG_TOKEN => {
            let deleted = tokens.delete(name, &DeleteParams::default()).await;
            deleted
                .map(drop)
                .or_else(|error| if is_code(&error, 404) { Ok(()) } else { Err(error) })
        }
        _ => Ok(()),
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "{address} is taken by another program; end it or choose another port with --listen"
        ),
        std::io::ErrorKind::PermissionDenied => anyhow::anyhow!(
            "not allowed to listen on {address}; choose a port above 1023 with --listen"
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}"),
    })
}

/// Where this machine reaches the server.
fn local_url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() || address.ip().is_loopback() {
        format!("https://localhost:{}", address.port())
    } else {
        format!("https://{address}")
    }
}

fn certificate_names(server_url: &str, address: SocketAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    let host = server_url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    names.extend(host.map(|host| host.trim_matches(['[', ']']).to_owned()));
    names.dedup();
    names
}

/// The TLS settings; their certificate follows its files.
fn serve_certificate(
    serving: &Arc<Serving>,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<watch::Receiver<Arc<rustls::ServerConfig>>> {
    let config = pki::server_config(serving.certificate.clone(), &ClientCertificatePolicy::None)?;
    // The resolver follows the files by itself; the channel is for settings that replace the whole
    // configuration.
    let (sender, receiver) = watch::channel(Arc::new(config));
    let followed = serving.clone();
    tasks.spawn(async move { followed.follow(sender).await });
    Ok(receiver)
}

/// What the tunnel carries, in `/metrics`.
fn show_traffic() {
    for counter in [
        ExternalCounter {
            name: "drover_tunnel_sent_bytes_total",
            help: "Bytes of streams that were sent to agents.",
            read: tunnel::traffic::sent_bytes,
        },
        ExternalCounter {
            name: "drover_tunnel_received_bytes_total",
            help: "Bytes of streams that came from agents and were read.",
            read: tunnel::traffic::received_bytes,
        },
        ExternalCounter {
            name: "drover_tunnel_stalls_total",
            help: "How often a stream to an agent had to wait before it could send more.",
            read: tunnel::traffic::stalls,
        },
        ExternalCounter {
            name: "drover_kubectl_shells_total",
            help: "Kubectl shells that users opened in clusters.",
            read: feature_clusters::shell::opened,
        },
        ExternalCounter {
            name: "drover_driver_starts_total",
            help: "Cluster drivers that were started.",
            read: driver_host::started,
        },
        ExternalCounter {
            name: "drover_cluster_provisionings_total",
            help: "Creations, changes and removals of clusters that drivers finished.",
            read: feature_provisioning::cluster::controller::finished,
        },
        ExternalCounter {
            name: "drover_cluster_provisioning_failures_total",
            help: "Attempts of drivers to create, change or remove a cluster that failed.",
            read: feature_provisioning::cluster::controller::failed,
        },
        ExternalCounter {
            name: "drover_driver_connections_refused_total",
            help: "Connections that cluster drivers did not get because of their address.",
            read: driver_host::egress::refused,
        },
        ExternalCounter {
            name: "drover_kind_index_pages_total",
            help: "Lists of kinds of clusters that an index served.",
            read: kind_view::index::pages,
        },
        ExternalCounter {
            name: "drover_kind_index_builds_total",
            help: "How often all objects of a kind of a cluster were read into an index.",
            read: kind_view::index::built,
        },
    ] {
        external::register(counter);
    }
}
