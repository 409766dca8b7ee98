//! The pending work of one socket: keys, each at most once, in the order in which they first
//! arrived.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use super::{KEYS_WAITING_MAX, REMOVED_WAITING_MAX};
use crate::types::store::Key;

/// Index of the type among those of the socket, and the key of the object.
pub(super) type Item = (usize, Arc<Key>);

/// What is known about the object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PendingChange {
    /// It may differ from what was shown; only reading it shows that.
    Changed,
    /// It was removed. Holds its last state, unless too many are waiting.
    Removed(Option<Arc<Value>>),
}

/// Changes were missed, and the socket cannot continue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missed;

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    wake: Notify,
}

#[derive(Default)]
struct InboxState {
    /// Invariant: exactly the keys of `changes`, each once.
    order: VecDeque<Item>,
    changes: HashMap<Item, PendingChange>,
    /// Removed objects that are stored whole in `changes`.
    removed: usize,
    missed: bool,
    /// Other objects may be visible than at the last resync.
    needs_resync: bool,
}

impl Inbox {
    /// Adds a change. The newest change of an object replaces an older one.
    pub fn put(&self, item: Item, mut change: PendingChange) {
        let mut state = self.state.lock();
        if state.missed {
            return;
        }
        if matches!(change, PendingChange::Removed(Some(_))) && state.removed >= REMOVED_WAITING_MAX
        {
            change = PendingChange::Removed(None);
        }
        state.removed += whole_removals(&change);
        match state.changes.insert(item.clone(), change) {
            Some(old) => state.removed -= whole_removals(&old),
            None if state.order.len() >= KEYS_WAITING_MAX => *state = InboxState::missed(),
            None => state.order.push_back(item),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Requests a new check of what the caller may see.
    pub fn request_resync(&self) {
        self.state.lock().needs_resync = true;
    }

    /// Whether [`Self::request_resync`] was called since the last call of this.
    pub fn take_resync_request(&self) -> bool {
        std::mem::take(&mut self.state.lock().needs_resync)
    }

    /// Closes the inbox: later changes cannot replace what was lost.
    pub fn mark_missed(&self) {
        *self.state.lock() = InboxState::missed();
        self.wake.notify_one();
    }

    /// Waits for the first item. For one consumer; cancel-safe.
    ///
    /// # Errors
    /// Changes were missed: close the socket.
    pub async fn take(&self) -> Result<(Item, PendingChange), Missed> {
        loop {
            let woken = self.wake.notified();
            if let Some(item) = self.try_take() {
                return item;
            }
            woken.await;
        }
    }

    fn try_take(&self) -> Option<Result<(Item, PendingChange), Missed>> {
        let mut state = self.state.lock();
        if state.missed {
            return Some(Err(Missed));
        }
        let item = state.order.pop_front()?;
        let change = state.changes.remove(&item)?;
        state.removed -= whole_removals(&change);
        Some(Ok((item, change)))
    }
}

impl InboxState {
    fn missed() -> Self {
        Self { missed: true, ..Self::default() }
    }
}

fn whole_removals(change: &PendingChange) -> usize {
    usize::from(matches!(change, PendingChange::Removed(Some(_))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn item(name: usize) -> Item {
        (0, Arc::new(Key { namespace: String::new(), name: name.to_string() }))
    }

    fn drain(inbox: &Inbox) -> Vec<(Item, PendingChange)> {
        std::iter::from_fn(|| inbox.try_take()).map(Result::unwrap).collect()
    }

    proptest! {
        /// For any input: each object is returned once, with its newest change, in the order of
        /// first arrival.
        #[test]
        fn each_object_waits_once(puts in prop::collection::vec((0usize..8, any::<bool>()), 0..64)) {
            let inbox = Inbox::default();
            let mut expected: Vec<(Item, PendingChange)> = Vec::new();
            for (name, removed) in puts {
                let last = Arc::new(json!({"name": name}));
                let change = if removed { PendingChange::Removed(Some(last)) } else { PendingChange::Changed };
                inbox.put(item(name), change.clone());
                match expected.iter_mut().find(|(known, _)| *known == item(name)) {
                    Some((_, known)) => *known = change,
                    None => expected.push((item(name), change)),
                }
            }
            prop_assert_eq!(drain(&inbox), expected);
            prop_assert_eq!(inbox.state.lock().removed, 0);
        }
    }

    #[test]
    fn of_many_removed_objects_only_some_are_stored_whole() {
        let inbox = Inbox::default();
        for name in 0..REMOVED_WAITING_MAX + 10 {
            inbox.put(item(name), PendingChange::Removed(Some(Arc::new(json!({})))));
        }
        let changes = drain(&inbox);
        assert_eq!(changes.len(), REMOVED_WAITING_MAX + 10);
        assert_eq!(
            changes.iter().map(|(_, change)| whole_removals(change)).sum::<usize>(),
            REMOVED_WAITING_MAX
        );
    }

    #[test]
    fn a_socket_that_is_too_far_behind_is_closed_and_frees_its_queue() {
        let inbox = Inbox::default();
        for name in 0..=KEYS_WAITING_MAX {
            inbox.put(item(name), PendingChange::Changed);
        }
        inbox.put(item(0), PendingChange::Changed);
        assert_eq!(inbox.try_take(), Some(Err(Missed)));
        let state = inbox.state.lock();
        assert!(state.order.is_empty() && state.changes.is_empty());
    }

    #[tokio::test]
    async fn a_consumer_waits_for_the_next_change() {
        let inbox = Arc::new(Inbox::default());
        let consumer = tokio::spawn({
            let inbox = inbox.clone();
            async move { inbox.take().await }
        });
        tokio::task::yield_now().await;
        inbox.put(item(1), PendingChange::Changed);
        assert_eq!(consumer.await.unwrap(), Ok((item(1), PendingChange::Changed)));
        inbox.mark_missed();
        assert_eq!(inbox.take().await, Err(Missed));
    }
}
