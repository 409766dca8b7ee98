//! Encryption at rest: a [`Storage`] that seals each value before another one stores it.
//!
//! Keys of the storage, revisions, times to live and sizes stay readable; every value is sealed,
//! whatever it is, so that no kind of object can be forgotten. A value is bound to its key and
//! cannot be moved to another one. Values that were stored before are read as plain values, and
//! [`Encrypted::rewrite`] seals them; it also seals values of earlier encryption keys with the
//! current one.
//!
//! Not protected: a writer to the storage can replace a value by an older value of the same key, or
//! by a plain one; memory holds plain values.
//!
//! The format of a sealed value is in `envelope`, that of the key file in `keys`.

mod envelope;
mod keys;
mod rewrite;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, future};

use crate::{
    Event, Expect, KeyValue, RangeRequest, RangeResponse, Revision, Storage, StorageError,
    VALUE_SIZE_MAX, WatchItem, WatchStream,
};
pub use envelope::OVERHEAD;
use envelope::{OpenError, Sealer};
pub use keys::{EncryptionKeys, KEYS_MAX, KeyFileError};
pub use rewrite::Rewritten;

/// Key of a value that shows whether a storage is encrypted, and whether the given keys open it.
/// Without it, an empty or unread storage would be written with a wrong key.
const CHECK: &str = "/encryption/check";
/// Its value, sealed.
const CHECK_VALUE: &str = "opens";

/// Why an encrypted storage cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    #[error(
        "the storage is encrypted with the key {needed}, which is not among those given ({given}); \
         add the line of that key to the key file: without it the data cannot be read"
    )]
    UnknownKey { needed: String, given: String },
    #[error("the storage's check of its encryption key (\"{CHECK}\") is damaged; restore a backup")]
    Damaged,
    #[error("cannot determine how the storage is encrypted")]
    Storage(#[from] StorageError),
}

/// Whether values of this storage were ever sealed, so that it needs the keys.
///
/// # Errors
/// Those of [`Storage::get`].
pub async fn is_encrypted(storage: &dyn Storage) -> Result<bool, StorageError> {
    Ok(storage.get(CHECK, None).await?.1.is_some())
}

/// A [`Storage`] that seals its values in another storage. Several processes may use one storage in
/// this way if they have the same keys.
///
/// A read or watch fails with `Failed` at a value whose encryption key is unknown or that was
/// tampered with; the reason names the key of the value.
pub struct Encrypted {
    inner: Arc<dyn Storage>,
    sealer: Arc<Sealer>,
}

impl Encrypted {
    /// Encrypts all values that are written to `inner` from now on. The first call writes a mark to
    /// it.
    ///
    /// # Errors
    /// `inner` was encrypted before and `keys` do not open it: add the missing key. Or the storage
    /// failed.
    pub async fn open(
        inner: Arc<dyn Storage>,
        keys: EncryptionKeys,
    ) -> Result<Arc<Self>, EncryptionError> {
        let sealer = Arc::new(Sealer::new(keys));
        let check = match inner.get(CHECK, None).await?.1 {
            Some(found) => found,
            None => {
                let mark = sealer.seal(CHECK, CHECK_VALUE.as_bytes());
                match inner.put(CHECK, mark, Expect::Absent, None).await {
                    // Another process was first; it must have the same keys.
                    Err(StorageError::Unexpected { current: Some(found) }) => found,
                    written => written?,
                }
            }
        };
        match sealer.open(CHECK, &check.value) {
            Ok(value) if value == CHECK_VALUE => Ok(Arc::new(Self { inner, sealer })),
            Err(OpenError::UnknownKey { id }) => Err(EncryptionError::UnknownKey {
                needed: id,
                given: sealer.keys().ids().collect::<Vec<_>>().join(", "),
            }),
            Ok(_) | Err(OpenError::Damaged) => Err(EncryptionError::Damaged),
        }
    }

    /// The id of the key with which values are sealed.
    pub fn write_key_id(&self) -> String {
        self.sealer.keys().ids().next().expect("there is always one")
    }
}

impl Sealer {
    fn state(&self, sealed: KeyValue) -> Result<KeyValue, StorageError> {
        let value = self.open(&sealed.key, &sealed.value).map_err(|error| {
            let reason = format!("the value of \"{}\" {error}", sealed.key);
            StorageError::Failed { reason }
        })?;
        Ok(KeyValue { value, ..sealed })
    }

    fn open_state(&self, sealed: Option<KeyValue>) -> Result<Option<KeyValue>, StorageError> {
        sealed.map(|sealed| self.state(sealed)).transpose()
    }

    fn refusal(&self, error: StorageError) -> StorageError {
        let StorageError::Unexpected { current } = error else { return error };
        self.open_state(current)
            .map_or_else(|error| error, |current| StorageError::Unexpected { current })
    }

    fn event(&self, sealed: &Event) -> Result<Arc<Event>, StorageError> {
        Ok(Arc::new(Event {
            revision: sealed.revision,
            key: Arc::clone(&sealed.key),
            previous: self.open_state(sealed.previous.clone())?,
            current: self.open_state(sealed.current.clone())?,
        }))
    }

    fn item(&self, sealed: WatchItem) -> Result<WatchItem, StorageError> {
        match sealed {
            WatchItem::Progress(revision) => Ok(WatchItem::Progress(revision)),
            WatchItem::Events(events) => {
                let opened: Result<_, _> = events.iter().map(|event| self.event(event)).collect();
                Ok(WatchItem::Events(opened?))
            }
        }
    }
}

impl Storage for Encrypted {
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StorageError>> {
        self.inner.revision()
    }

    fn get<'a>(
        &'a self,
        key: &'a str,
        at: Option<Revision>,
    ) -> BoxFuture<'a, Result<(Revision, Option<KeyValue>), StorageError>> {
        async move {
            let (revision, found) = self.inner.get(key, at).await?;
            Ok((revision, self.sealer.open_state(found)?))
        }
        .boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StorageError>> {
        async move {
            let RangeResponse { revision, items, remaining } = self.inner.range(request).await?;
            let items: Result<_, _> =
                items.into_iter().map(|item| self.sealer.state(item)).collect();
            Ok(RangeResponse { revision, items: items?, remaining })
        }
        .boxed()
    }

    fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> BoxFuture<'_, Result<KeyValue, StorageError>> {
        let size = value.len();
        if size > VALUE_SIZE_MAX {
            return future::ready(Err(StorageError::TooLarge { size })).boxed();
        }
        let written = self.inner.put(key, self.sealer.seal(key, &value), expect, ttl);
        async move {
            match written.await {
                Ok(sealed) => Ok(KeyValue { value, ..sealed }),
                Err(error) => Err(self.sealer.refusal(error)),
            }
        }
        .boxed()
    }

    fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> BoxFuture<'_, Result<(Revision, KeyValue), StorageError>> {
        let deleted = self.inner.delete(key, expect);
        async move {
            let (revision, last) = deleted.await.map_err(|error| self.sealer.refusal(error))?;
            Ok((revision, self.sealer.state(last)?))
        }
        .boxed()
    }

    fn watch(
        &self,
        prefix: &str,
        after: Revision,
    ) -> BoxFuture<'_, Result<WatchStream, StorageError>> {
        let opened = self.inner.watch(prefix, after);
        let sealer = Arc::clone(&self.sealer);
        async move {
            let items = opened.await?.scan(false, move |ended, item| {
                let item = (!*ended).then(|| item.and_then(|item| sealer.item(item)));
                *ended |= matches!(item, Some(Err(_)));
                future::ready(item)
            });
            Ok(items.boxed())
        }
        .boxed()
    }

    fn compacted(&self) -> Revision {
        self.inner.compacted()
    }

    fn expiring(&self) -> BoxFuture<'_, Result<Vec<(String, Duration)>, StorageError>> {
        self.inner.expiring()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StorageError>> {
        self.inner.compact(revision)
    }
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted").field("keys", self.sealer.keys()).finish_non_exhaustive()
    }
}
