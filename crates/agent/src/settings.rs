//! Resolves the settings: from flags and environment first, then from the mounted credentials.

use std::path::{Path, PathBuf};

use tunnel::RegistrationToken;

use crate::args::ServerArgs;
use crate::proxy::{Proxies, ProxyUrlError};
use crate::server_url::ServerUrl;

/// Where the manifest mounts the Secret with `url` and `token`.
const CREDENTIALS_DIR: &str = "/cattle-credentials";
/// Another path for [`CREDENTIALS_DIR`], for hosts that mount nothing.
pub(crate) const CREDENTIALS_DIR_ENV: &str = "DROVER_CREDENTIALS_DIR";
/// Where Kubernetes mounts a pod's service account.
const SERVICE_ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Another path for [`SERVICE_ACCOUNT_DIR`].
pub(crate) const SERVICE_ACCOUNT_DIR_ENV: &str = "DROVER_SERVICEACCOUNT_DIR";
/// SHA-256 in hex.
const CHECKSUM_CHARS: usize = 64;

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) server: ServerUrl,
    /// Not needed once the agent is registered.
    pub(crate) token: Option<RegistrationToken>,
    /// Lower case. `None`: trust the system's CAs.
    pub(crate) ca_checksum: Option<String>,
    pub(crate) proxies: Proxies,
}

/// All problems of the settings, reported at once.
#[derive(Debug, thiserror::Error)]
#[error("the agent cannot start:\n  - {}", problems.join("\n  - "))]
pub(crate) struct SettingsError {
    pub(crate) problems: Vec<String>,
}

pub(crate) fn credentials_dir() -> PathBuf {
    std::env::var_os(CREDENTIALS_DIR_ENV).map_or_else(|| CREDENTIALS_DIR.into(), PathBuf::from)
}

pub(crate) fn service_account_dir() -> PathBuf {
    std::env::var_os(SERVICE_ACCOUNT_DIR_ENV)
        .map_or_else(|| SERVICE_ACCOUNT_DIR.into(), PathBuf::from)
}

impl Settings {
    pub(crate) fn resolve(
        args: &ServerArgs,
        credentials: &Path,
        proxies: Result<Proxies, ProxyUrlError>,
    ) -> Result<Self, SettingsError> {
        let mut problems = Vec::new();
        let given = |flag: &Option<String>| {
            flag.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let file = |name: &str| {
            let text = std::fs::read_to_string(credentials.join(name)).ok()?;
            given(&Some(text))
        };
        let server = match given(&args.server).or_else(|| file("url")) {
            Some(text) => {
                ServerUrl::parse(&text).map_err(|error| problems.push(error.to_string())).ok()
            }
            None => {
                problems.push(format!(
                    "no server is configured; give --server or CATTLE_SERVER, or a file \"{}\"",
                    credentials.join("url").display()
                ));
                None
            }
        };
        let token = given(&args.token).or_else(|| file("token")).and_then(|text| {
            let token = RegistrationToken::new(&text);
            if token.is_none() {
                problems
                    .push("the registration token must be printable, without blanks".to_owned());
            }
            token
        });
        let ca_checksum = given(&args.ca_checksum).map(|text| text.to_ascii_lowercase());
        if let Some(checksum) = &ca_checksum
            && (checksum.len() != CHECKSUM_CHARS
                || !checksum.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            problems.push(format!(
                "the CA checksum must be a SHA-256 in hex ({CHECKSUM_CHARS} digits), \
                 not \"{checksum}\""
            ));
        }
        let proxies = proxies.unwrap_or_else(|error| {
            problems.push(error.to_string());
            Proxies::default()
        });
        match server {
            Some(server) if problems.is_empty() => Ok(Self { server, token, ca_checksum, proxies }),
            _ => Err(SettingsError { problems }),
        }
    }
}
