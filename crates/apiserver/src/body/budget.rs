//! How many bytes of request bodies are buffered at once, whoever sends them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may be buffered at once.
pub struct Budget {
    size_max: usize,
    taken: AtomicUsize,
}

/// A part of a budget, given back on drop.
pub struct Share {
    budget: &'static Budget,
    size: usize,
}

impl Budget {
    pub const fn new(size_max: usize) -> Self {
        Self { size_max, taken: AtomicUsize::new(0) }
    }

    /// An empty part, to be grown.
    pub fn share(&'static self) -> Share {
        Share { budget: self, size: 0 }
    }

    /// Bytes that are taken now.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Takes `size` bytes more, or nothing when there are not as many.
    pub fn grow(&mut self, size: usize) -> bool {
        let room = |taken: usize| {
            taken.checked_add(size).filter(|together| *together <= self.budget.size_max)
        };
        let taken = self.budget.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        self.size += if taken.is_ok() { size } else { 0 };
        taken.is_ok()
    }

    /// Gives everything back.
    pub fn clear(&mut self) {
        self.budget.taken.fetch_sub(std::mem::take(&mut self.size), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_exceeded_and_always_given_back() {
        static BUDGET: Budget = Budget::new(100);
        let (mut one, mut other) = (BUDGET.share(), BUDGET.share());
        assert!(one.grow(60) && other.grow(40));
        assert!(!one.grow(1) && !other.grow(usize::MAX));
        drop(other);
        assert!(one.grow(40));
        one.clear();
        assert_eq!(BUDGET.taken(), 0);
        assert!(one.grow(100));
        drop(one);
        assert_eq!(BUDGET.taken(), 0);
    }
}
