//! Times to live: etcd deletes the keys of a lease when it ends, all in one revision.
//!
//! Each key has a lease of its own, since an expiry must have a revision of its own: who resumes
//! after the first of several changes of one revision would miss the others. A lease costs a
//! second round of the cluster's consensus, which only writes with a time to live pay.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};

use super::client::Client;
use super::{Shared, wire};
use crate::StorageError;

/// Keys of one answer when all are asked for their lease.
const PAGE_KEYS: i64 = 10_000;
/// Leases that are asked for at once.
const ASKED_AT_ONCE: usize = 32;

/// A lease that ends `ttl` from now; etcd rounds up to whole seconds, and to two at least.
pub(super) async fn grant(client: &Client, ttl: Duration) -> Result<i64, StorageError> {
    let seconds = ttl.as_secs_f64().ceil().max(1.0) as i64;
    // One that is granted twice, or whose key is not written, ends unused.
    let request = wire::LeaseGrantRequest { ttl: seconds };
    let answer: wire::LeaseGrantResponse = client.read(wire::LEASE_GRANT, request).await?;
    Ok(answer.id)
}

impl Shared {
    /// Keys that have a lease, with what is left of it.
    pub(super) async fn expiring(&self) -> Result<Vec<(String, Duration)>, StorageError> {
        let mut ask = wire::RangeRequest {
            key: self.keys.key(""),
            range_end: self.keys.key(&char::MAX.to_string()),
            limit: PAGE_KEYS,
            keys_only: true,
            ..Default::default()
        };
        let mut leased = Vec::new();
        loop {
            let answer: wire::RangeResponse = self.client.read(wire::RANGE, ask.clone()).await?;
            let of_lease = answer.kvs.iter().filter(|kv| kv.lease != 0);
            leased.extend(
                of_lease.filter_map(|kv| Some((self.keys.item(kv)?.key.to_string(), kv.lease))),
            );
            let Some(last) = answer.kvs.last().filter(|_| answer.count > PAGE_KEYS) else { break };
            let mut next = last.key.to_vec();
            next.push(0);
            ask.key = next.into();
        }
        let left = leased.into_iter().map(async |(key, id)| {
            let request = wire::LeaseTimeToLiveRequest { id };
            let path = wire::LEASE_TIME_TO_LIVE;
            let answer: wire::LeaseTimeToLiveResponse = self.client.read(path, request).await?;
            let seconds = u64::try_from(answer.ttl).unwrap_or_default();
            Ok((key, Duration::from_secs(seconds)))
        });
        futures::stream::iter(left).buffer_unordered(ASKED_AT_ONCE).try_collect().await
    }
}
