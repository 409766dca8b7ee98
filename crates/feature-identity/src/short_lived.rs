//! What is kept in memory for some minutes only, and can be taken once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

struct Kept<V> {
    value: V,
    since: Instant,
}

/// Values by key, bounded in number and time: a new one displaces the oldest.
pub(crate) struct ShortLived<K, V> {
    count_max: usize,
    age_max: Duration,
    kept: Mutex<HashMap<K, Kept<V>>>,
}

impl<K: Clone + Eq + Hash, V> ShortLived<K, V> {
    /// Empty; it has at most `count_max` values, each for less than `age_max`.
    pub fn new(count_max: usize, age_max: Duration) -> Self {
        Self { count_max, age_max, kept: Mutex::default() }
    }

    /// Stores the value, instead of an earlier one of the key.
    pub fn store(&self, key: K, value: V) {
        let mut kept = self.kept.lock();
        kept.retain(|_, one| one.since.elapsed() < self.age_max);
        if kept.len() >= self.count_max
            && let Some((oldest, _)) = kept.iter().min_by_key(|(_, one)| one.since)
        {
            let oldest = oldest.clone();
            kept.remove(&oldest);
        }
        kept.insert(key, Kept { value, since: Instant::now() });
    }

    /// The value of the key, once, and not after its time.
    pub fn take<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let one = self.kept.lock().remove(key)?;
        (one.since.elapsed() < self.age_max).then_some(one.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_are_taken_once_and_in_time_and_the_oldest_gives_way() {
        let kept = ShortLived::new(2, Duration::from_secs(10));
        kept.store("a", 1);
        assert_eq!((kept.take("a"), kept.take("a")), (Some(1), None));
        kept.store("late", 2);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(kept.take("late"), None);
        for (key, value) in [("first", 3), ("second", 4), ("third", 5)] {
            kept.store(key, value);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(kept.kept.lock().len(), 2);
        assert_eq!((kept.take("first"), kept.take("third")), (None, Some(5)));
    }
}
