//! A service account for the manager in a new cluster, with a token that does not expire. Names are
//! those that drivers have made since 2019, so that a manager finds what it made.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use driver_contract::types::ClusterInfo;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const NAMESPACE: &str = "cattle-system";
const ACCOUNT: &str = "kontainer-engine";
const TOKEN_SECRET: &str = "kontainer-engine-token";
const ROLE: &str = "cluster-admin";
const BINDING: &str = "system-netes-default-clusterRoleBinding";
/// A new cluster writes the token within seconds.
const TOKEN_TIME_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The one entry of each list in a kubeconfig.
const ENTRY: &str = "cluster";

/// A client of the cluster, from what `info` has of it: the endpoint and the certificate authority,
/// with a token, a client certificate, or a user name and password.
///
/// # Errors
/// `info` is incomplete or cannot be read.
pub async fn connect(info: &ClusterInfo) -> Result<Client> {
    anyhow::ensure!(!info.endpoint.is_empty(), "the cluster has no endpoint yet");
    let scheme = if info.endpoint.starts_with("https://") { "" } else { "https://" };
    let text = |value: &String| Some(value.clone()).filter(|value| !value.is_empty());
    let kubeconfig = json!({
        "clusters": [{"name": ENTRY, "cluster": {
            "server": format!("{scheme}{}", info.endpoint),
            "certificate-authority-data": text(&info.root_ca_certificate),
        }}],
        "users": [{"name": ENTRY, "user": {
            "token": text(&info.service_account_token),
            "client-certificate-data": text(&info.client_certificate),
            "client-key-data": text(&info.client_key),
            "username": text(&info.username),
            "password": text(&info.password),
        }}],
        "contexts": [{"name": ENTRY, "context": {"cluster": ENTRY, "user": ENTRY}}],
        "current-context": ENTRY,
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.context("the certificate or key of the cluster cannot be read")?;
    Client::try_from(config).context("the cluster cannot be reached with what is known of it")
}

/// Completes `info` from a kubeconfig with the rights of an administrator: endpoint, certificate
/// authority, version, number of nodes, and the token of a service account. Nothing else of the
/// kubeconfig is stored.
///
/// # Errors
/// The kubeconfig cannot be read, or the cluster refuses what it has.
pub async fn fill_from_kubeconfig(info: &mut ClusterInfo, kubeconfig: &str) -> Result<()> {
    let parsed = Kubeconfig::from_yaml(kubeconfig).context("the kubeconfig is no valid YAML")?;
    let authority = authority_of_current(&parsed).unwrap_or_default();
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let config = config.context("the kubeconfig cannot be used")?;
    config.cluster_url.to_string().trim_end_matches('/').clone_into(&mut info.endpoint);
    info.root_ca_certificate = authority;
    let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
    let version = client.apiserver_version().await;
    info.version = version.context("cannot read the version of the cluster")?.git_version;
    let nodes = Api::<Node>::all(client.clone()).list_metadata(&ListParams::default()).await;
    let nodes = nodes.context("cannot read the nodes of the cluster")?.items.len();
    info.node_count = i64::try_from(nodes).unwrap_or(i64::MAX);
    info.service_account_token = token(&client).await?;
    Ok(())
}

/// The certificate authority of the current context's cluster, PEM in base64.
fn authority_of_current(file: &Kubeconfig) -> Option<String> {
    let current = file.current_context.as_ref()?;
    let context = file.contexts.iter().find(|entry| entry.name == *current)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|entry| entry.name == context.cluster)?;
    cluster.cluster.as_ref()?.certificate_authority_data.clone()
}

/// Makes the service account with the rights of an administrator, if it does not exist, and returns
/// its token. Works on every Kubernetes since 1.8.
///
/// # Errors
/// The cluster refuses it, or does not write the token within a minute.
pub async fn token(client: &Client) -> Result<String> {
    let namespaced = |metadata: Value| json!({ "metadata": metadata });
    let account = json!({"metadata": {"name": ACCOUNT, "namespace": NAMESPACE}});
    ensure::<Namespace>(&Api::all(client.clone()), namespaced(json!({"name": NAMESPACE}))).await?;
    ensure::<ServiceAccount>(&Api::namespaced(client.clone(), NAMESPACE), account).await?;
    let role = json!({
        "metadata": {"name": ROLE},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    });
    ensure::<ClusterRole>(&Api::all(client.clone()), role).await?;
    let binding = json!({
        "metadata": {"name": BINDING},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    });
    ensure::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await?;
    // Since 1.24 a cluster makes no token by itself.
    let secret = json!({
        "metadata": {
            "name": TOKEN_SECRET,
            "namespace": NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
        },
        "type": "kubernetes.io/service-account-token",
    });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    ensure(&secrets, secret).await?;
    let read = async {
        loop {
            let secret = secrets.get(TOKEN_SECRET).await.context("cannot read the token")?;
            let token = secret.data.and_then(|mut data| data.remove("token"));
            if let Some(token) = token.filter(|token| !token.0.is_empty()) {
                break String::from_utf8(token.0).context("the token is no text");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(TOKEN_TIME_MAX, read).await {
        Ok(token) => token,
        Err(_) => bail!(
            "the cluster wrote no token into the Secret {NAMESPACE}/{TOKEN_SECRET} within {} s: is \
             its controller manager running?",
            TOKEN_TIME_MAX.as_secs()
        ),
    }
}

async fn ensure<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let object = serde_json::from_value(object).context("an object of the account is invalid")?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot make {} {name}", K::kind(&()))),
    }
}
