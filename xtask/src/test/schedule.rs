//! Runs programs side by side while the cores have room for them.
//!
//! Each has a weight: what it needs of the machine while it runs. Most tests compute, and fill all
//! cores by themselves; those that mostly wait run beside others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// In percent of the machine.
pub type Weight = u32;

/// All of the machine: what has this weight runs alone.
pub const WHOLE: Weight = 100;

/// What no program uses now.
struct Room {
    free: Weight,
}

/// Calls `run` with every item, in their order as far as their weights allow: the next that fits is
/// begun. Returns the results in the order of their ends.
///
/// # Errors
/// The first error, once all others have ended.
pub fn run<T: Sync, R: Send>(
    items: &[(Weight, T)],
    run: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let room = Mutex::new(Room { free: WHOLE });
    let left = Condvar::new();
    let results = Mutex::new(Vec::new());
    let lock = || room.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let mut waiting: VecDeque<&(Weight, T)> = items.iter().collect();
        while !waiting.is_empty() {
            let mut room = lock();
            let next = waiting.iter().position(|(weight, _)| *weight <= room.free);
            let Some(next) = next else {
                drop(left.wait(room).unwrap_or_else(PoisonError::into_inner));
                continue;
            };
            let Some((weight, item)) = waiting.remove(next) else { continue };
            room.free -= weight;
            drop(room);
            let (run, results, left, lock) = (&run, &results, &left, &lock);
            scope.spawn(move || {
                let result = run(item);
                results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                let mut room = lock();
                room.free += weight;
                left.notify_all();
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn the_weights_of_what_runs_never_exceed_the_machine() {
        let (now, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let items: Vec<(Weight, Weight)> =
            [60, 50, 40, 100, 30, 30, 30, 20].map(|weight| (weight, weight)).to_vec();
        let all = run(&items, |weight| {
            most.fetch_max(now.fetch_add(*weight, Ordering::SeqCst) + weight, Ordering::SeqCst);
            thread::yield_now();
            now.fetch_sub(*weight, Ordering::SeqCst);
            Ok(*weight)
        });
        let mut all = all.unwrap();
        all.sort_unstable();
        assert_eq!(all, [20, 30, 30, 30, 40, 50, 60, 100]);
        assert!(most.into_inner() <= WHOLE);
    }

    #[test]
    fn what_fits_runs_at_the_same_time() {
        // Neither would pass alone.
        let both = Barrier::new(2);
        run(&[(50, ()), (50, ())], |()| Ok(both.wait())).unwrap();
    }

    #[test]
    fn an_error_is_returned_once_the_others_have_ended() {
        let ended = AtomicU32::new(0);
        let result = run(&[(50, true), (50, false), (WHOLE, false)], |fails| {
            ended.fetch_add(1, Ordering::SeqCst);
            if *fails { anyhow::bail!("broken") } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().to_string(), "broken");
        assert_eq!(ended.into_inner(), 3);
    }
}
