//! Limits how many bytes of request bodies are buffered at once, over all requests.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A budget of buffered bytes.
pub struct Budget {
    size_max: usize,
    used: AtomicUsize,
}

/// The part of a budget that one body uses. Drop releases it.
pub struct Share {
    budget: &'static Budget,
    size: usize,
}

impl Budget {
    /// Creates a budget of `size_max` bytes, all of them free.
    pub const fn new(size_max: usize) -> Self {
        Self { size_max, used: AtomicUsize::new(0) }
    }

    /// Creates an empty share, which grows with [`Share::grow`].
    pub fn share(&'static self) -> Share {
        Share { budget: self, size: 0 }
    }

    /// The number of bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Adds `size` bytes to the share. Returns false, and adds nothing, when the budget has fewer
    /// left.
    pub fn grow(&mut self, size: usize) -> bool {
        let room = |used: usize| used.checked_add(size).filter(|sum| *sum <= self.budget.size_max);
        let used = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        self.size += if used.is_ok() { size } else { 0 };
        used.is_ok()
    }

    /// Releases all bytes of the share.
    pub fn clear(&mut self) {
        self.budget.used.fetch_sub(std::mem::take(&mut self.size), Ordering::Relaxed);
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
    fn a_budget_is_never_exceeded_and_always_released() {
        static BUDGET: Budget = Budget::new(100);
        let (mut one, mut other) = (BUDGET.share(), BUDGET.share());
        assert!(one.grow(60) && other.grow(40));
        assert!(!one.grow(1) && !other.grow(usize::MAX));
        drop(other);
        assert!(one.grow(40));
        one.clear();
        assert_eq!(BUDGET.used_bytes(), 0);
        assert!(one.grow(100));
        drop(one);
        assert_eq!(BUDGET.used_bytes(), 0);
    }
}
