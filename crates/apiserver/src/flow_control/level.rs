//! One priority level at work: requests get seats, or wait for them. Around [`QueueSet`], which
//! decides; here are the clock, the lock and those who wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::queue_set::{Full, QueueSet, Shape, Ticket};

/// Longest wait in a queue: a quarter of what a request may take as a whole.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(15);

/// Why a request was not let in, in the words of Kubernetes' metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    ConcurrencyLimit,
    QueueFull,
    TimeOut,
}

impl Rejection {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// A priority level. Share it in an `Arc`.
pub struct Level {
    /// No limit: seats are only counted.
    pub exempt: bool,
    pub shape: Shape,
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    set: QueueSet,
    waiters: HashMap<u64, oneshot::Sender<Seat>>,
    /// Most seats that could have been used since it was last asked.
    demand_max: u32,
    /// Seats of requests above all limits.
    exempt_seats: u32,
    exempt_executing: u32,
}

/// A figure of each kind, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub executing: u32,
    pub executing_seats: u32,
    pub waiting: usize,
    pub seats: u32,
}

impl Level {
    pub fn new(exempt: bool, shape: Shape, seats: u32) -> Arc<Self> {
        let state = State {
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

    /// Lets a request of a flow in, which takes `seats`, when it is its turn. Dropping the future
    /// gives the place in the queue up; dropping the seat ends the request.
    pub async fn admit(self: &Arc<Self>, flow: u64, seats: u32) -> Result<Seat, Rejection> {
        if self.exempt {
            return Ok(self.exempted(seats));
        }
        let (place, turn) = match self.arrive(flow, seats)? {
            Arrival::Seated(seat) => return Ok(seat),
            Arrival::Waits(place, turn) => (place, turn),
        };
        let seat = tokio::time::timeout(QUEUE_WAIT_MAX, turn).await;
        drop(place);
        match seat {
            Ok(Ok(seat)) => Ok(seat),
            Ok(Err(_)) | Err(_) => Err(Rejection::TimeOut),
        }
    }

    fn exempted(self: &Arc<Self>, seats: u32) -> Seat {
        let mut state = self.state.lock();
        state.exempt_executing += 1;
        state.exempt_seats += seats;
        let ticket = None;
        Seat { level: self.clone(), ticket, seats, since: Instant::now() }
    }

    fn arrive(self: &Arc<Self>, flow: u64, seats: u32) -> Result<Arrival, Rejection> {
        let now = self.now();
        let mut state = self.state.lock();
        let ticket = state.set.arrive(now, flow, seats).map_err(|full| match full {
            Full::Seats => Rejection::ConcurrencyLimit,
            Full::Queue => Rejection::QueueFull,
        })?;
        state.demand_max = state.demand_max.max(state.set.demand());
        // Whoever waits has been offered every free seat before, so only this one can be next.
        if let Some(next) = state.set.dispatch(now) {
            debug_assert_eq!(next.id, ticket.id, "nobody waits while there is a seat");
            drop(state);
            return Ok(Arrival::Seated(self.seat(next)));
        }
        let (sender, turn) = oneshot::channel();
        state.waiters.insert(ticket.id, sender);
        Ok(Arrival::Waits(Place { level: self.clone(), ticket }, turn))
    }

    fn seat(self: &Arc<Self>, ticket: Ticket) -> Seat {
        let (seats, ticket) = (ticket.seats, Some(ticket));
        Seat { level: self.clone(), ticket, seats, since: Instant::now() }
    }

    /// Seats those who are next, as long as there are seats.
    fn seat_next(self: &Arc<Self>, state: &mut State) -> Vec<(oneshot::Sender<Seat>, Seat)> {
        let now = self.now();
        let mut seated = Vec::new();
        while let Some(ticket) = state.set.dispatch(now) {
            let sender = state.waiters.remove(&ticket.id).expect("who waits has a sender");
            seated.push((sender, self.seat(ticket)));
        }
        seated
    }

    /// Changes the state, and lets those in who fit then.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State, Duration)) {
        let mut state = self.state.lock();
        change(&mut state, self.now());
        let seated = self.seat_next(&mut state);
        drop(state);
        for (sender, seat) in seated {
            // Who is gone gives the seat back by dropping it, which needs the lock.
            let _ = sender.send(seat);
        }
    }

    pub fn set_seats(self: &Arc<Self>, seats: u32) {
        self.change(|state, now| state.set.set_seats(now, seats));
    }

    /// Most seats that could have been used since the last call.
    pub fn take_demand(&self) -> u32 {
        let mut state = self.state.lock();
        let now = state.set.demand();
        std::mem::replace(&mut state.demand_max, now).max(now)
    }

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
    Waits(Place, oneshot::Receiver<Seat>),
}

/// A place in a queue; given up when dropped.
struct Place {
    level: Arc<Level>,
    ticket: Ticket,
}

impl Drop for Place {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.level.change(|state, now| {
            // Otherwise it was its turn already.
            if state.set.cancel(now, ticket) {
                state.waiters.remove(&ticket.id);
            }
        });
    }
}

/// What an executing request holds. Dropping it lets the next one in.
pub struct Seat {
    level: Arc<Level>,
    /// Absent above all limits.
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

    const QUEUES: Shape = Shape { queues: 8, hand: 2, length_max: 3 };

    #[tokio::test]
    async fn who_waits_gets_the_seat_that_another_leaves() {
        let level = Level::new(false, QUEUES, 1);
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
    async fn nobody_waits_for_ever_and_who_leaves_is_forgotten() {
        let level = Level::new(false, QUEUES, 1);
        let seat = level.admit(1, 1).await.unwrap();
        let refused = level.admit(2, 1).await.map(drop);
        assert_eq!(refused, Err(Rejection::TimeOut));
        let gone = tokio::time::timeout(Duration::from_secs(1), level.admit(3, 1)).await;
        assert!(gone.is_err());
        assert_eq!(level.load().waiting, 0);
        drop(seat);
        assert_eq!(level.load().executing, 0);
        assert!(level.admit(4, 1).await.is_ok());
    }

    #[tokio::test]
    async fn queues_have_an_end_and_levels_without_queues_refuse_at_once() {
        let level = Level::new(false, Shape { queues: 1, hand: 1, length_max: 1 }, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        let mut waits = Box::pin(level.admit(1, 1));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        assert_eq!(level.admit(1, 1).await.map(drop), Err(Rejection::QueueFull));

        let level = Level::new(false, Shape { queues: 0, hand: 0, length_max: 0 }, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        assert_eq!(level.admit(2, 1).await.map(drop), Err(Rejection::ConcurrencyLimit));
    }

    #[tokio::test]
    async fn the_exempt_level_counts_and_never_refuses() {
        let level = Level::new(true, Shape { queues: 0, hand: 0, length_max: 0 }, 0);
        let mut seats = Vec::new();
        for flow in 0..1000 {
            seats.push(level.admit(flow, 1).await.unwrap());
        }
        assert_eq!(level.load().executing, 1000);
        drop(seats);
        assert_eq!(level.load().executing, 0);
    }

    #[tokio::test]
    async fn more_seats_let_more_in() {
        let level = Level::new(false, QUEUES, 1);
        let _seat = level.admit(1, 1).await.unwrap();
        let mut waits = Box::pin(level.admit(2, 1));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        level.set_seats(2);
        assert!(waits.await.is_ok());
    }
}
