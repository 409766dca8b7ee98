//! The agent's own cluster: the address of its API server, the agent's credential for it, and the
//! few requests that the agent sends itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tls_trust::{ClientConfigBuilder, roots_from_pem, trust_roots};
use tokio::sync::watch;
use tunnel::{Address, ApiCredential, CredentialReport};

use crate::call::{CallError, call, connect};
use crate::error_chain::error_chain;
use crate::kubeconfig::{KubeconfigContext, KubeconfigError};
use crate::proxy::Proxies;
use crate::server_url::ServerUrl;
use crate::settings::service_account_dir;

/// The namespace of all objects of the manifest.
const NAMESPACE: &str = "cattle-system";
/// The service account of the manifest, whose token the server uses.
const SERVICE_ACCOUNT: &str = "cattle";
/// How often mounted tokens are read. The kubelet renews them minutes before they expire.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The requested life of tokens, when the agent requests them itself. They are renewed at half of
/// it.
const TOKEN_LIFE: Duration = Duration::from_secs(3600);

#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    #[error("this is not a pod: {0} is not set; run the agent in the cluster or give --kubeconfig")]
    NotInCluster(&'static str),
    #[error("read \"{path}\" of the pod's service account: {error}")]
    ServiceAccount { path: PathBuf, error: std::io::Error },
    #[error("\"{0}\" is not the address of an API server")]
    Address(String),
    #[error("use the CA of this cluster's API server: {0}")]
    Ca(String),
    #[error("use the client certificate of the kubeconfig: {0}")]
    Certificate(String),
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error("{action}")]
    Call {
        action: String,
        #[source]
        error: CallError,
    },
    #[error("{action}: this cluster's API server responded {status}: {message}")]
    Status { action: String, status: StatusCode, message: String },
    #[error(
        "{action}: this cluster's API server responded {status}: {message}; the agent's rights are \
         in the cluster's import manifest: apply it again"
    )]
    Denied { action: String, status: StatusCode, message: String },
}

/// Where the bearer token comes from.
enum TokenSource {
    /// A mounted file that the kubelet renews; the CA is beside it.
    Mounted(PathBuf),
    /// A kubeconfig, whose credential requests tokens of the service account.
    Requested { own_token: Option<String>, tls: Arc<ClientConfig> },
}

pub(crate) struct Home {
    address: Address,
    name: ServerName<'static>,
    ca_pem: String,
    namespace: String,
    source: TokenSource,
}

impl Home {
    /// The pod's service account.
    pub(crate) fn in_cluster() -> Result<Self, HomeError> {
        let variable = |name| std::env::var(name).map_err(|_| HomeError::NotInCluster(name));
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        Self::mounted(&host, &port, service_account_dir())
    }

    pub(crate) fn mounted(host: &str, port: &str, directory: PathBuf) -> Result<Self, HomeError> {
        let wrong = || HomeError::Address(format!("{host}:{port}"));
        let port = port.parse().map_err(|_| wrong())?;
        let address = Address::new(host, port).map_err(|_| wrong())?;
        let name = ServerName::try_from(address.host().to_owned()).map_err(|_| wrong())?;
        let ca_pem = read_mounted(&directory, "ca.crt")?;
        let namespace = read_mounted(&directory, "namespace")
            .map_or_else(|_| NAMESPACE.to_owned(), |text| text.trim().to_owned());
        Ok(Self { address, name, ca_pem, namespace, source: TokenSource::Mounted(directory) })
    }

    pub(crate) fn from_kubeconfig(path: &Path) -> Result<Self, HomeError> {
        let context = KubeconfigContext::read(path)?;
        let wrong = || HomeError::Address(context.server.clone());
        let url = ServerUrl::parse(&context.server).map_err(|_| wrong())?;
        let address = Address::new(url.host(), url.port()).map_err(|_| wrong())?;
        let name = context.tls_server_name.clone().unwrap_or_else(|| url.host().to_owned());
        let name = ServerName::try_from(name).map_err(|_| wrong())?;
        let tls = match &context.certificate {
            Some((chain, key)) => with_certificate(&context.ca_pem, chain, key)?,
            None => trust(&context.ca_pem)?.with_no_client_auth(),
        };
        let source = TokenSource::Requested { own_token: context.token, tls: Arc::new(tls) };
        let namespace = NAMESPACE.to_owned();
        Ok(Self { address, name, ca_pem: context.ca_pem, namespace, source })
    }

    /// The one address that the server may reach through this agent.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Reads or requests the credential for the server.
    async fn credential(&self) -> Result<ApiCredential, HomeError> {
        let (ca_cert, token) = match &self.source {
            TokenSource::Mounted(directory) => {
                let token = read_mounted(directory, "token")?.trim().to_owned();
                (read_mounted(directory, "ca.crt")?, token)
            }
            TokenSource::Requested { .. } => (self.ca_pem.clone(), self.request_token().await?),
        };
        Ok(ApiCredential { address: self.address.to_string(), ca_cert, token })
    }

    /// Updates `report` at each change of the credential. Never returns.
    pub(crate) async fn follow_credential(&self, report: watch::Sender<Option<CredentialReport>>) {
        loop {
            let (current, pause) = match self.credential().await {
                Ok(credential) => {
                    let pause = match &self.source {
                        TokenSource::Mounted(_) => REFRESH_INTERVAL,
                        TokenSource::Requested { .. } => TOKEN_LIFE / 2,
                    };
                    (CredentialReport::Credential(credential), pause)
                }
                Err(error) => {
                    let trouble = error_chain(&error);
                    tracing::error!(error = trouble, "cannot get a credential for the server");
                    (CredentialReport::Trouble { trouble }, REFRESH_INTERVAL)
                }
            };
            report.send_if_modified(|known| {
                // The last credential may be valid for a while yet.
                let is_worse = matches!(known, Some(CredentialReport::Credential(_)))
                    && matches!(current, CredentialReport::Trouble { .. });
                let is_new = !is_worse && known.as_ref() != Some(&current);
                if is_new {
                    *known = Some(current);
                }
                is_new
            });
            tokio::time::sleep(pause).await;
        }
    }

    async fn request_token(&self) -> Result<String, HomeError> {
        let namespace = &self.namespace;
        let path =
            format!("/api/v1/namespaces/{namespace}/serviceaccounts/{SERVICE_ACCOUNT}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": TOKEN_LIFE.as_secs() },
        });
        let action = format!(
            "request a token of service account \"{SERVICE_ACCOUNT}\" in namespace \"{namespace}\" \
             (apply the import manifest first)"
        );
        match (self.call(Method::POST, &path, Some(&body), &action).await, &self.source) {
            (Ok(response), _) => {
                Ok(response["status"]["token"].as_str().unwrap_or_default().to_owned())
            }
            (Err(error), TokenSource::Requested { own_token: Some(token), .. }) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the server will use the token of the kubeconfig itself");
                Ok(token.clone())
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Uid of the namespace `kube-system`, or `None` when it cannot be read. The server then reads
    /// it itself and reports what is wrong with the cluster's API, which needs a connection.
    pub(crate) async fn cluster_uid(&self) -> Option<String> {
        let action = "read namespace \"kube-system\"";
        match self.call(Method::GET, "/api/v1/namespaces/kube-system", None, action).await {
            Ok(namespace) => namespace["metadata"]["uid"].as_str().map(str::to_owned),
            Err(HomeError::Status { status: StatusCode::NOT_FOUND, .. }) => None,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(error, "the agent cannot report the uid of this cluster");
                None
            }
        }
    }

    /// Reads the agent's Secret, if it exists.
    pub(crate) async fn read_secret(&self, name: &str) -> Result<Option<Value>, HomeError> {
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace);
        let action = format!("read Secret \"{name}\" in namespace \"{}\"", self.namespace);
        match self.call(Method::GET, &path, None, &action).await {
            Ok(secret) => Ok(Some(secret)),
            Err(HomeError::Status { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a Secret. False when it exists already.
    pub(crate) async fn create_secret(&self, name: &str, data: Value) -> Result<bool, HomeError> {
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let action = format!("create Secret \"{name}\" in namespace \"{}\"", self.namespace);
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": self.namespace },
            "type": "Opaque",
            "data": data,
        });
        match self.call(Method::POST, &path, Some(&secret), &action).await {
            Ok(_) => Ok(true),
            Err(HomeError::Status { status: StatusCode::CONFLICT, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces a Secret that was read before. False when it has changed since.
    pub(crate) async fn replace_secret(
        &self,
        name: &str,
        secret: &Value,
    ) -> Result<bool, HomeError> {
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace);
        let action = format!("update Secret \"{name}\" in namespace \"{}\"", self.namespace);
        match self.call(Method::PUT, &path, Some(secret), &action).await {
            Ok(_) => Ok(true),
            Err(HomeError::Status { status: StatusCode::CONFLICT, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        action: &str,
    ) -> Result<Value, HomeError> {
        let (tls, token) = match &self.source {
            TokenSource::Mounted(directory) => {
                let token = read_mounted(directory, "token")?.trim().to_owned();
                (
                    Arc::new(trust(&read_mounted(directory, "ca.crt")?)?.with_no_client_auth()),
                    Some(token),
                )
            }
            TokenSource::Requested { own_token, tls } => (tls.clone(), own_token.clone()),
        };
        let failed = |error| HomeError::Call { action: action.to_owned(), error };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("drover-agent/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body)).map_err(|error| {
            failed(CallError::Http { path: path.to_owned(), error: error.into() })
        })?;
        let (host, port) = (self.address.host(), self.address.port());
        let io = connect(host, port, self.name.clone(), &tls, &Proxies::default())
            .await
            .map_err(failed)?;
        let (status, body) = call(io, &self.address.to_string(), request).await.map_err(failed)?;
        let response: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(response);
        }
        let message = response["message"].as_str().unwrap_or("no message").to_owned();
        let action = action.to_owned();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                HomeError::Denied { action, status, message }
            }
            _ => HomeError::Status { action, status, message },
        })
    }
}

fn read_mounted(directory: &Path, name: &str) -> Result<String, HomeError> {
    let path = directory.join(name);
    std::fs::read_to_string(&path).map_err(|error| HomeError::ServiceAccount { path, error })
}

fn trust(ca_pem: &str) -> Result<ClientConfigBuilder, HomeError> {
    let roots = roots_from_pem(ca_pem).map_err(|error| HomeError::Ca(error.to_string()))?;
    Ok(trust_roots(roots))
}

fn with_certificate(ca_pem: &str, chain: &str, key: &str) -> Result<ClientConfig, HomeError> {
    let bad = |error: &dyn std::fmt::Display| HomeError::Certificate(error.to_string());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| bad(&error))?;
    trust(ca_pem)?
        .with_client_auth_cert(chain.map_err(|error| bad(&error))?, key)
        .map_err(|error| bad(&error))
}
