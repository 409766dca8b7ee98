//! `example`: clusters of a simulator that serves a provider (`drover sim --provider`). It is
//! written as a driver for a cloud is: an API with a token, a cluster that takes time, and a state
//! by which it is found again.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use driver_sdk::types::{ClusterInfo, K8sCapabilities};
use driver_sdk::{Capability, ClusterRequest, Driver, Options, service_account, state};
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Its name among the drivers.
pub const NAME: &str = "example";

/// A simulated cluster starts within seconds.
const CREATE_TIME_MAX: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Of one request to the provider.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// Has no settings of its own.
#[derive(Clone, Copy, Debug)]
pub struct Example;

/// A cluster, and where it is made.
#[derive(Clone, Debug, Options)]
pub struct ExampleOptions {
    /// Address of the provider, such as https://127.0.0.1:9000
    pub provider_url: String,
    /// Certificate authority of the provider, PEM in base64
    pub provider_ca: String,
    /// Token of the provider
    #[flag(password)]
    pub access_token: String,
    /// Number of nodes
    #[flag(default = 3)]
    pub node_count: i64,
}

/// What can change.
#[derive(Clone, Debug, Options)]
pub struct ExampleChanges {
    /// Number of nodes
    pub node_count: Option<i64>,
    /// Token of the provider
    #[flag(password)]
    pub access_token: Option<String>,
}

/// What is needed to find the cluster again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExampleState {
    name: String,
    /// Empty until the provider gave one.
    id: String,
    provider_url: String,
    provider_ca: String,
    access_token: String,
    node_count: i64,
}

/// A cluster, as the provider shows it.
#[derive(Clone, Debug, Deserialize)]
struct ProviderCluster {
    id: String,
    state: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    kubeconfig: String,
}

/// The provider's API, with the state of one cluster.
struct Provider<'a> {
    client: Client,
    state: &'a ExampleState,
}

impl<'a> Provider<'a> {
    fn new(state: &'a ExampleState) -> Result<Self> {
        ensure!(!state.provider_url.is_empty(), "the option provider-url is required");
        ensure!(!state.access_token.is_empty(), "the option access-token is required");
        let roots = match state.provider_ca.as_str() {
            "" => tls_trust::system_roots(),
            text => {
                let pem = BASE64_STANDARD.decode(text).context("provider-ca is no base64")?;
                let pem = String::from_utf8(pem).context("provider-ca is no PEM")?;
                tls_trust::roots_from_pem(&pem).context("provider-ca is no certificate")?
            }
        };
        let tls = tls_trust::trust_roots(roots).with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .timeout(REQUEST_TIME_MAX)
            .user_agent("drover-driver-example")
            .build()?;
        Ok(Self { client, state })
    }

    /// The response, or nothing for 404.
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Option<Value>> {
        let url = format!("{}/clusters{path}", self.state.provider_url.trim_end_matches('/'));
        let request = self.client.request(method, &url).bearer_auth(&self.state.access_token);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await;
        let response = response.with_context(|| format!("the provider at {url} is not reached"))?;
        let status = response.status();
        let text = response.text().await.context("the provider's response broke off")?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if !status.is_success() {
            let message = body["message"].as_str().unwrap_or("no reason");
            bail!("the provider answered {}: {message}", status.as_u16());
        }
        Ok(Some(body))
    }

    async fn named(&self) -> Result<Option<ProviderCluster>> {
        let found = self.call(Method::GET, &format!("?name={}", self.state.name), None).await?;
        let first = found.and_then(|found| found["clusters"].get(0).cloned());
        first.map(made).transpose()
    }

    async fn by_id(&self) -> Result<Option<ProviderCluster>> {
        if self.state.id.is_empty() {
            return self.named().await;
        }
        self.call(Method::GET, &format!("/{}", self.state.id), None).await?.map(made).transpose()
    }

    async fn running(&self) -> Result<ProviderCluster> {
        let wait = async {
            loop {
                let made =
                    self.by_id().await?.context("the cluster was removed at the provider")?;
                match made.state.as_str() {
                    "running" => return Ok(made),
                    "failed" => bail!("the provider could not make the cluster: {}", made.reason),
                    _ => tokio::time::sleep(POLL_INTERVAL).await,
                }
            }
        };
        match tokio::time::timeout(CREATE_TIME_MAX, wait).await {
            Ok(made) => made,
            Err(_) => bail!("the cluster does not run after {} s", CREATE_TIME_MAX.as_secs()),
        }
    }

    async fn scale(&self, nodes: i64) -> Result<()> {
        let path = format!("/{}", self.state.id);
        let changed = self.call(Method::PATCH, &path, Some(json!({"nodes": nodes}))).await?;
        changed.context("the cluster was removed at the provider")?;
        Ok(())
    }
}

fn made(value: Value) -> Result<ProviderCluster> {
    serde_json::from_value(value).context("the provider describes a cluster in another way")
}

impl Driver for Example {
    type CreateOptions = ExampleOptions;
    type UpdateOptions = ExampleChanges;

    async fn create(
        &self,
        request: ClusterRequest<ExampleOptions>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let ExampleOptions { provider_url, provider_ca, access_token, node_count } =
            request.options;
        let (name, id) = (request.name, String::new());
        let mut known =
            ExampleState { name, id, provider_url, provider_ca, access_token, node_count };
        // The name is all that is needed to remove what the next request makes.
        state::store(info, &known)?;
        let provider = Provider::new(&known)?;
        let found = match provider.named().await? {
            Some(found) => found,
            None => {
                let order = json!({"name": known.name, "nodes": known.node_count});
                println!("ordering cluster {} with {} nodes", known.name, known.node_count);
                let ordered = provider.call(Method::POST, "", Some(order)).await?;
                made(ordered.context("the provider has no clusters at this address")?)?
            }
        };
        known.id = found.id;
        state::store(info, &known)?;
        println!("waiting for cluster {}", known.name);
        Provider::new(&known)?.running().await?;
        Ok(())
    }

    async fn update(
        &self,
        request: ClusterRequest<ExampleChanges>,
        info: &mut ClusterInfo,
    ) -> Result<()> {
        let mut known: ExampleState = state::load(info)?;
        if let Some(token) = request.options.access_token.filter(|token| !token.is_empty()) {
            known.access_token = token;
        }
        if let Some(count) = request.options.node_count {
            println!("changing cluster {} to {count} nodes", known.name);
            Provider::new(&known)?.scale(count).await?;
            known.node_count = count;
        }
        state::store(info, &known)
    }

    async fn post_check(&self, info: &mut ClusterInfo) -> Result<()> {
        let known: ExampleState = state::load(info)?;
        let running = Provider::new(&known)?.running().await?;
        service_account::fill_from_kubeconfig(info, &running.kubeconfig).await
    }

    async fn remove(&self, info: &ClusterInfo) -> Result<()> {
        let Some(known) = state::load_if_present::<ExampleState>(info)? else { return Ok(()) };
        let provider = Provider::new(&known)?;
        // Also one whose id was not stored any more.
        let Some(found) = provider.named().await? else { return Ok(()) };
        provider.call(Method::DELETE, &format!("/{}", found.id), None).await?;
        Ok(())
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::GetVersion, Capability::GetNodeCount, Capability::SetNodeCount]
    }

    async fn kubernetes_capabilities(&self, _: ExampleOptions) -> Result<K8sCapabilities> {
        // A simulated cluster has the ports of nodes, and neither load balancers nor ingresses.
        Ok(K8sCapabilities {
            node_port_range: "30000-32767".to_owned(),
            ..K8sCapabilities::default()
        })
    }

    async fn version(&self, info: &ClusterInfo) -> Result<String> {
        let client = service_account::connect(info).await?;
        let version = client.apiserver_version().await;
        Ok(version.context("cannot read the version of the cluster")?.git_version)
    }

    async fn node_count(&self, info: &ClusterInfo) -> Result<i64> {
        Ok(state::load::<ExampleState>(info)?.node_count)
    }

    async fn set_node_count(&self, info: &ClusterInfo, count: i64) -> Result<()> {
        let known: ExampleState = state::load(info)?;
        Provider::new(&known)?.scale(count).await
    }
}
