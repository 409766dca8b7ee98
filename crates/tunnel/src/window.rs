//! How much a peer may send before it is read.
//!
//! A stream whose reader does not read has a full window, without a time limit. If all windows
//! together could fill the connection's window, such streams would stop all others. So the stream
//! window shrinks as the number of streams grows, and the connection window is larger than all
//! stream windows together.

use std::time::Duration;

use crate::limits::STREAMS_PER_SESSION_MAX;
use crate::stream::Slots;

/// The connection's window. It reserves no memory: only bytes that slow readers leave unread are
/// held.
///
/// Windows that were granted while streams were few stay filled when streams become many, so this
/// is more than [`STREAM_WINDOWS_MAX`]: each doubling of the streams adds at most half of it.
pub(crate) const CONNECTION_WINDOW: u32 = 384 << 20;
/// The maximum sum of the stream windows for a given number of streams.
const STREAM_WINDOWS_MAX: u32 = 64 << 20;
/// Enough for 2 Gbit/s over 2 ms.
pub(crate) const STREAM_WINDOW_START: u32 = 512 << 10;
const STREAM_WINDOW_MAX: u32 = 16 << 20;
/// Invariant: this times the most streams is within the stream windows' sum.
const STREAM_WINDOW_MIN: u32 = 64 << 10;
const _: () =
    assert!(STREAM_WINDOW_MIN as usize * STREAMS_PER_SESSION_MAX <= STREAM_WINDOWS_MAX as usize);

/// The rate one stream should reach, in bytes per second: 2 Gbit/s.
const STREAM_RATE: u64 = 250_000_000;

/// The window of each stream: the bytes in flight at [`STREAM_RATE`] over `round_trip`, at most the
/// share of one of `streams`. A power of two, so that it changes rarely.
fn stream_window(round_trip: Duration, streams: usize) -> u32 {
    let micros = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
    let under_way = micros.saturating_mul(STREAM_RATE) / 1_000_000;
    let under_way = u32::try_from(under_way).unwrap_or(u32::MAX);
    let size = under_way.clamp(STREAM_WINDOW_START, STREAM_WINDOW_MAX);
    let streams = u32::try_from(streams.max(1)).unwrap_or(u32::MAX);
    let share = STREAM_WINDOWS_MAX / streams;
    let window = size.min(share).max(STREAM_WINDOW_MIN);
    1 << window.ilog2()
}

/// Replies to heartbeats after which a change of the windows is certainly acknowledged: `h2` may
/// send a heartbeat that is due ahead of the change, but not the one after it.
const HEARTBEATS_TO_ACKNOWLEDGE: u64 = 2;

/// Sets the stream windows of one side of a session to [`stream_window`].
pub(crate) struct Windows {
    window: u32,
    /// Number of heartbeat replies at which the last shrinking is certainly acknowledged.
    shrunk_at: Option<u64>,
}

impl Windows {
    pub(crate) fn new() -> Self {
        Self { window: STREAM_WINDOW_START, shrunk_at: None }
    }

    /// Must be called when the round trip or the number of streams has changed. `set` sets the size
    /// on the connection, which refuses while an earlier size is not acknowledged.
    pub(crate) fn follow<E>(&mut self, slots: &Slots, set: impl FnOnce(u32) -> Result<(), E>) {
        let answered = slots.round_trip.samples();
        if self.shrunk_at.is_some_and(|acknowledged| answered >= acknowledged) {
            self.shrunk_at = None;
            slots.shrinking.announce();
        }
        let desired = stream_window(slots.round_trip.get(), slots.open());
        if desired != self.window && set(desired).is_ok() {
            if desired < self.window {
                self.shrunk_at = Some(answered + HEARTBEATS_TO_ACKNOWLEDGE);
            }
            self.window = desired;
        }
        if self.shrunk_at.is_some() {
            slots.round_trip.hurry();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_readers_never_fill_the_connection_window() {
        for round_trip in [0, 1, 40, 300, 10_000].map(Duration::from_millis) {
            // The worst order: each stream fills its window before the next one opens.
            let mut held: u64 = 0;
            for streams in 1..=STREAMS_PER_SESSION_MAX {
                held += u64::from(stream_window(round_trip, streams));
            }
            assert!(held < u64::from(CONNECTION_WINDOW), "{held} bytes at {round_trip:?}");
        }
    }

    #[test]
    fn a_long_round_trip_gets_a_larger_window() {
        let near = stream_window(Duration::from_millis(1), 4);
        let far = stream_window(Duration::from_millis(80), 4);
        assert_eq!(near, STREAM_WINDOW_START);
        assert_eq!(far, STREAM_WINDOW_MAX);
        assert_eq!(stream_window(Duration::from_millis(80), 1024), STREAM_WINDOW_MIN);
    }
}
