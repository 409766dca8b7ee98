//! Reads: linearizable ranges, in pages of one revision.

use super::{Shared, wire};
use crate::{KeyValue, RangeRequest, RangeResponse, Revision, StorageError};

/// Keys of one answer.
const PAGE_KEYS: usize = 500;

impl Shared {
    pub(super) async fn revision(&self) -> Result<Revision, StorageError> {
        // A key that nobody has: the answer is its header.
        let request =
            wire::RangeRequest { key: self.keys.key(""), count_only: true, ..Default::default() };
        Ok(revision_of(&self.client.read::<_, wire::RangeResponse>(wire::RANGE, request).await?))
    }

    pub(super) async fn get(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> Result<(Revision, Option<KeyValue>), StorageError> {
        let request = wire::RangeRequest {
            key: self.keys.key(key),
            revision: wire_revision(at),
            ..Default::default()
        };
        let answer = self.ranged(request, at).await?;
        let found = answer.kvs.first().and_then(|kv| self.keys.item(kv));
        Ok((at.unwrap_or_else(|| revision_of(&answer)), found))
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StorageError> {
        let RangeRequest { start, end, limit, at } = request;
        let mut ask = wire::RangeRequest {
            key: self.keys.key(&start),
            range_end: self.keys.key(&end),
            revision: wire_revision(at),
            ..Default::default()
        };
        let mut response: Option<RangeResponse> = None;
        loop {
            let had = response.as_ref().map_or(0, |response| response.items.len());
            let page = limit.map_or(PAGE_KEYS, |limit| (limit - had).min(PAGE_KEYS));
            ask.limit = page as i64;
            // To etcd 0 is no limit.
            ask.count_only = page == 0;
            let at = response.as_ref().map(|response| response.revision).or(at);
            let answer = self.ranged(ask.clone(), at).await?;
            let response = response.get_or_insert_with(|| {
                let revision = at.unwrap_or_else(|| revision_of(&answer));
                RangeResponse { revision, items: Vec::new(), remaining: 0 }
            });
            response.items.extend(answer.kvs.iter().filter_map(|kv| self.keys.item(kv)));
            response.remaining = (answer.count as u64).saturating_sub(answer.kvs.len() as u64);
            let full = limit.is_some_and(|limit| response.items.len() >= limit);
            let Some(last) = answer.kvs.last().filter(|_| response.remaining > 0 && !full) else {
                break;
            };
            let mut next = last.key.to_vec();
            next.push(0);
            ask.key = next.into();
            ask.revision = wire_revision(Some(response.revision));
        }
        Ok(response.expect("the loop asks once"))
    }

    /// The request at `at`, with an error that tells revisions.
    async fn ranged(
        &self,
        request: wire::RangeRequest,
        at: Option<Revision>,
    ) -> Result<wire::RangeResponse, StorageError> {
        let wanted = at.unwrap_or_default();
        loop {
            match self.client.read(wire::RANGE, request.clone()).await {
                Err(StorageError::Compacted { .. }) => {
                    let oldest = self.compacted_above(wanted).await?;
                    return Err(StorageError::Compacted { wanted, oldest });
                }
                Err(StorageError::Future { .. }) => {
                    let current = self.revision().await?;
                    if current < wanted {
                        return Err(StorageError::Future { wanted, current });
                    }
                    // It was reached meanwhile: now it can be read.
                }
                other => return other,
            }
        }
    }
}

/// To etcd 0 is the newest. Revision 1 is its empty beginning.
fn wire_revision(at: Option<Revision>) -> i64 {
    at.map_or(0, |at| at.max(1) as i64)
}

fn revision_of(answer: &wire::RangeResponse) -> Revision {
    answer.header.as_ref().map_or(0, |header| header.revision as Revision)
}
