//! Times to live: etcd deletes the keys of a lease when it ends, all in one revision.
//!
//! Each key has a lease of its own, because an expiry must have a revision of its own: a watcher
//! that resumes after the first of several changes of one revision would miss the others. A lease
//! costs a second consensus round, only for writes with a time to live.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};

use super::client::Client;
use super::{EtcdShared, wire};
use crate::StorageError;

/// Keys of one response when the leases of all keys are listed.
const PAGE_KEYS: i64 = 10_000;
/// Concurrent requests for leases.
const REQUESTS_MAX: usize = 32;

/// A lease that ends `ttl` from now; etcd rounds up to whole seconds, and to two at least.
pub(super) async fn grant(client: &Client, ttl: Duration) -> Result<i64, StorageError> {
    let seconds = ttl.as_secs_f64().ceil().max(1.0) as i64;
    // A lease that is granted twice, or whose key is not written, expires unused.
    let request = wire::LeaseGrantRequest { ttl: seconds };
    let response: wire::LeaseGrantResponse = client.read(wire::LEASE_GRANT, request).await?;
    Ok(response.id)
}

impl EtcdShared {
    /// Keys that have a lease, with its remaining time.
    pub(super) async fn expiring(&self) -> Result<Vec<(String, Duration)>, StorageError> {
        let mut request = wire::RangeRequest {
            key: self.keys.key(""),
            range_end: self.keys.key(&char::MAX.to_string()),
            limit: PAGE_KEYS,
            keys_only: true,
            ..Default::default()
        };
        let mut leased = Vec::new();
        loop {
            let response: wire::RangeResponse =
                self.client.read(wire::RANGE, request.clone()).await?;
            let of_lease = response.kvs.iter().filter(|kv| kv.lease != 0);
            leased.extend(
                of_lease.filter_map(|kv| Some((self.keys.item(kv)?.key.to_string(), kv.lease))),
            );
            let Some(last) = response.kvs.last().filter(|_| response.count > PAGE_KEYS) else {
                break;
            };
            let mut next = last.key.to_vec();
            next.push(0);
            request.key = next.into();
        }
        let left = leased.into_iter().map(async |(key, id)| {
            let request = wire::LeaseTimeToLiveRequest { id };
            let path = wire::LEASE_TIME_TO_LIVE;
            let response: wire::LeaseTimeToLiveResponse = self.client.read(path, request).await?;
            let seconds = u64::try_from(response.ttl).unwrap_or_default();
            Ok((key, Duration::from_secs(seconds)))
        });
        futures::stream::iter(left).buffer_unordered(REQUESTS_MAX).try_collect().await
    }
}
