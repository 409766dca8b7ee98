//! The few fields of a kubeconfig that the agent uses.

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

/// Size of a kubeconfig file. The largest real ones hold a few hundred clusters.
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The current context, with the content of its files.
pub(crate) struct KubeconfigContext {
    pub(crate) server: String,
    pub(crate) ca_pem: String,
    pub(crate) tls_server_name: Option<String>,
    pub(crate) token: Option<String>,
    /// Certificate chain and key, PEM.
    pub(crate) certificate: Option<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeconfigError {
    #[error("read \"{path}\": {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("read \"{path}\": more than {FILE_MAX_BYTES} bytes")]
    TooLarge { path: PathBuf },
    #[error("read the kubeconfig: {0}")]
    Yaml(String),
    #[error("the kubeconfig has no {what} \"{name}\"")]
    Missing { what: &'static str, name: String },
    #[error("the kubeconfig's field \"{0}\" is not base64 of text")]
    Data(&'static str),
    #[error(
        "the kubeconfig's user logs in with a command or a provider, which the agent does not run; \
         use one with a token or a client certificate"
    )]
    Unsupported,
    #[error("the kubeconfig's cluster has no CA; the agent does not connect without one")]
    NoCa,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    clusters: Vec<NamedEntry>,
    #[serde(default)]
    users: Vec<NamedEntry>,
    #[serde(default)]
    contexts: Vec<NamedEntry>,
}

#[derive(Deserialize)]
struct NamedEntry {
    name: String,
    #[serde(default)]
    cluster: ClusterEntry,
    #[serde(default)]
    user: User,
    #[serde(default)]
    context: Names,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct ClusterEntry {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    tls_server_name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Names {
    cluster: String,
    user: String,
}

impl KubeconfigContext {
    /// Reads the current context. Relative file names are relative to the kubeconfig's folder.
    pub(crate) fn read(path: &Path) -> Result<Self, KubeconfigError> {
        let file: File = serde_saphyr::from_str(&read(path)?)
            .map_err(|error| KubeconfigError::Yaml(error.to_string()))?;
        let directory = path.parent().unwrap_or(Path::new("."));
        let names = find(file.contexts, "context", &file.current_context)?.context;
        let cluster = find(file.clusters, "cluster", &names.cluster)?.cluster;
        let user = find(file.users, "user", &names.user)?.user;
        let text = |field, data: Option<String>, file: Option<PathBuf>| match (data, file) {
            (Some(data), _) => decode(field, &data).map(Some),
            (None, Some(file)) => read(&directory.join(file)).map(Some),
            (None, None) => Ok(None),
        };
        let ca = text(
            "certificate-authority-data",
            cluster.certificate_authority_data,
            cluster.certificate_authority,
        )?;
        let chain =
            text("client-certificate-data", user.client_certificate_data, user.client_certificate)?;
        let key = text("client-key-data", user.client_key_data, user.client_key)?;
        let token = match (user.token, user.token_file) {
            (Some(token), _) if !token.is_empty() => Some(token),
            (_, Some(file)) => Some(read(&directory.join(file))?.trim().to_owned()),
            _ => None,
        };
        let certificate = chain.zip(key);
        if token.is_none() && certificate.is_none() {
            return Err(KubeconfigError::Unsupported);
        }
        Ok(Self {
            server: cluster.server,
            ca_pem: ca.ok_or(KubeconfigError::NoCa)?,
            tls_server_name: cluster.tls_server_name,
            token,
            certificate,
        })
    }
}

fn read(path: &Path) -> Result<String, KubeconfigError> {
    let path = path.to_path_buf();
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.len() > FILE_MAX_BYTES => {
            return Err(KubeconfigError::TooLarge { path });
        }
        _ => {}
    }
    std::fs::read_to_string(&path).map_err(|error| KubeconfigError::Read { path, error })
}

fn decode(field: &'static str, data: &str) -> Result<String, KubeconfigError> {
    let bytes = STANDARD.decode(data.trim()).map_err(|_| KubeconfigError::Data(field))?;
    String::from_utf8(bytes).map_err(|_| KubeconfigError::Data(field))
}

fn find(
    list: Vec<NamedEntry>,
    what: &'static str,
    name: &str,
) -> Result<NamedEntry, KubeconfigError> {
    let found = list.into_iter().find(|named| named.name == name);
    found.ok_or_else(|| KubeconfigError::Missing { what, name: name.to_owned() })
}
