//! The keys that the storage is encrypted with: from a file that is named, or one in the data
//! folder that the first start makes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use storage::encryption::{Encrypted, EncryptionKeys, is_encrypted};
use storage::{Storage, StorageError};
use tokio_util::sync::CancellationToken;

use crate::files::DataFolder;

/// How often a long rewriting says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Encrypts `storage` with the keys of `file`, or of the data folder when none is named.
///
/// # Errors
/// A file without usable keys; keys that do not open what is stored; no file in the data folder
/// though the storage is encrypted.
pub async fn open(
    storage: Arc<dyn Storage>,
    file: Option<&Path>,
    folder: &DataFolder,
) -> anyhow::Result<Arc<Encrypted>> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => local_file(&*storage, folder).await?,
    };
    let text = std::fs::read_to_string(&file).map(zeroize::Zeroizing::new);
    let text = text.with_context(|| format!("cannot read the key file \"{}\"", file.display()))?;
    let keys = EncryptionKeys::parse(&text)
        .with_context(|| format!("the key file \"{}\" cannot be used", file.display()))?;
    let encrypted = Encrypted::open(storage, keys).await;
    encrypted.with_context(|| {
        format!("the storage does not open with the key file \"{}\"", file.display())
    })
}

/// The file in the data folder, made when nothing was encrypted yet.
async fn local_file(storage: &dyn Storage, folder: &DataFolder) -> anyhow::Result<PathBuf> {
    let file = folder.encryption_keys();
    if file.exists() {
        return Ok(file);
    }
    anyhow::ensure!(
        !is_encrypted(storage).await.context("cannot look up whether the storage is encrypted")?,
        "the storage is encrypted, and its key file \"{}\" is not there; put it back from a \
         backup, or name the one that other servers use with --encryption-key-file: without it \
         the data cannot be read",
        file.display()
    );
    pki::files::write_private(&file, EncryptionKeys::generate_file().as_bytes())?;
    tracing::info!(
        file = %file.display(),
        "made the key that the storage is encrypted with; a backup is of no use without it"
    );
    Ok(file)
}

/// Encrypts what is still plain or of an earlier key, until all is done or `stop`; a later start
/// goes on with the rest.
pub async fn rewrite(storage: Arc<Encrypted>, stop: CancellationToken) {
    let mut reported_at = Instant::now();
    let rewriting = storage.rewrite(|now| {
        if reported_at.elapsed() >= PROGRESS_EVERY {
            reported_at = Instant::now();
            tracing::info!(seen = now.seen, rewritten = now.rewritten, "encrypting the storage");
        }
    });
    let key = storage.write_key_id();
    tokio::select! {
        () = stop.cancelled() => {}
        done = rewriting => match done {
            Ok(done) => tracing::info!(
                values = done.seen, rewritten = done.rewritten, key,
                "every value is encrypted with the first key"
            ),
            Err(StorageError::Closed) => {}
            Err(error) => tracing::error!(
                %error, key,
                "not every value is encrypted with the first key; keep the others in the key file"
            ),
        },
    }
}
