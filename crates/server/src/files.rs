//! The data folder: keys and certificates, and what is written for people and scripts.
//!
//! | File | What |
//! | --- | --- |
//! | `pki/` | the authority, the serving certificate, the key of service account tokens |
//! | `storage/` | the embedded storage |
//! | `audit/` | the audit log, unless it is kept elsewhere |
//! | `drivers/` | programs of cluster drivers |
//! | `encryption.keys` | what its values are encrypted with, when no other file is named |
//! | `server.lock` | held by the server, when its storage is not here |
//! | `server.json` | where the running server is |
//! | `ca.pem` | what clients verify it with, unless every system trusts its authority |
//! | `admin.kubeconfig` | everything, for whoever may read this folder |

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use apiserver::service_accounts::SigningKey;
use pki::{CertificateAuthority, CertificateFiles, PkiError};
use serde_json::json;

/// Names of the files for others.
pub const SERVER_FILE: &str = "server.json";
pub const CA_FILE: &str = "ca.pem";
pub const KUBECONFIG_FILE: &str = "admin.kubeconfig";

/// The audit log's folder here, and its name there.
const AUDIT_FOLDER: &str = "audit";
const AUDIT_FILE: &str = "audit.log";

/// The folder of cluster drivers.
const DRIVERS_FOLDER: &str = "drivers";

/// Where the audit log is unless it is kept elsewhere.
pub fn audit_log(data_dir: &Path) -> PathBuf {
    data_dir.join(AUDIT_FOLDER).join(AUDIT_FILE)
}

/// Makes the folder of the audit log, if that is kept in the data folder.
pub fn prepare_audit(data_dir: &Path, log: Option<&Path>) -> anyhow::Result<()> {
    match log {
        Some(log) if log == audit_log(data_dir) => make_private(&data_dir.join(AUDIT_FOLDER)),
        _ => Ok(()),
    }
}

fn make_private(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the folder \"{}\"", folder.display()))
}

/// Characters of an installation's id.
const INSTALL_ID_LENGTH: usize = 26;

/// The folder, made and private.
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// The folder of the programs of cluster drivers. It may not exist.
    pub fn drivers(&self) -> PathBuf {
        self.path.join(DRIVERS_FOLDER)
    }
}

/// What the server identifies itself and others with.
pub struct Keys {
    pub authority: CertificateAuthority,
    pub serving: CertificateFiles,
    /// What the serving certificate is for.
    pub names: Vec<String>,
    pub service_account_key_pem: String,
}

impl Keys {
    /// Makes a new serving certificate when its names changed or a third of its life is left.
    /// Returns whether it did.
    pub fn renew_serving(&self, now: SystemTime) -> Result<bool, PkiError> {
        pki::files::ensure_serving(&self.serving, &self.authority, "drover", &self.names, now)
    }
}

impl DataFolder {
    /// Creates the folders that do not exist, readable by their owner only.
    ///
    /// # Errors
    /// A folder cannot be created or made private.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        for folder in [path.to_owned(), path.join("pki"), path.join("storage")] {
            make_private(&folder)?;
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The folder of the embedded storage.
    pub fn storage(&self) -> PathBuf {
        self.path.join("storage")
    }

    /// The file with the keys of the encryption at rest.
    pub fn encryption_keys(&self) -> PathBuf {
        self.path.join("encryption.keys")
    }

    /// The file that a running server locks, so that no second one uses the folder.
    pub fn server_lock(&self) -> PathBuf {
        self.path.join("server.lock")
    }

    /// Reads the keys, making those that are missing; the serving certificate is renewed when its
    /// names changed.
    pub fn keys(&self, names: &[String]) -> anyhow::Result<Keys> {
        let pki = self.path.join("pki");
        let now = SystemTime::now();
        let authority = CertificateFiles::in_directory(&pki, "ca");
        let authority = pki::files::ensure_authority(&authority, "drover", now)
            .context("cannot prepare the certificate authority")?;
        let serving = CertificateFiles::in_directory(&pki, "serving");
        let key_file = pki.join("service-account-key.pem");
        let service_account_key_pem = match std::fs::read_to_string(&key_file) {
            Ok(pem) => pem,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let pem = SigningKey::generate_pem();
                pki::files::write_private(&key_file, pem.as_bytes())?;
                pem
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot read \"{}\"", key_file.display()));
            }
        };
        let names = names.to_vec();
        let keys = Keys { authority, serving, names, service_account_key_pem };
        keys.renew_serving(now).context("cannot prepare the serving certificate")?;
        Ok(keys)
    }

    /// Says what clients verify the server with; no file for an authority that every system trusts.
    pub fn write_authority(&self, pem: &str) -> anyhow::Result<()> {
        let file = self.path.join(CA_FILE);
        if !pem.is_empty() {
            return Ok(pki::files::write_public(&file, pem.as_bytes())?);
        }
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove \"{}\"", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// The id of this installation, made at the first start.
    pub fn install_id(&self) -> anyhow::Result<String> {
        let file = self.path.join("install-id");
        match std::fs::read_to_string(&file) {
            Ok(id) => Ok(id.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let id = identity::random_text(INSTALL_ID_LENGTH);
                pki::files::write_public(&file, id.as_bytes())?;
                Ok(id)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read \"{}\"", file.display())),
        }
    }

    /// Says where the server is.
    pub fn announce(&self, url: &str) -> anyhow::Result<()> {
        let content = json!({ "url": url, "pid": std::process::id() });
        pki::files::write_public(&self.path.join(SERVER_FILE), format!("{content}\n").as_bytes())?;
        Ok(())
    }

    /// A kubeconfig with a token of the administrator, in place of that of an earlier start.
    pub fn write_kubeconfig(&self, url: &str, ca_pem: &str, token: &str) -> anyhow::Result<()> {
        let content = kubeconfig(url, ca_pem, token);
        pki::files::write_private(&self.path.join(KUBECONFIG_FILE), content.as_bytes())?;
        Ok(())
    }

    /// The token in the kubeconfig that an earlier start wrote.
    pub fn kubeconfig_token(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.path.join(KUBECONFIG_FILE)).ok()?;
        let config: serde_json::Value = serde_saphyr::from_str(&text).ok()?;
        config["users"][0]["user"]["token"].as_str().map(str::to_owned)
    }
}

fn kubeconfig(url: &str, ca_pem: &str, token: &str) -> String {
    use base64::Engine;
    let mut cluster = json!({ "server": url });
    if !ca_pem.is_empty() {
        let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
        cluster["certificate-authority-data"] = ca.into();
    }
    // JSON is YAML, and needs no quoting rules of its own.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "drover",
            "cluster": cluster,
        }],
        "users": [{ "name": "admin", "user": { "token": token } }],
        "contexts": [{ "name": "drover", "context": { "cluster": "drover", "user": "admin" } }],
        "current-context": "drover",
    });
    format!("{config:#}\n")
}
/// Allows this process as many open files as the system lets it: each connection is one, and most
/// systems begin with 1,024.
pub fn raise_open_max() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the number of open files; it bounds connections");
    }
}
