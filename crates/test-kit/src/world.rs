//! All features over one management API, with agents that need no tunnel.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_management::{Cluster, ClusterRegistrationToken};
use apiserver::registry::admission::Plugin;
use controller::ManagementScope;
use driver_host::Confinement;
use feature_access::RoleGraph;
use feature_clusters::{AgentRegistrar, Connections, DownstreamClients};
use feature_identity::Directory;
use feature_kit::{Clients, Feature, ManagementContext, Membership, RoleResolver, runtime};
use feature_provisioning::kontainer_driver::files::DriverSettings;
use feature_settings::SettingsConfig;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;
use server::admission::FeatureRules;
use tokio_util::sync::{CancellationToken, DropGuard};
use tunnel::hello::RegistrationToken;
use tunnel::{AgentKey, ApiCredential, Hello, Refusal, RefusalReason, Registrar, SessionInfo};

use crate::kube_api::{KubeApi, Profile};
use crate::{PATIENCE, eventually};

/// The clusters that are reachable now.
#[derive(Default)]
pub struct Agents {
    /// Clusters whose agent has not reported yet.
    coming: Mutex<HashMap<String, Client>>,
    there: Mutex<HashMap<String, Client>>,
}

impl DownstreamClients for Agents {
    fn report(&self, cluster: &str, _: ApiCredential) {
        if let Some(client) = self.coming.lock().remove(cluster) {
            self.there.lock().insert(cluster.to_owned(), client);
        }
    }
    fn client(&self, cluster: &str) -> Option<Client> {
        self.there.lock().get(cluster).cloned()
    }
    fn forget(&self, cluster: &str) {
        self.there.lock().remove(cluster);
    }
}

/// The management plane with all its features. Stops when it is dropped.
pub struct World {
    pub api: Arc<KubeApi>,
    pub context: ManagementContext,
    pub connections: Arc<Connections>,
    pub agents: Arc<Agents>,
    pub registrar: Arc<AgentRegistrar>,
    pub directory: Arc<Directory>,
    pub graph: Arc<RoleGraph>,
    pub features: Arc<Vec<Feature>>,
    _stop: DropGuard,
}

impl World {
    /// Starts all features over an empty management API.
    pub async fn start() -> Self {
        Self::over(KubeApi::start(Profile::Management).await).await
    }

    /// Starts a server over this management API.
    pub async fn over(api: Arc<KubeApi>) -> Self {
        Self::with_admission(api, |rules| Arc::new(rules)).await
    }

    /// Like [`Self::over`], with other admission rules than the features' own: tests of tests plant
    /// bugs there.
    pub async fn with_admission(
        api: Arc<KubeApi>,
        admission: impl FnOnce(FeatureRules) -> Arc<dyn Plugin>,
    ) -> Self {
        let stop = CancellationToken::new();
        let reflectors = feature_kit::rbac::reflector_identity();
        let scope = ManagementScope::new(api.controller(&reflectors), stop.clone());
        let agents = Arc::new(Agents::default());
        let connections = Connections::new(api.admin(), agents.clone());
        let context = ManagementContext::new(scope, api.clone(), connections.clone());
        let directory = Directory::new(&context);
        let graph = RoleGraph::new(&context.scope.reflectors);
        let settings = SettingsConfig {
            server_url: "https://drover.example".to_owned(),
            ca_certs: "PEM".to_owned(),
            server_version: "v2.6.9".to_owned(),
            agent_image: "drover-agent:test".to_owned(),
            ..SettingsConfig::default()
        };
        // No driver of these tests is fetched or started.
        let drivers = DriverSettings {
            folder: "/nonexistent".into(),
            confinement: Confinement::by("/nonexistent".into(), []),
            built_in: [].into(),
            allow_unconfined: false,
            call_time_max: Duration::from_secs(60),
        };
        let features = vec![
            feature_settings::feature(&settings),
            feature_identity::feature(&context, &directory, graph.clone()),
            feature_access::feature(&context, &graph),
            feature_clusters::feature(&context, &connections),
            feature_projects::feature(&context),
            feature_downstream::feature(&context),
            feature_workloads::feature(&context),
            feature_provisioning::feature(
                &context,
                &drivers,
                Arc::new(feature_clusters::AgentObjects::new(&context)),
            ),
            feature_tables::feature(),
        ];
        let registrar = AgentRegistrar::new(&context, connections.clone(), tunnel::Sessions::new());
        api.registry.set_plugins(vec![admission(FeatureRules::new(
            &features,
            context.credentials.clone(),
        ))]);
        define(&api.admin(), &features).await;
        runtime::seed(&features, &api.admin()).await.unwrap();
        server::credentials::migrate(&api.registry, &api.admin()).await.unwrap();
        let features = Arc::new(features);
        let (running, running_context) = (features.clone(), context.clone());
        tokio::spawn(async move { runtime::run(&running, running_context).await });
        let _stop = stop.drop_guard();
        Self { api, context, connections, agents, registrar, directory, graph, features, _stop }
    }

    /// A client with all rights.
    pub fn admin(&self) -> Client {
        self.api.admin()
    }

    /// A client of the management API for the user, with their current groups.
    pub fn user_client(&self, user: &str) -> Client {
        let mut groups = self.graph.management_groups(Membership { user, groups: &[] });
        groups.push("system:authenticated".to_owned());
        groups.push(feature_kit::access::GROUP_PEOPLE.to_owned());
        self.api.client_as(user, &groups)
    }

    /// The clusters, as an administrator.
    pub fn clusters(&self) -> Api<Cluster> {
        Api::all(self.admin())
    }

    /// Creates a cluster with this object name, without waiting for its controllers.
    pub async fn create_cluster(&self, name: &str) -> Cluster {
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some(name.to_owned());
        self.clusters().create(&PostParams::default(), &cluster).await.unwrap()
    }

    /// An object or a list of the management API, as it is stored.
    pub async fn stored(&self, path: &str) -> Value {
        let path = format!("/apis/management.cattle.io/v3/{path}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.admin().request(request).await.unwrap()
    }

    /// The cluster's first registration token, once it has its secret.
    pub async fn token(&self, cluster: &str) -> ClusterRegistrationToken {
        let tokens: Api<ClusterRegistrationToken> = Api::namespaced(self.admin(), cluster);
        eventually("a registration token", async || {
            let token = tokens.get("default-token").await.map_err(|error| error.to_string())?;
            if token.status.token.is_empty() { Err("no secret".to_owned()) } else { Ok(token) }
        })
        .await
    }

    /// The hello of an agent with this key and token.
    pub fn hello(key: &AgentKey, token: Option<&str>) -> Hello {
        Hello {
            key: key.id(),
            public_key: Some(key.public_key()),
            token: token.map(|token| RegistrationToken::new(token).unwrap()),
            instance: "test".to_owned(),
            agent_version: "test".to_owned(),
            cluster_uid: None,
        }
    }

    /// Does the steps of the tunnel when an agent connects: hello, proof, session, report.
    pub async fn connect(
        &self,
        key: &AgentKey,
        token: Option<&str>,
        downstream: Client,
    ) -> Result<String, Refusal> {
        let cluster_uid = kube_system_uid(&downstream).await;
        let hello = Hello { cluster_uid, ..Self::hello(key, token) };
        let admission = self.registrar.admit(&hello).await?;
        if matches!(admission.key, tunnel::ExpectedKey::First(_)) {
            self.registrar.enrol(&hello, &admission).await?;
        }
        let cluster = admission.cluster.to_string();
        self.agents.coming.lock().insert(cluster.clone(), downstream);
        let session = session(&admission.cluster, key);
        self.registrar.on_connect(&session);
        self.registrar.on_credential(
            &session,
            ApiCredential {
                address: "10.0.0.1:6443".to_owned(),
                ca_cert: "PEM".to_owned(),
                token: "secret".to_owned(),
            },
        );
        Ok(cluster)
    }

    /// Disconnects the agent.
    pub fn disconnect(&self, cluster: &str, key: &AgentKey) {
        self.agents.forget(cluster);
        self.registrar.on_disconnect(&session(&cluster.into(), key), "test");
    }

    /// Creates a cluster, connects the agent of `downstream`, and waits until the cluster is
    /// active.
    pub async fn import(&self, name: &str, downstream: &KubeApi) -> AgentKey {
        self.create_cluster(name).await;
        self.join(name, downstream).await
    }

    /// Connects an agent of `downstream`, with a new key, and waits until the cluster is active.
    pub async fn join(&self, name: &str, downstream: &KubeApi) -> AgentKey {
        let token = self.token(name).await;
        let key = AgentKey::generate().unwrap();
        apply_agent_namespace(downstream).await;
        // The registrar knows a new token from its watch, a moment after the API shows it.
        let connected = eventually("the agent is admitted", async || {
            let token = Some(token.status.token.as_str());
            match self.connect(&key, token, downstream.admin()).await {
                Err(refusal) if refusal.reason == RefusalReason::TokenUnknown => Err(refusal),
                other => Ok(other),
            }
        })
        .await;
        assert_eq!(connected.unwrap(), name);
        self.active(name).await;
        key
    }

    /// Waits until the cluster is active, and returns it.
    pub async fn active(&self, name: &str) -> Cluster {
        let clusters = self.clusters();
        eventually(&format!("cluster {name} active"), async || {
            let cluster = clusters.get(name).await.map_err(|error| error.to_string())?;
            let deleted = cluster.metadata.deletion_timestamp.is_some();
            let state = api_management::state::of_cluster(&cluster.status.conditions, deleted);
            if state.is_active() { Ok(cluster) } else { Err(format!("{state:?} {cluster:#?}")) }
        })
        .await
    }

    /// Deletes a cluster and waits until its object is deleted.
    pub async fn remove(&self, name: &str) {
        self.clusters().delete(name, &DeleteParams::background()).await.unwrap();
        self.wait_until_removed(name).await;
    }

    /// Waits until the object of the cluster is deleted.
    pub async fn wait_until_removed(&self, name: &str) {
        let clusters = self.clusters();
        eventually(&format!("the end of cluster {name}"), async || {
            match clusters.get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(cluster) => Err(cluster.status.conditions),
            }
        })
        .await;
    }
}

/// The report of an agent about its cluster.
pub async fn kube_system_uid(downstream: &Client) -> Option<String> {
    let namespaces: Api<Namespace> = Api::all(downstream.clone());
    namespaces.get_opt("kube-system").await.unwrap().and_then(|namespace| namespace.metadata.uid)
}

fn session(cluster: &tunnel::ClusterId, key: &AgentKey) -> SessionInfo {
    SessionInfo {
        cluster: cluster.clone(),
        key: key.id(),
        instance: "test".to_owned(),
        agent_version: "test".to_owned(),
        remote: None,
        connected_at: std::time::SystemTime::now(),
    }
}

/// Applies the parts of the agent's manifest that Drover's controllers need: all but the
/// Deployment.
async fn apply_agent_namespace(downstream: &KubeApi) {
    use feature_clusters::cluster_registration_token::manifest::{Import, documents};
    use kube::api::{ApiResource, DynamicObject};
    use kube::core::GroupVersionKind;
    let import = Import {
        cluster: "x",
        server_url: "https://drover.example",
        ca_certs: "",
        token: "t",
        image: "i",
        env: &[],
    };
    for document in documents(&import) {
        let kind = document["kind"].as_str().unwrap();
        let (group, version) = match document["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), "v1".to_owned()),
        };
        if kind == "Deployment" {
            continue;
        }
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, &version, kind));
        let namespace = document["metadata"]["namespace"].as_str();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(downstream.admin(), namespace, &resource),
            None => Api::all_with(downstream.admin(), &resource),
        };
        let object: DynamicObject = serde_json::from_value(document).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

/// Creates the definitions of all kinds and waits until they are served.
async fn define(client: &Client, features: &[Feature]) {
    let definitions: Vec<_> = features.iter().flat_map(Feature::crds).collect();
    let installed = server::definitions::install(client, &definitions);
    tokio::time::timeout(PATIENCE, installed).await.expect("served in time").unwrap();
}
