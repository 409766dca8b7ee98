//! Reads: linearizable ranges, in pages of one revision.

use super::{EtcdShared, wire};
use crate::{KeyValue, RangeRequest, RangeResponse, Revision, StorageError};

/// Keys of one response.
const PAGE_KEYS: usize = 500;

impl EtcdShared {
    pub(super) async fn revision(&self) -> Result<Revision, StorageError> {
        // A key that does not exist: only the header of the response is needed.
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
        let page = self.read_range(request, at).await?;
        let found = page.kvs.first().and_then(|kv| self.keys.item(kv));
        Ok((at.unwrap_or_else(|| revision_of(&page)), found))
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StorageError> {
        let RangeRequest { start, end, limit, at } = request;
        let mut page_request = wire::RangeRequest {
            key: self.keys.key(&start),
            range_end: self.keys.key(&end),
            revision: wire_revision(at),
            ..Default::default()
        };
        let mut response: Option<RangeResponse> = None;
        loop {
            let had = response.as_ref().map_or(0, |response| response.items.len());
            let page_keys = limit.map_or(PAGE_KEYS, |limit| (limit - had).min(PAGE_KEYS));
            page_request.limit = page_keys as i64;
            // For etcd, 0 is no limit.
            page_request.count_only = page_keys == 0;
            let at = response.as_ref().map(|response| response.revision).or(at);
            let page = self.read_range(page_request.clone(), at).await?;
            let response = response.get_or_insert_with(|| {
                let revision = at.unwrap_or_else(|| revision_of(&page));
                RangeResponse { revision, items: Vec::new(), remaining: 0 }
            });
            response.items.extend(page.kvs.iter().filter_map(|kv| self.keys.item(kv)));
            response.remaining = (page.count as u64).saturating_sub(page.kvs.len() as u64);
            let full = limit.is_some_and(|limit| response.items.len() >= limit);
            let Some(last) = page.kvs.last().filter(|_| response.remaining > 0 && !full) else {
                break;
            };
            let mut next = last.key.to_vec();
            next.push(0);
            page_request.key = next.into();
            page_request.revision = wire_revision(Some(response.revision));
        }
        Ok(response.expect("the loop runs at least once"))
    }

    /// Sends the request at `at`, with the revisions filled into errors.
    async fn read_range(
        &self,
        request: wire::RangeRequest,
        at: Option<Revision>,
    ) -> Result<wire::RangeResponse, StorageError> {
        let requested = at.unwrap_or_default();
        loop {
            match self.client.read(wire::RANGE, request.clone()).await {
                Err(StorageError::Compacted { .. }) => {
                    let oldest = self.compacted_above(requested).await?;
                    return Err(StorageError::Compacted { requested, oldest });
                }
                Err(StorageError::Future { .. }) => {
                    let current = self.revision().await?;
                    if current < requested {
                        return Err(StorageError::Future { requested, current });
                    }
                    // It was reached meanwhile, so it can be read now.
                }
                other => return other,
            }
        }
    }
}

/// For etcd, 0 is the newest revision. Revision 1 is its empty beginning.
fn wire_revision(at: Option<Revision>) -> i64 {
    at.map_or(0, |at| at.max(1) as i64)
}

fn revision_of(page: &wire::RangeResponse) -> Revision {
    page.header.as_ref().map_or(0, |header| header.revision as Revision)
}
