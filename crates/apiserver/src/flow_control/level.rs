//! One running priority level: requests get seats, or wait for them. [`QueueSet`] decides; this
//! module adds the clock, the lock and the waiting tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::queue_set::{Full, QueueSet, QueueShape, Ticket};

/// Longest wait in a queue: a quarter of the longest time that a request may take.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(15);

/// Why a request was rejected, in the words of the metrics of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The level has no queues, and no free seat.
    ConcurrencyLimit,
    /// The shortest queue of the flow is full.
    QueueFull,
    /// The wait reached [`QUEUE_WAIT_MAX`].
    TimeOut,
}

impl Rejection {
    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// A priority level with its waiting and executing requests. Shared in an `Arc`.
pub struct PriorityLevel {
    /// Without limits: seats are only counted.
    pub exempt: bool,
    /// Of its queues; ignored when it is exempt.
    pub shape: QueueShape,
    begun: Instant,
    state: Mutex<LevelState>,
}

struct LevelState {
    set: QueueSet,
    waiters: HashMap<u64, oneshot::Sender<Seat>>,
    /// Most seats that could have been used since the last [`PriorityLevel::take_demand`].
    demand_max: u32,
    /// Seats of requests on an exempt level.
    exempt_seats: u32,
    exempt_executing: u32,
}

/// The current figures of a level, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests.
    pub executing: u32,
    /// Seats that the executing requests hold.
    pub executing_seats: u32,
    /// Requests in queues.
    pub waiting: usize,
    /// Seats that the level has at present.
    pub seats: u32,
}

impl PriorityLevel {
    /// Returns a level with `seats` seats, which [`PriorityLevel::set_seats`] changes.
    pub fn new(exempt: bool, shape: QueueShape, seats: u32) -> Arc<Self> {
        let state = LevelState {
            set: QueueSet::new(shape, seats),
            waiters: HashMap::new(),
            demand_max: 0,
            exempt_seats: 0,
            exempt_executing: 0,
        };
        Arc::new(Self { exempt, shape, begun: Instant::now(), state: Mutex::new(state) })
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Waits until a request of the flow with this hash gets `seats` seats. Dropping the future
    /// gives up the queue slot; dropping the [`Seat`] ends the request.
    ///
    /// # Errors
    /// Why the request is rejected: the caller responds with 429.
    pub async fn admit(self: &Arc<Self>, flow: u64, seats: u32) -> Result<Seat, Rejection> {
        if self.exempt {
            return Ok(self.exempt_seat(seats));
        }
        let (slot, seated) = match self.arrive(self.now(), flow, seats)? {
            Arrival::Seated(seat) => return Ok(seat),
            Arrival::Waits(slot, seated) => (slot, seated),
        };
        let seat = tokio::time::timeout(QUEUE_WAIT_MAX, seated).await;
        drop(slot);
        match seat {
            Ok(Ok(seat)) => Ok(seat),
            Ok(Err(_)) | Err(_) => Err(Rejection::TimeOut),
        }
    }

    fn exempt_seat(self: &Arc<Self>, seats: u32) -> Seat {
        let mut state = self.state.lock();
        state.exempt_executing += 1;
        state.exempt_seats += seats;
        let ticket = None;
        Seat { level: self.clone(), ticket, seats, since: Instant::now() }
    }

    fn arrive(
        self: &Arc<Self>,
        now: Duration,
        flow: u64,
        seats: u32,
    ) -> Result<Arrival, Rejection> {
        let mut state = self.state.lock();
        let ticket = state.set.arrive(now, flow, seats).map_err(|full| match full {
            Full::Seats => Rejection::ConcurrencyLimit,
            Full::Queue => Rejection::QueueFull,
        })?;
        state.demand_max = state.demand_max.max(state.set.demand());
        let next = state.set.dispatch(now);
        if let Some(next) = next.filter(|next| next.id == ticket.id) {
            drop(state);
            return Ok(Arrival::Seated(self.seat(next)));
        }
        let (sender, seated) = oneshot::channel();
        state.waiters.insert(ticket.id, sender);
        // Another one may be next: a request that needs several seats held up the ones behind it,
        // and its turn comes later now.
        let mut others = Vec::new();
        if let Some(next) = next {
            let sender =
                state.waiters.remove(&next.id).expect("every waiting request has a sender");
            others.push((sender, self.seat(next)));
            others.extend(self.seat_next(&mut state));
        }
        drop(state);
        for (sender, seat) in others {
            let _ = sender.send(seat);
        }
        Ok(Arrival::Waits(QueueSlot { level: self.clone(), ticket }, seated))
    }

    fn seat(self: &Arc<Self>, ticket: Ticket) -> Seat {
        let (seats, ticket) = (ticket.seats, Some(ticket));
        Seat { level: self.clone(), ticket, seats, since: Instant::now() }
    }

    /// Gives seats to the next requests, as long as there are seats.
    fn seat_next(self: &Arc<Self>, state: &mut LevelState) -> Vec<(oneshot::Sender<Seat>, Seat)> {
        let now = self.now();
        let mut seated = Vec::new();
        while let Some(ticket) = state.set.dispatch(now) {
            let sender =
                state.waiters.remove(&ticket.id).expect("every waiting request has a sender");
            seated.push((sender, self.seat(ticket)));
        }
        seated
    }

    /// Changes the state, then gives seats to the requests that fit.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut LevelState, Duration)) {
        let mut state = self.state.lock();
        change(&mut state, self.now());
        let seated = self.seat_next(&mut state);
        drop(state);
        for (sender, seat) in seated {
            // A cancelled request gives the seat back by dropping it, which needs the lock.
            let _ = sender.send(seat);
        }
    }

    /// Changes the number of seats. Executing requests continue above a lower number.
    pub fn set_seats(self: &Arc<Self>, seats: u32) {
        self.change(|state, now| state.set.set_seats(now, seats));
    }

    /// Most seats that could have been used at once since the last call.
    pub fn take_demand(&self) -> u32 {
        let mut state = self.state.lock();
        let now = state.set.demand();
        std::mem::replace(&mut state.demand_max, now).max(now)
    }

    /// The current figures.
    pub fn load(&self) -> Load {
        let state = self.state.lock();
        Load {
            executing: state.set.executing() + state.exempt_executing,
            executing_seats: state.set.executing_seats() + state.exempt_seats,
            waiting: state.set.waiting(),
            seats: state.set.seats(),
        }
    }
}

enum Arrival {
    Seated(Seat),
    Waits(QueueSlot, oneshot::Receiver<Seat>),
}

/// A slot in a queue; given up when dropped.
struct QueueSlot {
    level: Arc<PriorityLevel>,
    ticket: Ticket,
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.level.change(|state, now| {
            // Otherwise it got its seat already.
            if state.set.cancel(now, ticket) {
                state.waiters.remove(&ticket.id);
            }
        });
    }
}

/// The seats of an executing request. Dropping it gives them to the next request.
pub struct Seat {
    level: Arc<PriorityLevel>,
    /// `None` on an exempt level.
    ticket: Option<Ticket>,
    seats: u32,
    since: Instant,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (ticket, seats, took) = (self.ticket, self.seats, self.since.elapsed());
        self.level.change(|state, now| match ticket {
            Some(ticket) => state.set.finish(now, ticket, took),
            None => {
                state.exempt_executing -= 1;
                state.exempt_seats -= seats;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUES: QueueShape = QueueShape { queues: 8, hand: 2, length_max: 3 };

    #[tokio::test]
    async fn a_waiting_request_gets_the_seat_that_another_releases() {
        let level = PriorityLevel::new(false, QUEUES, 1);
        let first = level.admit(1, 1).await.unwrap();
        let second = tokio::spawn({
            let level = level.clone();
            async move { level.admit(2, 1).await.map(drop) }
        });
        while level.load().waiting == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!((level.load().executing, level.take_demand()), (1, 2));
        drop(first);
        second.await.unwrap().unwrap();
        assert_eq!(level.load(), Load { executing: 0, executing_seats: 0, waiting: 0, seats: 1 });
    }

    #[tokio::test(start_paused = true)]
    async fn waits_time_out_and_cancelled_requests_leave_the_queue() {
        let level = PriorityLevel::new(false, QUEUES, 1);
        let seat = level.admit(1, 1).await.unwrap();
        let refused = level.admit(2, 1).await.map(drop);
        assert_eq!(refused, Err(Rejection::TimeOut));
        let cancelled = tokio::time::timeout(Duration::from_secs(1), level.admit(3, 1)).await;
        assert!(cancelled.is_err());
        assert_eq!(level.load().waiting, 0);
        drop(seat);
        assert_eq!(level.load().executing, 0);
        assert!(level.admit(4, 1).await.is_ok());
    }

    #[tokio::test]
    async fn full_queues_and_levels_without_queues_reject_at_once() {
        let level = PriorityLevel::new(false, QueueShape { queues: 1, hand: 1, length_max: 1 }, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        let mut waits = Box::pin(level.admit(1, 1));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        assert_eq!(level.admit(1, 1).await.map(drop), Err(Rejection::QueueFull));

        let level = PriorityLevel::new(false, QueueShape { queues: 0, hand: 0, length_max: 0 }, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        assert_eq!(level.admit(2, 1).await.map(drop), Err(Rejection::ConcurrencyLimit));
    }

    #[tokio::test]
    async fn the_exempt_level_counts_requests_and_never_rejects() {
        let level = PriorityLevel::new(true, QueueShape { queues: 0, hand: 0, length_max: 0 }, 0);
        let mut seats = Vec::new();
        for flow in 0..1000 {
            seats.push(level.admit(flow, 1).await.unwrap());
        }
        assert_eq!(level.load().executing, 1000);
        drop(seats);
        assert_eq!(level.load().executing, 0);
    }

    /// Who is next changes with time while a wide request waits for its seats, so an arrival can be
    /// the turn of another request.
    #[tokio::test]
    async fn an_arrival_wakes_the_request_whose_turn_it_is() {
        let shape = QueueShape { queues: 64, hand: 1, length_max: 10 };
        let level = PriorityLevel::new(false, shape, 10);
        let at = |millis| Duration::from_millis(millis);
        let arrive = |millis, flow, seats| level.arrive(at(millis), flow, seats).unwrap();
        let waits = |arrival| match arrival {
            Arrival::Waits(slot, seated) => (slot, seated),
            Arrival::Seated(_) => panic!("it has a seat"),
        };
        let Arrival::Seated(first) = arrive(0, 1, 1) else { panic!("no seat") };
        let Arrival::Seated(second) = arrive(0, 2, 4) else { panic!("no seat") };
        // Wide: it waits for a seat of another. Narrow: it would fit, but the wide one is first.
        let (_wide_slot, mut wide) = waits(arrive(0, 1, 6));
        let (_narrow_slot, mut narrow) = waits(arrive(10, 3, 5));
        // Later the wide one's queue has used more, and the narrow one is first.
        let (_last_slot, mut last) = waits(arrive(100, 4, 5));
        let narrow = narrow.try_recv().expect("it is the turn of the narrow one");
        assert!(wide.try_recv().is_err() && last.try_recv().is_err());
        drop((first, second, narrow));
        let rest = [wide.try_recv().is_ok(), last.try_recv().is_ok()];
        assert!(rest.contains(&true), "nobody was woken");
    }

    #[tokio::test]
    async fn more_seats_admit_waiting_requests() {
        let level = PriorityLevel::new(false, QUEUES, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        let mut waits = Box::pin(level.admit(2, 1));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        level.set_seats(2);
        assert!(waits.await.is_ok());
    }
}
