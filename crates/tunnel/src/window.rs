//! How much a peer may send before we have read it.
//!
//! A reader that stands still keeps its stream's window full, for ever. If all windows together
//! could fill the connection's window, such readers would stop every other stream. So the stream
//! window shrinks as streams get more, and the connection window is larger than anything they can
//! hold.

use std::time::Duration;

use crate::limits::STREAMS_PER_SESSION_MAX;
use crate::stream::Slots;

/// The connection's window. Not a reservation: only what slow readers leave unread is held.
///
/// Windows that were granted while streams were few stay filled when streams become many, so this
/// is more than [`STREAM_WINDOWS_MAX`]: each doubling of the streams adds at most half of it.
pub(crate) const CONNECTION_WINDOW: u32 = 320 << 20;
/// What the stream windows may add up to for a given number of streams.
const STREAM_WINDOWS_MAX: u32 = 64 << 20;
/// Enough for 2 Gbit/s over 2 ms.
pub(crate) const STREAM_WINDOW_START: u32 = 512 << 10;
const STREAM_WINDOW_MAX: u32 = 8 << 20;
/// Invariant: this times the most streams is within the stream windows' sum.
const STREAM_WINDOW_MIN: u32 = 64 << 10;
const _: () =
    assert!(STREAM_WINDOW_MIN as usize * STREAMS_PER_SESSION_MAX <= STREAM_WINDOWS_MAX as usize);

/// The rate one stream should reach, in bytes per second: 2 Gbit/s.
const STREAM_RATE: u64 = 250_000_000;

/// The window of each stream: what is under way at [`STREAM_RATE`] over `round_trip`, within the
/// share that `streams` leave. A power of two, so that it changes rarely.
fn stream_window(round_trip: Duration, streams: usize) -> u32 {
    let micros = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
    let under_way = micros.saturating_mul(STREAM_RATE) / 1_000_000;
    let under_way = u32::try_from(under_way).unwrap_or(u32::MAX);
    let wanted = under_way.clamp(STREAM_WINDOW_START, STREAM_WINDOW_MAX);
    let streams = u32::try_from(streams.max(1)).unwrap_or(u32::MAX);
    let share = STREAM_WINDOWS_MAX / streams;
    let window = wanted.min(share).max(STREAM_WINDOW_MIN);
    1 << window.ilog2()
}

/// Heartbeats that must be answered before a change of the windows is surely acknowledged: `h2` may send one that is
/// due ahead of the change, but not the one after.
const HEARTBEATS_TO_ACKNOWLEDGE: u64 = 2;

/// Keeps the stream windows of one side of a session at what [`stream_window`] wants.
pub(crate) struct Windows {
    window: u32,
    /// Number of answered heartbeats at which the last shrinking is surely acknowledged.
    shrunk_at: Option<u64>,
}

impl Windows {
    pub(crate) fn new() -> Self {
        Self { window: STREAM_WINDOW_START, shrunk_at: None }
    }

    /// To be called when the round trip or the number of streams has changed. `set` gives a size to the connection,
    /// which refuses while an earlier one is not acknowledged.
    pub(crate) fn follow<E>(&mut self, slots: &Slots, set: impl FnOnce(u32) -> Result<(), E>) {
        let answered = slots.round_trip.samples();
        if self.shrunk_at.is_some_and(|acknowledged| answered >= acknowledged) {
            self.shrunk_at = None;
            slots.shrinking.announce();
        }
        let wanted = stream_window(slots.round_trip.get(), slots.open());
        if wanted != self.window && set(wanted).is_ok() {
            if wanted < self.window {
                self.shrunk_at = Some(answered + HEARTBEATS_TO_ACKNOWLEDGE);
            }
            self.window = wanted;
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
    fn a_long_way_gets_a_larger_window() {
        let near = stream_window(Duration::from_millis(1), 4);
        let far = stream_window(Duration::from_millis(80), 4);
        assert_eq!(near, STREAM_WINDOW_START);
        assert_eq!(far, STREAM_WINDOW_MAX);
        assert_eq!(stream_window(Duration::from_millis(80), 1024), STREAM_WINDOW_MIN);
    }
}
