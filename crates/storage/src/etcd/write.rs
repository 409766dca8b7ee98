//! Writes: one transaction each, which compares, and answers what it found when that did not hold.

use std::time::Duration;

use bytes::Bytes;

use super::wire::{self, Compare, Request, RequestOp, Response};
use super::{Shared, failed, leases};
use crate::{Expect, KeyValue, Revision, StorageError};

impl Shared {
    pub(super) async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> Result<KeyValue, StorageError> {
        let size = value.len();
        let lease = match ttl {
            None => 0,
            Some(ttl) => leases::grant(&self.client, ttl).await?,
        };
        let wire_key = self.keys.key(key);
        let put = wire::PutRequest { key: wire_key.clone(), value: value.clone(), lease };
        // Read after the put, for the revision of the key's creation.
        let written = wire::RangeRequest { keys_only: true, ..single(&wire_key) };
        let transaction = wire::TxnRequest {
            compare: compare(&wire_key, expect),
            success: vec![op(Request::Put(put)), op(Request::Range(written))],
            failure: vec![op(Request::Range(single(&wire_key)))],
        };
        let answer: wire::TxnResponse = match self.client.write(wire::TXN, transaction).await {
            Err(StorageError::TooLarge { .. }) => return Err(StorageError::TooLarge { size }),
            Err(error @ StorageError::Full { .. }) => {
                return Err(self.after_full(key, expect, error).await);
            }
            other => other?,
        };
        if !answer.succeeded {
            return Err(StorageError::Unexpected { current: self.found(&answer) });
        }
        let mut written = self.found(&answer).ok_or_else(|| odd("a put"))?;
        written.value = value;
        Ok(written)
    }

    /// etcd refuses the write that exceeds its quota, and carries it out all the same; later ones
    /// it only refuses. Which of them this was can be seen.
    async fn after_full(&self, key: &str, expect: Expect, error: StorageError) -> StorageError {
        let expected = match expect {
            Expect::Absent => None,
            Expect::Revision(revision) => Some(revision),
        };
        match self.get(key, None).await {
            Ok((_, found)) if found.as_ref().map(|found| found.mod_revision) == expected => error,
            _ => StorageError::Unknown { reason: error.to_string() },
        }
    }

    pub(super) async fn delete(
        &self,
        key: &str,
        expect: Revision,
    ) -> Result<(Revision, KeyValue), StorageError> {
        let wire_key = self.keys.key(key);
        let delete = wire::DeleteRangeRequest { key: wire_key.clone(), prev_kv: true };
        let transaction = wire::TxnRequest {
            compare: compare(&wire_key, Expect::Revision(expect)),
            success: vec![op(Request::DeleteRange(delete))],
            failure: vec![op(Request::Range(single(&wire_key)))],
        };
        let answer: wire::TxnResponse = self.client.write(wire::TXN, transaction).await?;
        if !answer.succeeded {
            return Err(StorageError::Unexpected { current: self.found(&answer) });
        }
        let revision = answer.header.as_ref().map(|header| header.revision as Revision);
        let last = self.found(&answer);
        revision.zip(last).ok_or_else(|| odd("a deletion"))
    }

    /// The one item that a transaction's answer tells.
    fn found(&self, answer: &wire::TxnResponse) -> Option<KeyValue> {
        let items = answer.responses.iter().flat_map(|one| match &one.response {
            Some(Response::Range(range)) => range.kvs.as_slice(),
            Some(Response::DeleteRange(deleted)) => deleted.prev_kvs.as_slice(),
            Some(Response::Put(_)) | None => &[],
        });
        items.filter_map(|kv| self.keys.item(kv)).next()
    }
}

fn compare(key: &Bytes, expect: Expect) -> Vec<Compare> {
    match expect {
        Expect::Absent => vec![Compare::absent(key.clone())],
        // An absent key compares as one of revision 0.
        Expect::Revision(revision) => vec![
            Compare::present(key.clone()),
            Compare::mod_revision(key.clone(), i64::try_from(revision).unwrap_or(i64::MAX)),
        ],
    }
}

fn single(key: &Bytes) -> wire::RangeRequest {
    wire::RangeRequest { key: key.clone(), ..Default::default() }
}

fn op(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn odd(what: &str) -> StorageError {
    failed(format!("etcd acknowledged {what} without the state"))
}
