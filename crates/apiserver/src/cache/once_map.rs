//! A map of a few values that are created on first use and never removed.

use std::sync::OnceLock;

/// Values by key, each created once. Nothing is removed, so values can be borrowed without a lock.
///
/// It is a linked list, for a few keys. While a value is created, callers that need another new one
/// wait.
pub struct OnceMap<K, V>(OnceLock<Box<OnceEntry<K, V>>>);

struct OnceEntry<K, V> {
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
    /// The value of `key`, which `make` creates if there is none. `make` must not use the same map.
    pub fn get_or_create(&self, key: K, make: impl Fn() -> V) -> &V {
        let mut link = self;
        loop {
            let entry = link
                .0
                .get_or_init(|| Box::new(OnceEntry { key, value: make(), next: Self::default() }));
            if entry.key == key {
                return &entry.value;
            }
            link = &entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn concurrent_callers_create_each_value_once() {
        const KEYS: usize = 5;
        const THREADS: usize = 8;
        let (map, created) = (OnceMap::default(), AtomicUsize::new(0));
        let begin = Barrier::new(THREADS);
        let get_all = |first: usize| {
            begin.wait();
            for key in (0..KEYS).map(|key| (key + first) % KEYS) {
                let value = map.get_or_create(key, || {
                    created.fetch_add(1, Ordering::Relaxed);
                    key * 10
                });
                assert_eq!(*value, key * 10);
            }
        };
        std::thread::scope(|threads| {
            for first in 0..THREADS {
                threads.spawn(move || get_all(first));
            }
        });
        assert_eq!(created.into_inner(), KEYS);
    }
}
