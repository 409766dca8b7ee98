//! Forgetting the past: on request, and each few minutes by one of the processes that share the
//! etcd.
//!
//! Compaction concerns the whole etcd. Which process does it is decided as kube-apiserver decides
//! it, with the same key, so that both may share an etcd: whoever finds the key at the version that
//! it saw last writes it, and compacts to the revision that was the newest at the time before.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::wire::{self, Compare, Request, RequestOp, Response};
use super::{Shared, watch};
use crate::{Revision, StorageError};

/// Where the processes meet; its value is a revision in decimal digits.
const ELECTION_KEY: &[u8] = b"compact_rev_key";
/// How long a compaction on request waits for the watches of this process, so that they do not
/// lose what is on its way to them.
const WATCHES_WAIT_MAX: Duration = Duration::from_secs(5);

impl Shared {
    pub(super) async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let newest = self.revision().await?;
        if revision > newest {
            return Err(StorageError::Future { wanted: revision, current: newest });
        }
        let until = Instant::now() + WATCHES_WAIT_MAX;
        let watches = std::mem::take(&mut *self.watches.lock());
        for mut reached in watches {
            // One that ended needs nothing; one that is slow ends with `Compacted`.
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
        // Twice is as good as once.
        match self.client.read::<_, wire::CompactionResponse>(wire::COMPACT, request).await {
            Ok(_) => self.note_compacted(revision),
            Err(StorageError::Compacted { .. }) => {}
            Err(StorageError::Future { current, .. }) => {
                return Err(StorageError::Future { wanted: revision, current });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The compaction point, or one above `wanted` that it has reached.
    pub(super) async fn compacted_above(&self, wanted: Revision) -> Result<Revision, StorageError> {
        let known = self.compacted();
        if known > wanted {
            return Ok(known);
        }
        let told = watch::compact_revision(self, wanted).await?;
        self.note_compacted(told);
        Ok(told)
    }
}

/// Takes part in the election until the storage is closed or dropped.
pub(super) async fn run(shared: Weak<Shared>, every: Duration) {
    let (mut version, mut revision) = (0, 0);
    let Some(mut closed) = shared.upgrade().map(|shared| shared.client.closed()) else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = closed.wait_for(|closed| *closed) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        match turn(&shared, version, revision).await {
            Ok(next) => (version, revision) = next,
            Err(error) => tracing::warn!(%error, "etcd was not compacted; trying again later"),
        }
    }
}

/// One round: compacts to `revision` if nobody did since the election key had `version`. Answers
/// the key's version and the newest revision, for the next round.
async fn turn(
    shared: &Arc<Shared>,
    version: i64,
    revision: Revision,
) -> Result<(i64, Revision), StorageError> {
    let key = Bytes::from_static(ELECTION_KEY);
    let put = wire::PutRequest { key: key.clone(), value: revision.to_string().into(), lease: 0 };
    let get = wire::RangeRequest { key: key.clone(), ..Default::default() };
    let op = |request| RequestOp { request: Some(request) };
    let transaction = wire::TxnRequest {
        compare: vec![Compare::version(key, version)],
        success: vec![op(Request::Put(put))],
        failure: vec![op(Request::Range(get))],
    };
    let answer: wire::TxnResponse = shared.client.write(wire::TXN, transaction).await?;
    let newest = answer.header.as_ref().map_or(0, |header| header.revision as Revision);
    if answer.succeeded {
        shared.compact_now(revision).await?;
        return Ok((version + 1, newest));
    }
    let found = answer.responses.iter().find_map(|one| match &one.response {
        Some(Response::Range(range)) => range.kvs.first(),
        _ => None,
    });
    // The process that wrote the key compacts to the revision in its value.
    let text = found.and_then(|found| std::str::from_utf8(&found.value).ok());
    if let Some(compacted) = text.and_then(|text| text.parse().ok()) {
        shared.note_compacted(compacted);
    }
    Ok((found.map_or(0, |found| found.version), newest))
}
