//! Delays and their bounds; a given random number makes them exact.

use super::*;

const MIN: Duration = Duration::from_millis(50);
const MAX: Duration = Duration::from_secs(15);

#[test]
fn delays_double_up_to_their_maximum() {
    let backoff = Backoff::new(MIN, MAX);
    let millis: Vec<u128> = (1..=11).map(|count| backoff.delay(count).as_millis()).collect();
    assert_eq!(millis, [50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000]);
    assert_eq!(backoff.delay(0), MIN);
    assert_eq!(backoff.delay(u32::MAX), MAX, "no number of failures overflows");
}

#[test]
fn another_factor_lengthens_each_delay_by_that_much() {
    let backoff = Backoff::new(Duration::from_millis(500), MAX).with_factor(1.5);
    let millis: Vec<u128> = (1..=3).map(|count| backoff.delay(count).as_millis()).collect();
    assert_eq!(millis, [500, 750, 1125]);
    let constant = Backoff::new(MIN, MAX).with_factor(1.0);
    assert_eq!(constant.delay(u32::MAX), MIN);
}

#[test]
fn jitter_subtracts_up_to_its_share() {
    let backoff = Backoff::new(MIN, MAX).with_jitter(0.5);
    assert_eq!(backoff.delay_at(2, 0.0), MIN * 2);
    assert_eq!(backoff.delay_at(2, 0.5), MIN * 3 / 2);
    assert_eq!(backoff.delay_at(2, 1.0), MIN);
    assert_eq!(backoff.delay_at(u32::MAX, 0.0), MAX, "never longer than the maximum");
    let delays: Vec<Duration> = (0..100).map(|_| backoff.delay(2)).collect();
    assert!(delays.iter().all(|delay| (MIN..=MIN * 2).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay != delays[0]), "{delays:?}");
}

#[test]
fn full_jitter_may_retry_at_once() {
    assert_eq!(Backoff::new(MIN, MAX).with_jitter(1.0).delay_at(1, 1.0), Duration::ZERO);
}
