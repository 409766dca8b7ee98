//! Runs programs in parallel as far as the cores allow.
//!
//! Each has a weight: its share of the machine. Most tests use all cores by themselves; those that
//! mostly wait run in parallel with others.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// In percent of the machine.
pub type Weight = u32;

/// The whole machine: a program of this weight runs alone.
pub const WHOLE: Weight = 100;

/// The share of the machine that no program uses.
struct FreeWeight {
    free: Weight,
}

/// Calls `run` with every item, in order as far as their weights allow: the next item that fits
/// starts. Returns the results in order of completion.
///
/// # Errors
/// The first error, once all others have ended.
pub fn run<T: Sync, R: Send>(
    items: &[(Weight, T)],
    run: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let room = Mutex::new(FreeWeight { free: WHOLE });
    let released = Condvar::new();
    let results = Mutex::new(Vec::new());
    let lock = || room.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let mut waiting: VecDeque<&(Weight, T)> = items.iter().collect();
        while !waiting.is_empty() {
            let mut room = lock();
            let next = waiting.iter().position(|(weight, _)| *weight <= room.free);
            let Some(next) = next else {
                drop(released.wait(room).unwrap_or_else(PoisonError::into_inner));
                continue;
            };
            let Some((weight, item)) = waiting.remove(next) else { continue };
            room.free -= weight;
            drop(room);
            let (run, results, released, lock) = (&run, &results, &released, &lock);
            scope.spawn(move || {
                let result = run(item);
                results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                let mut room = lock();
                room.free += weight;
                released.notify_all();
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
    fn the_weights_of_running_items_never_exceed_the_machine() {
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
    fn items_that_fit_run_at_the_same_time() {
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
