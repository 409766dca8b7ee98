//! Converts keys and items to etcd's: keys have a prefix of their own, so that others can share the
//! etcd.

use bytes::Bytes;

use super::wire;
use crate::{Event, KeyValue, Revision};

/// The first of all keys; etcd accepts no empty key.
const FIRST_KEY: &[u8] = b"\0";

pub(super) struct Keys {
    /// Prefix of each key; may be empty.
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn key(&self, key: &str) -> Bytes {
        if self.prefix.is_empty() && key.is_empty() {
            return Bytes::from_static(FIRST_KEY);
        }
        format!("{}{key}", self.prefix).into()
    }

    /// `None` for a key that is not Drover's: it is logged and skipped, so that the other keys stay
    /// readable.
    pub(super) fn item(&self, kv: &wire::KeyValue) -> Option<KeyValue> {
        let key = std::str::from_utf8(&kv.key).ok().and_then(|key| key.strip_prefix(&self.prefix));
        let Some(key) = key else {
            let key = String::from_utf8_lossy(&kv.key);
            tracing::error!(%key, "skipped a key in etcd that is not UTF-8 under the prefix");
            return None;
        };
        Some(KeyValue {
            key: key.into(),
            value: kv.value.clone(),
            create_revision: kv.create_revision as Revision,
            mod_revision: kv.mod_revision as Revision,
        })
    }

    /// Converts an event; `None` for a key that is not Drover's.
    ///
    /// # Errors
    /// The event's revision, when the state before it was compacted.
    pub(super) fn event(&self, event: &wire::Event) -> Result<Option<Event>, Revision> {
        let Some(kv) = &event.kv else { return Ok(None) };
        let deleted = event.kind == 1;
        let revision = kv.mod_revision as Revision;
        let Some(item) = self.item(kv) else { return Ok(None) };
        let key = item.key.clone();
        let created = !deleted && kv.create_revision == kv.mod_revision;
        let previous = match &event.prev_kv {
            None if created => None,
            None => return Err(revision),
            Some(previous) => self.item(previous),
        };
        Ok(Some(Event { revision, key, previous, current: (!deleted).then_some(item) }))
    }
}
