//! Bodies that are too large, too slow, or too many.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Frame;
use http_body_util::Full;

use super::*;

/// A body of `times` frames of `bytes` bytes, with a pause before each.
struct Trickle {
    bytes: usize,
    times: usize,
    every: tokio::time::Interval,
}

fn trickle(bytes: usize, times: usize, pause: Duration) -> Trickle {
    Trickle { bytes, times, every: tokio::time::interval_at(Instant::now() + pause, pause) }
}

impl Body for Trickle {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.times == 0 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.every.poll_tick(cx));
        self.times -= 1;
        Poll::Ready(Some(Ok(Frame::data(vec![b' '; self.bytes].into()))))
    }
}

const SIZE_MAX: usize = 2 * 1024 * 1024;

#[tokio::test(start_paused = true)]
async fn a_trickling_body_times_out() {
    let begun = Instant::now();
    let slow = trickle(1, 1_000_000, Duration::from_secs(5));
    let read = read_within(slow, SIZE_MAX, Some(&ANONYMOUS)).await;
    assert!(matches!(read, Err(ReadError::TooSlow)), "{read:?}");
    assert_eq!(begun.elapsed(), BODY_TIME_MAX);
    assert_eq!(ReadError::TooSlow.to_status().code, 408);
}

#[tokio::test(start_paused = true)]
async fn a_slow_link_has_enough_time() {
    let link = trickle(PACE_BYTES, 32, PACE_TIME + Duration::from_millis(500));
    let read = read_within(link, SIZE_MAX, Some(&ANONYMOUS)).await.unwrap();
    assert_eq!(read.len(), SIZE_MAX);
}

#[tokio::test]
async fn bodies_above_the_budget_are_rejected_until_others_are_released() {
    static BUDGET: Budget = Budget::new(1000);
    let body = |size: usize| Full::new(Bytes::from(vec![b'x'; size]));
    let one = read_within(body(700), SIZE_MAX, Some(&BUDGET)).await.unwrap();
    let refused = read_within(body(400), SIZE_MAX, Some(&BUDGET)).await.unwrap_err();
    let status = refused.to_status();
    assert_eq!(status.code, 503);
    assert!(status.details.is_some_and(|details| details.retry_after_seconds == Some(1)));
    let inside = read_within(body(4000), SIZE_MAX, None).await.unwrap();
    assert_eq!(inside.len(), 4000, "this process never rejects its own bodies");
    // The budget is in use while any part of the bytes is referenced.
    let part = one.slice(3..10);
    drop(one);
    assert_eq!(BUDGET.used_bytes(), 700);
    drop(part);
    assert_eq!(read_within(body(400), SIZE_MAX, Some(&BUDGET)).await.unwrap().len(), 400);
    assert_eq!(BUDGET.used_bytes(), 0);
}

#[tokio::test]
async fn a_body_that_is_too_large_uses_no_budget() {
    static BUDGET: Budget = Budget::new(1000);
    let body = Full::new(Bytes::from(vec![b'x'; 500]));
    let refused = read_within(body, 499, Some(&BUDGET)).await;
    assert!(matches!(refused, Err(ReadError::TooLarge { size_max: 499 })), "{refused:?}");
    assert_eq!(BUDGET.used_bytes(), 0);
}
