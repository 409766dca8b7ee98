//! A handful of values that are made when somebody asks, and stay.

use std::sync::OnceLock;

/// Values by key, each made once. Nothing is removed, so that values can be borrowed without a lock.
///
/// It is a list: for a few keys. While a value is made, whoever asks for one that is not there waits.
pub struct OnceMap<K, V>(OnceLock<Box<Entry<K, V>>>);

struct Entry<K, V> {
    key: K,
    value: V,
    next: OnceMap<K, V>,
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Copy + PartialEq, V> OnceMap<K, V> {
    /// The value of `key`, which `make` makes when there is none. It must not ask the same map.
    pub fn get_or_make(&self, key: K, make: impl Fn() -> V) -> &V {
        let mut place = self;
        loop {
            let entry = place
                .0
                .get_or_init(|| Box::new(Entry { key, value: make(), next: Self::default() }));
            if entry.key == key {
                return &entry.value;
            }
            place = &entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_value_is_made_once_whoever_asks_at_the_same_time() {
        const KEYS: usize = 5;
        const THREADS: usize = 8;
        let (map, made) = (OnceMap::default(), AtomicUsize::new(0));
        let begin = Barrier::new(THREADS);
        let ask = |first: usize| {
            begin.wait();
            for key in (0..KEYS).map(|key| (key + first) % KEYS) {
                let value = map.get_or_make(key, || {
                    made.fetch_add(1, Ordering::Relaxed);
                    key * 10
                });
                assert_eq!(*value, key * 10);
            }
        };
        std::thread::scope(|threads| {
            for first in 0..THREADS {
                threads.spawn(move || ask(first));
            }
        });
        assert_eq!(made.into_inner(), KEYS);
    }
}
