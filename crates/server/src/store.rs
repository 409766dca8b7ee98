//! The storage that the settings name: opened, made sure of, closed; and copied to another.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use storage::copy::{Copied, copy};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::encryption::{self, Encrypted};
use storage::etcd::{EtcdConfig, EtcdStorage, EtcdTls};
use storage::{Expect, Storage, StorageError};

use crate::files::DataFolder;
use crate::settings::DATA_DIR;

/// The storage in the data folder.
pub const EMBEDDED: &str = "embedded";
/// Says in a shared storage whose it is; its value is the installation's id.
const INSTALLATION: &str = "/server/installation";

/// Which storage, and how its members are trusted.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAddress {
    /// `embedded` or `etcd://…`.
    #[serde(rename = "storage")]
    pub address: String,
    pub storage_ca: Option<PathBuf>,
    pub storage_cert: Option<PathBuf>,
    pub storage_key: Option<PathBuf>,
}

impl StorageAddress {
    /// What cannot work, each with the name of the setting.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.address.starts_with("etcd://") {
            if let Err(error) = self.address.parse::<EtcdConfig>() {
                problems.push(format!("storage: {error}"));
            }
        } else if self.address != EMBEDDED {
            problems.push(format!(
                "storage: \"{}\" is neither \"{EMBEDDED}\" nor \"etcd://HOST:PORT,…\"",
                self.address
            ));
        } else if self.storage_ca.is_some() {
            problems.push("storage-ca: the embedded storage has none; leave it out".to_owned());
        }
        if self.storage_cert.is_some() != self.storage_key.is_some() {
            problems.push(
                "storage-cert, storage-key: one is of no use without the other; give both"
                    .to_owned(),
            );
        }
        if self.storage_cert.is_some() && self.storage_ca.is_none() {
            problems.push("storage-cert: needs storage-ca too".to_owned());
        }
        problems
    }

    fn etcd(&self) -> anyhow::Result<EtcdConfig> {
        let mut config: EtcdConfig = self.address.parse()?;
        if let Some(ca) = &self.storage_ca {
            let client_pem = match (&self.storage_cert, &self.storage_key) {
                (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
                _ => None,
            };
            config.tls = Some(EtcdTls { ca_pem: read(ca)?, client_pem });
        }
        Ok(config)
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read \"{}\"", file.display()))
}

/// An open storage.
pub enum Store {
    Embedded(Arc<EmbeddedStorage>),
    /// With the lock of the data folder, when it is served.
    Etcd(Arc<EtcdStorage>, Option<File>),
}

impl Store {
    /// Opens it, whatever is in it.
    pub async fn open(address: &StorageAddress, folder: &DataFolder) -> anyhow::Result<Self> {
        if address.address == EMBEDDED {
            let path = folder.storage();
            let storage = EmbeddedStorage::open(&path, EmbeddedConfig::default())
                .with_context(|| format!("cannot open the storage in \"{}\"", path.display()))?;
            return Ok(Self::Embedded(storage));
        }
        let storage = EtcdStorage::connect(address.etcd()?).await;
        let storage = storage.with_context(|| format!("cannot use {}", address.address))?;
        Ok(Self::Etcd(storage, None))
    }

    /// Opens it for the installation that `folder` is of, and encrypts what is written; see
    /// [`crate::encryption::open`].
    pub async fn open_to_serve(
        address: &StorageAddress,
        key_file: Option<&Path>,
        folder: &DataFolder,
    ) -> anyhow::Result<(Self, Arc<Encrypted>)> {
        let mut store = Self::open(address, folder).await?;
        anyhow::ensure!(
            !storage::copy::is_unfinished(&*store.storage()).await?,
            "the storage holds a copy that did not end; empty it, then copy again"
        );
        if let Self::Etcd(_, held) = &mut store {
            *held = Some(lock(&folder.server_lock())?);
        }
        let encrypted = crate::encryption::open(store.storage(), key_file, folder).await?;
        if matches!(store, Self::Etcd(..)) {
            claim(&*encrypted, &folder.install_id()?).await?;
        }
        Ok((store, encrypted))
    }

    /// The storage for the API server.
    pub fn storage(&self) -> Arc<dyn Storage> {
        match self {
            Self::Embedded(storage) => storage.clone(),
            Self::Etcd(storage, _) => storage.clone(),
        }
    }

    /// Closes the storage: later requests to it fail.
    pub fn close(&self) {
        match self {
            Self::Embedded(storage) => storage.close(),
            Self::Etcd(storage, _) => storage.close(),
        }
    }
}

/// Certificates and keys are in the data folder, so a storage goes with one installation.
async fn claim(storage: &dyn Storage, id: &str) -> anyhow::Result<()> {
    let value = Bytes::copy_from_slice(id.as_bytes());
    match storage.put(INSTALLATION, value, Expect::Absent, None).await {
        Ok(_) => Ok(()),
        Err(StorageError::Unexpected { current: Some(current) }) if current.value == id => Ok(()),
        Err(StorageError::Unexpected { current: Some(current) }) => anyhow::bail!(
            "the storage belongs to the installation {}, the data folder to {id}; start with that \
             installation's data folder, or name another prefix of keys (etcd://HOST:PORT/PREFIX)",
            String::from_utf8_lossy(&current.value)
        ),
        Err(error) => Err(error).context("cannot note whose the storage is"),
    }
}

/// Lets one server at a time use the data folder, as the embedded storage's own lock does. It ends
/// with the process.
fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::options().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot open \"{}\"", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another server holds \"{}\"; end it, or choose another data directory",
            path.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock \"{}\"", path.display()))
        }
    }
}

/// `drover storage …`
#[derive(Args, Debug)]
pub struct StorageArgs {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(clap::Subcommand, Debug)]
enum StorageCommand {
    /// Copy everything from one storage to another, empty one, while no server runs
    Copy(CopyArgs),
}

#[derive(Args, Debug)]
struct CopyArgs {
    /// What is copied: `embedded`, or `etcd://host:port,…[/prefix]`
    #[arg(long, value_name = "STORAGE")]
    from: String,
    /// Where to: `embedded`, or `etcd://host:port,…[/prefix]`; must be empty
    #[arg(long, value_name = "STORAGE")]
    to: String,
    /// Folder of the embedded storage [default: /var/lib/drover]
    #[arg(long, env = "DROVER_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Authorities of etcd's members; without it nothing is encrypted
    #[arg(long, env = "DROVER_STORAGE_CA", value_name = "FILE")]
    storage_ca: Option<PathBuf>,
    /// Certificate that etcd is shown
    #[arg(long, env = "DROVER_STORAGE_CERT", value_name = "FILE")]
    storage_cert: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, env = "DROVER_STORAGE_KEY", value_name = "FILE")]
    storage_key: Option<PathBuf>,
}

impl CopyArgs {
    fn address(&self, address: &str) -> anyhow::Result<StorageAddress> {
        let mut address = StorageAddress { address: address.to_owned(), ..Default::default() };
        if address.address != EMBEDDED {
            address.storage_ca.clone_from(&self.storage_ca);
            address.storage_cert.clone_from(&self.storage_cert);
            address.storage_key.clone_from(&self.storage_key);
        }
        let problems = address.problems();
        anyhow::ensure!(problems.is_empty(), problems.join("; "));
        Ok(address)
    }
}

/// Runs a command about storages, and reports on standard output what it did.
pub async fn run(args: StorageArgs) -> anyhow::Result<()> {
    let StorageCommand::Copy(args) = args.command;
    let (from, to) = (args.address(&args.from)?, args.address(&args.to)?);
    anyhow::ensure!(from.address != to.address, "the source is the target; name two storages");
    let folder = DataFolder::open(&args.data_dir.unwrap_or_else(|| DATA_DIR.into()))?;
    // A server on an etcd would change the source.
    let _lock = lock(&folder.server_lock())?;
    let from = Store::open(&from, &folder).await?;
    let to = Store::open(&to, &folder).await?;
    let encrypted = encryption::is_encrypted(&*from.storage()).await?;
    let copied = copy(&*from.storage(), &*to.storage()).await;
    from.close();
    to.close();
    let Copied { keys, bytes, expiring, source_revision, target_revision } = copied?;
    println!(
        "copied {keys} keys of {bytes} bytes, {expiring} of them with a time to live; revision \
         {source_revision} of the source is {target_revision} in the target"
    );
    if encrypted {
        println!(
            "values are encrypted in the target as in the source: it needs the same key file, \
             \"{}\" unless you name one with --encryption-key-file",
            folder.encryption_keys().display()
        );
    }
    Ok(())
}
