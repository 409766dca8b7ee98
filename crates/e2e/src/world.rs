//! A world that the tests of one file share: created for the first test that needs it, dropped with
//! the last.
//!
//! A plain static would never be dropped and leave its folders behind.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Result;

/// Holds a world as long as a test does.
#[derive(Debug, Default)]
pub struct SharedWorld<T>(Mutex<Weak<T>>);

impl<T> SharedWorld<T> {
    /// A world that no test has needed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// The world; created by `make` when no test holds it. Other tests wait meanwhile.
    ///
    /// # Panics
    /// When it cannot be created.
    #[track_caller]
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Arc<T> {
        // A test that failed to create it leaves no partial world.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(world) = held.upgrade() {
            return world;
        }
        match make() {
            Ok(world) => {
                let world = Arc::new(world);
                *held = Arc::downgrade(&world);
                world
            }
            Err(cause) => panic!("the world of the tests cannot be made: {cause:#}"),
        }
    }
}
