//! What one socket has yet to look at: keys, each at most once, in the order in which they first
//! came.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use super::{KEYS_WAITING_MAX, REMOVED_WAITING_MAX};
use crate::types::store::Key;

/// Index of a type among the socket's, and the object.
pub(super) type Item = (usize, Arc<Key>);

/// What is known of the object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum News {
    /// It may differ from what was shown; only reading it tells.
    Changed,
    /// It was removed; as it last was, unless that was too much to keep.
    Removed(Option<Arc<Value>>),
}

/// Changes were missed, and the socket cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missed;

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    /// Invariant: exactly the keys of `news`, each once.
    order: VecDeque<Item>,
    news: HashMap<Item, News>,
    /// Removed objects kept in `news`.
    removed: usize,
    missed: bool,
    /// Other objects may be visible than at the last look.
    sight_changed: bool,
}

impl Inbox {
    /// The newest news of an object replace older ones.
    pub fn put(&self, item: Item, mut news: News) {
        let mut state = self.state.lock();
        if state.missed {
            return;
        }
        if matches!(news, News::Removed(Some(_))) && state.removed >= REMOVED_WAITING_MAX {
            news = News::Removed(None);
        }
        state.removed += kept(&news);
        match state.news.insert(item.clone(), news) {
            Some(old) => state.removed -= kept(&old),
            None if state.order.len() >= KEYS_WAITING_MAX => *state = State::missed(),
            None => state.order.push_back(item),
        }
        drop(state);
        self.wake.notify_one();
    }

    /// What the caller may see is to be looked at again.
    pub fn look_again(&self) {
        self.state.lock().sight_changed = true;
    }

    /// Whether [`Self::look_again`] was called since this last said so.
    pub fn take_look(&self) -> bool {
        std::mem::take(&mut self.state.lock().sight_changed)
    }

    /// Nothing that comes later makes up for what was lost.
    pub fn miss(&self) {
        *self.state.lock() = State::missed();
        self.wake.notify_one();
    }

    /// Waits for the first item. For one taker; cancel-safe.
    pub async fn take(&self) -> Result<(Item, News), Missed> {
        loop {
            let woken = self.wake.notified();
            if let Some(taken) = self.try_take() {
                return taken;
            }
            woken.await;
        }
    }

    fn try_take(&self) -> Option<Result<(Item, News), Missed>> {
        let mut state = self.state.lock();
        if state.missed {
            return Some(Err(Missed));
        }
        let item = state.order.pop_front()?;
        let news = state.news.remove(&item)?;
        state.removed -= kept(&news);
        Some(Ok((item, news)))
    }
}

impl State {
    fn missed() -> Self {
        Self { missed: true, ..Self::default() }
    }
}

fn kept(news: &News) -> usize {
    usize::from(matches!(news, News::Removed(Some(_))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn item(name: usize) -> Item {
        (0, Arc::new(Key { namespace: String::new(), name: name.to_string() }))
    }

    fn drain(inbox: &Inbox) -> Vec<(Item, News)> {
        std::iter::from_fn(|| inbox.try_take()).map(Result::unwrap).collect()
    }

    proptest! {
        /// Whatever comes in: each object comes out once, with its newest news, the first to come
        /// first.
        #[test]
        fn each_object_waits_once(puts in prop::collection::vec((0usize..8, any::<bool>()), 0..64)) {
            let inbox = Inbox::default();
            let mut expected: Vec<(Item, News)> = Vec::new();
            for (name, removed) in puts {
                let last = Arc::new(json!({"name": name}));
                let news = if removed { News::Removed(Some(last)) } else { News::Changed };
                inbox.put(item(name), news.clone());
                match expected.iter_mut().find(|(known, _)| *known == item(name)) {
                    Some((_, known)) => *known = news,
                    None => expected.push((item(name), news)),
                }
            }
            prop_assert_eq!(drain(&inbox), expected);
            prop_assert_eq!(inbox.state.lock().removed, 0);
        }
    }

    #[test]
    fn of_many_removed_objects_only_some_are_kept() {
        let inbox = Inbox::default();
        for name in 0..REMOVED_WAITING_MAX + 10 {
            inbox.put(item(name), News::Removed(Some(Arc::new(json!({})))));
        }
        let news = drain(&inbox);
        assert_eq!(news.len(), REMOVED_WAITING_MAX + 10);
        assert_eq!(news.iter().map(|(_, news)| kept(news)).sum::<usize>(), REMOVED_WAITING_MAX);
    }

    #[test]
    fn a_socket_that_is_too_far_behind_is_told_so_and_costs_nothing_more() {
        let inbox = Inbox::default();
        for name in 0..=KEYS_WAITING_MAX {
            inbox.put(item(name), News::Changed);
        }
        inbox.put(item(0), News::Changed);
        assert_eq!(inbox.try_take(), Some(Err(Missed)));
        let state = inbox.state.lock();
        assert!(state.order.is_empty() && state.news.is_empty());
    }

    #[tokio::test]
    async fn a_taker_waits_for_what_comes() {
        let inbox = Arc::new(Inbox::default());
        let taker = tokio::spawn({
            let inbox = inbox.clone();
            async move { inbox.take().await }
        });
        tokio::task::yield_now().await;
        inbox.put(item(1), News::Changed);
        assert_eq!(taker.await.unwrap(), Ok((item(1), News::Changed)));
        inbox.miss();
        assert_eq!(inbox.take().await, Err(Missed));
    }
}
