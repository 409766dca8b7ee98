//! Writes: one transaction each, which compares, and returns the state that it found when the
//! comparison fails.

use std::time::Duration;

use bytes::Bytes;

use super::wire::{self, Compare, OpRequest, OpResponse, RequestOp};
use super::{EtcdShared, failed, leases};
use crate::{Expect, KeyValue, Revision, StorageError};

impl EtcdShared {
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
        // Reads the key after the put, for the revision of its creation.
        let written = wire::RangeRequest { keys_only: true, ..single(&wire_key) };
        let transaction = wire::TxnRequest {
            compare: compare(&wire_key, expect),
            success: vec![op(OpRequest::Put(put)), op(OpRequest::Range(written))],
            failure: vec![op(OpRequest::Range(single(&wire_key)))],
        };
        let response: wire::TxnResponse = match self.client.write(wire::TXN, transaction).await {
            Err(StorageError::TooLarge { .. }) => return Err(StorageError::TooLarge { size }),
            Err(error @ StorageError::Full { .. }) => {
                return Err(self.after_full(key, expect, error).await);
            }
            other => other?,
        };
        if !response.succeeded {
            return Err(StorageError::Unexpected { current: self.found_state(&response) });
        }
        let mut written = self.found_state(&response).ok_or_else(|| odd("a put"))?;
        written.value = value;
        Ok(written)
    }

    /// etcd refuses the write that exceeds its quota, but executes it; it only refuses later ones.
    /// A read shows which case this was.
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
            success: vec![op(OpRequest::DeleteRange(delete))],
            failure: vec![op(OpRequest::Range(single(&wire_key)))],
        };
        let response: wire::TxnResponse = self.client.write(wire::TXN, transaction).await?;
        if !response.succeeded {
            return Err(StorageError::Unexpected { current: self.found_state(&response) });
        }
        let revision = response.header.as_ref().map(|header| header.revision as Revision);
        let last = self.found_state(&response);
        revision.zip(last).ok_or_else(|| odd("a deletion"))
    }

    /// The one item in a transaction's response.
    fn found_state(&self, response: &wire::TxnResponse) -> Option<KeyValue> {
        let items = response.responses.iter().flat_map(|one| match &one.response {
            Some(OpResponse::Range(range)) => range.kvs.as_slice(),
            Some(OpResponse::DeleteRange(deleted)) => deleted.prev_kvs.as_slice(),
            Some(OpResponse::Put(_)) | None => &[],
        });
        items.filter_map(|kv| self.keys.item(kv)).next()
    }
}

fn compare(key: &Bytes, expect: Expect) -> Vec<Compare> {
    match expect {
        Expect::Absent => vec![Compare::absent(key.clone())],
        // An absent key compares like one of revision 0.
        Expect::Revision(revision) => vec![
            Compare::present(key.clone()),
            Compare::mod_revision(key.clone(), i64::try_from(revision).unwrap_or(i64::MAX)),
        ],
    }
}

fn single(key: &Bytes) -> wire::RangeRequest {
    wire::RangeRequest { key: key.clone(), ..Default::default() }
}

fn op(request: OpRequest) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn odd(what: &str) -> StorageError {
    failed(format!("etcd acknowledged {what} without the state"))
}
