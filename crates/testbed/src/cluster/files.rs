//! The folder of one cluster: certificates, keys, kubeconfigs, logs and etcd's data.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::certificates::{Authority, Issued, TokenKeys};
use crate::{Error, Program, kubeconfig};

/// The names under which clients and pods reach the API server.
const API_SERVER_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A cluster's folder, and the authority whose key is in it.
pub(crate) struct Files {
    folder: PathBuf,
    // Removes the folder when dropped.
    _temporary: Option<TempDir>,
    authority: Authority,
    admin: Issued,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Files").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Files {
    /// Creates every file that the components need before they start.
    pub(super) fn create(
        folder: Option<&Path>,
        address: Ipv4Addr,
        server_url: &str,
    ) -> Result<Self, Error> {
        let (folder, temporary) = match folder {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
                (folder.to_owned(), None)
            }
            None => {
                let made = tempfile::Builder::new()
                    .prefix("drover-testbed-")
                    .tempdir()
                    .map_err(Error::file("create a folder in", std::env::temp_dir()))?;
                (made.path().to_owned(), Some(made))
            }
        };
        let authority = Authority::new("testbed-ca")?;
        let admin = authority.client("admin", &["system:masters"])?;
        let files = Self { folder, _temporary: temporary, authority, admin };
        for name in ["pki", "logs"] {
            let path = files.path(name);
            fs::create_dir_all(&path).map_err(Error::file("create", path))?;
        }
        files.write_certificates(&address.to_string())?;
        files.write_kubeconfigs(server_url)?;
        Ok(files)
    }

    fn write_certificates(&self, address: &str) -> Result<(), Error> {
        let authority = &self.authority;
        self.write_secret("pki/ca.pem", authority.certificate_pem())?;
        self.write_secret("pki/ca.key", &authority.key_pem())?;
        let mut names = API_SERVER_NAMES.to_vec();
        if !names.contains(&address) {
            names.push(address);
        }
        self.write_pair("api-server", &authority.server("kube-apiserver", &names)?)?;
        let manager = authority.server("kube-controller-manager", &[address])?;
        self.write_pair("controller-manager", &manager)?;
        self.write_pair("scheduler", &authority.server("kube-scheduler", &[address])?)?;
        let kubelet_client = authority.client("kube-apiserver", &["system:masters"])?;
        self.write_pair("kubelet-client", &kubelet_client)?;

        // Aggregated API servers trust this authority for identities in headers, so it must not be
        // the one that signs users.
        let front_proxy = Authority::new("testbed-front-proxy-ca")?;
        self.write_secret("pki/front-proxy-ca.pem", front_proxy.certificate_pem())?;
        self.write_pair("front-proxy", &front_proxy.client("front-proxy-client", &[])?)?;

        let tokens = TokenKeys::new()?;
        self.write_secret("pki/tokens.pub", &tokens.public_pem)?;
        self.write_secret("pki/tokens.key", &tokens.private_pem)?;
        Ok(())
    }

    fn write_kubeconfigs(&self, server_url: &str) -> Result<(), Error> {
        let ca = self.ca_pem();
        let admin = kubeconfig::render(server_url, ca, "admin", &self.admin);
        self.write_secret("admin.kubeconfig", &admin)?;
        for (file, user) in [
            ("controller-manager.kubeconfig", "system:kube-controller-manager"),
            ("scheduler.kubeconfig", "system:kube-scheduler"),
        ] {
            let client = self.authority.client(user, &[])?;
            self.write_secret(file, &kubeconfig::render(server_url, ca, user, &client))?;
        }
        Ok(())
    }

    pub(crate) fn write_pair(&self, name: &str, pair: &Issued) -> Result<(), Error> {
        self.write_secret(&format!("pki/{name}.pem"), &pair.certificate_pem)?;
        self.write_secret(&format!("pki/{name}.key"), &pair.key_pem)?;
        Ok(())
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write_secret(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(Error::file("write", &path))?;
        Ok(path)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn log(&self, program: Program) -> PathBuf {
        self.folder.join("logs").join(format!("{}.log", program.name()))
    }

    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn admin(&self) -> &Issued {
        &self.admin
    }
}
