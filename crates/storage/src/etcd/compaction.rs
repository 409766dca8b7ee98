//! Compaction: on request, and every few minutes by one of the processes that share the etcd.
//!
//! Compaction affects the whole etcd. The process is elected like in kube-apiserver, with the same
//! key, so that both can share an etcd: a process that finds the key at the version that it saw
//! last writes the key, and compacts to the revision that was the newest in the round before.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::wire::{self, Compare, OpRequest, OpResponse, RequestOp};
use super::{EtcdShared, watch};
use crate::{Revision, StorageError};

/// The key of the election; its value is a revision in decimal digits.
const ELECTION_KEY: &[u8] = b"compact_rev_key";
/// How long a compaction on request waits for the watches of this process, so that they do not lose
/// pending events.
const WATCHES_WAIT_MAX: Duration = Duration::from_secs(5);

impl EtcdShared {
    pub(super) async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let newest = self.revision().await?;
        if revision > newest {
            return Err(StorageError::Future { requested: revision, current: newest });
        }
        let until = Instant::now() + WATCHES_WAIT_MAX;
        let watches = std::mem::take(&mut *self.watches.lock());
        for mut reached in watches {
            // An ended watch needs nothing; a slow watch ends with `Compacted`.
            let _ = timeout_at(until, reached.wait_for(|reached| *reached >= revision)).await;
            if reached.has_changed().is_ok() {
                self.watches.lock().push(reached);
            }
        }
        self.compact_now(revision).await
    }

    async fn compact_now(&self, revision: Revision) -> Result<(), StorageError> {
        if revision == 0 {
            return Ok(());
        }
        let request = wire::CompactionRequest { revision: revision as i64 };
        // Compacting twice is harmless.
        match self.client.read::<_, wire::CompactionResponse>(wire::COMPACT, request).await {
            Ok(_) => self.note_compacted(revision),
            Err(StorageError::Compacted { .. }) => {}
            Err(StorageError::Future { current, .. }) => {
                return Err(StorageError::Future { requested: revision, current });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The compaction point, or a former one above `revision`.
    pub(super) async fn compacted_above(
        &self,
        revision: Revision,
    ) -> Result<Revision, StorageError> {
        let known = self.compacted();
        if known > revision {
            return Ok(known);
        }
        let compacted = watch::compact_revision(self, revision).await?;
        self.note_compacted(compacted);
        Ok(compacted)
    }
}

/// Takes part in the election until the storage is closed or dropped.
pub(super) async fn run(shared: Weak<EtcdShared>, every: Duration) {
    let (mut version, mut revision) = (0, 0);
    let Some(mut closed) = shared.upgrade().map(|shared| shared.client.watch_closed()) else {
        return;
    };
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = closed.wait_for(|closed| *closed) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        match compact_round(&shared, version, revision).await {
            Ok(next) => (version, revision) = next,
            Err(error) => tracing::warn!(%error, "etcd was not compacted; retrying later"),
        }
    }
}

/// One round: compacts to `revision` if no process did since the election key had `version`.
/// Returns the key's version and the newest revision, for the next round.
async fn compact_round(
    shared: &Arc<EtcdShared>,
    version: i64,
    revision: Revision,
) -> Result<(i64, Revision), StorageError> {
    let key = Bytes::from_static(ELECTION_KEY);
    let put = wire::PutRequest { key: key.clone(), value: revision.to_string().into(), lease: 0 };
    let get = wire::RangeRequest { key: key.clone(), ..Default::default() };
    let op = |request| RequestOp { request: Some(request) };
    let transaction = wire::TxnRequest {
        compare: vec![Compare::version(key, version)],
        success: vec![op(OpRequest::Put(put))],
        failure: vec![op(OpRequest::Range(get))],
    };
    let response: wire::TxnResponse = shared.client.write(wire::TXN, transaction).await?;
    let newest = response.header.as_ref().map_or(0, |header| header.revision as Revision);
    if response.succeeded {
        shared.compact_now(revision).await?;
        return Ok((version + 1, newest));
    }
    let found = response.responses.iter().find_map(|one| match &one.response {
        Some(OpResponse::Range(range)) => range.kvs.first(),
        _ => None,
    });
    // The process that wrote the key compacts to the revision in its value.
    let text = found.and_then(|found| std::str::from_utf8(&found.value).ok());
    if let Some(compacted) = text.and_then(|text| text.parse().ok()) {
        shared.note_compacted(compacted);
    }
    Ok((found.map_or(0, |found| found.version), newest))
}
