//! Detects a dead peer. Any byte from it counts, not only replies to heartbeats, so a busy link is
//! never taken for a dead one. A peer that vanished without closing (a cut cable, a frozen host) is
//! detected after [`PEER_SILENCE_MAX`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

use crate::limits::{HEARTBEAT_INTERVAL, PEER_SILENCE_MAX};

/// Time to read bytes that have already arrived, before a silent peer counts as dead.
const SILENCE_RECHECK_PAUSE: Duration = Duration::from_millis(500);

/// When the last byte came from the peer. The wire marks it; sessions read it.
#[derive(Clone)]
pub(crate) struct Heard {
    started: Instant,
    millis: Arc<AtomicU64>,
}

impl Heard {
    pub(crate) fn now() -> Self {
        Self { started: Instant::now(), millis: Arc::default() }
    }

    pub(crate) fn mark(&self) {
        let millis = self.started.elapsed().as_millis();
        self.millis.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.started + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    pub(crate) fn silence(&self) -> Duration {
        self.last().elapsed()
    }

    /// Returns when the peer has been silent for `limit`.
    async fn silent_for(&self, limit: Duration) {
        loop {
            let due = self.last() + limit;
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    /// Returns when the peer has been silent for [`PEER_SILENCE_MAX`].
    ///
    /// When this process was stopped for a while (a suspended host, a starved processor), the clock
    /// is ahead of the bytes that wait to be read. So the silence is checked again after a pause.
    pub(crate) async fn dead(&self) {
        loop {
            self.silent_for(PEER_SILENCE_MAX).await;
            tokio::time::sleep(SILENCE_RECHECK_PAUSE).await;
            if self.silence() >= PEER_SILENCE_MAX {
                return;
            }
        }
    }
}

/// The measured round trip, and a notification for the tasks that size windows by it.
#[derive(Clone, Default)]
pub(crate) struct RoundTrip {
    micros: Arc<AtomicU64>,
    samples: Arc<AtomicU64>,
    changed: Arc<Notify>,
    hurry: Arc<Notify>,
}

impl RoundTrip {
    /// Zero until measured.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    /// The minimum of the samples, which decays slowly: a sample that waited behind bulk data says
    /// little about the path.
    fn record(&self, sample: Duration) {
        let sample = u64::try_from(sample.as_micros()).unwrap_or(u64::MAX).max(1);
        let known = self.micros.load(Ordering::Relaxed);
        let next = if known == 0 { sample } else { sample.min(known + known / 8 + 1) };
        self.micros.store(next, Ordering::Relaxed);
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.ring();
    }

    /// The number of heartbeats that got a reply.
    pub(crate) fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Requests a heartbeat now.
    pub(crate) fn hurry(&self) {
        self.hurry.notify_one();
    }

    pub(crate) fn ring(&self) {
        self.changed.notify_one();
    }

    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Sends a heartbeat every [`HEARTBEAT_INTERVAL`] and on [`RoundTrip::hurry`], and measures the
/// round trip. Returns only when the connection has ended; [`Heard`] detects silence.
pub(crate) async fn beat(mut pings: PingPong, round_trip: RoundTrip) {
    let mut ticks = tokio::time::interval(HEARTBEAT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = round_trip.hurry.notified() => {}
        }
        let sent = Instant::now();
        match pings.ping(Ping::opaque()).await {
            Ok(_) => round_trip.record(sent.elapsed()),
            Err(_) => return,
        }
    }
}
