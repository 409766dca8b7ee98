//! Limits of open sockets, in total and per caller.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{SOCKETS_MAX, SOCKETS_PER_CALLER_MAX};
use crate::error::ApiError;

/// Open sockets, by caller.
#[derive(Default)]
pub struct SocketSlots(Mutex<HashMap<String, usize>>);

/// The slot of one socket, released when dropped.
pub struct SocketSlot {
    slots: Arc<SocketSlots>,
    caller: String,
}

impl SocketSlots {
    /// Takes a slot for a socket of `caller`.
    ///
    /// # Errors
    /// 429 when the caller or the server has too many open sockets.
    pub fn acquire(self: &Arc<Self>, caller: &str) -> Result<SocketSlot, ApiError> {
        let mut open = self.0.lock();
        let refuse = |text: String| Err(ApiError::new(429, "TooManyRequests", text));
        if open.get(caller).is_some_and(|own| *own >= SOCKETS_PER_CALLER_MAX) {
            return refuse(format!(
                "you have {SOCKETS_PER_CALLER_MAX} change feeds open, the most that one user may \
                 have; close some and try again"
            ));
        }
        if open.values().sum::<usize>() >= SOCKETS_MAX {
            return refuse(format!(
                "this server has {SOCKETS_MAX} change feeds open, the most it serves; try again later"
            ));
        }
        *open.entry(caller.to_owned()).or_default() += 1;
        Ok(SocketSlot { slots: self.clone(), caller: caller.to_owned() })
    }
}

impl Drop for SocketSlot {
    fn drop(&mut self) {
        let mut open = self.slots.0.lock();
        if let Some(own) = open.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_take_the_slots_of_others() {
        let slots = Arc::new(SocketSlots::default());
        let own: Vec<_> =
            (0..SOCKETS_PER_CALLER_MAX).map(|_| slots.acquire("u-1").unwrap()).collect();
        assert_eq!(slots.acquire("u-1").map(drop).unwrap_err().status, 429);
        slots.acquire("u-2").unwrap();
        drop(own);
        slots.acquire("u-1").unwrap();
        assert!(slots.0.lock().is_empty(), "slots that were given back are forgotten");
    }

    #[test]
    fn all_callers_together_have_a_limit() {
        let slots = Arc::new(SocketSlots::default());
        let all: Vec<_> =
            (0..SOCKETS_MAX).map(|n| slots.acquire(&format!("u-{n}")).unwrap()).collect();
        assert_eq!(slots.acquire("u-late").map(drop).unwrap_err().status, 429);
        drop(all);
        slots.acquire("u-late").unwrap();
    }
}
