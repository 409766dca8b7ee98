//! How many sockets there may be, in all and for one caller.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{SOCKETS_MAX, SOCKETS_PER_CALLER_MAX};
use crate::error::ApiError;

/// Sockets open now, by caller.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<String, usize>>);

/// One of them, given back when dropped.
pub(super) struct Place {
    places: Arc<Places>,
    caller: String,
}

impl Places {
    /// # Errors
    /// 429 when there are enough.
    pub fn take(self: &Arc<Self>, caller: &str) -> Result<Place, ApiError> {
        let mut taken = self.0.lock();
        let refuse = |text: String| Err(ApiError::new(429, "TooManyRequests", text));
        if taken.get(caller).is_some_and(|own| *own >= SOCKETS_PER_CALLER_MAX) {
            return refuse(format!(
                "you have {SOCKETS_PER_CALLER_MAX} change feeds open, the most that one user may \
                 have; close some and try again"
            ));
        }
        if taken.values().sum::<usize>() >= SOCKETS_MAX {
            return refuse(format!(
                "this server has {SOCKETS_MAX} change feeds open, the most it serves; try again later"
            ));
        }
        *taken.entry(caller.to_owned()).or_default() += 1;
        Ok(Place { places: self.clone(), caller: caller.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(own) = taken.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_take_the_places_of_others() {
        let places = Arc::new(Places::default());
        let own: Vec<_> =
            (0..SOCKETS_PER_CALLER_MAX).map(|_| places.take("u-1").unwrap()).collect();
        assert_eq!(places.take("u-1").map(drop).unwrap_err().status, 429);
        places.take("u-2").unwrap();
        drop(own);
        places.take("u-1").unwrap();
        assert!(places.0.lock().is_empty(), "places that were given back are forgotten");
    }

    #[test]
    fn all_callers_together_have_a_limit() {
        let places = Arc::new(Places::default());
        let all: Vec<_> =
            (0..SOCKETS_MAX).map(|n| places.take(&format!("u-{n}")).unwrap()).collect();
        assert_eq!(places.take("u-late").map(drop).unwrap_err().status, 429);
        drop(all);
        places.take("u-late").unwrap();
    }
}
