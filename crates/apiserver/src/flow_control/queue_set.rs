//! The fair queues of one priority level: which request waits in which queue, and which one is
//! next. Pure: time is an argument.
//!
//! Each queue has its own virtual clock: the time at which the work it has been given so far would
//! be done if all busy queues shared the seats evenly. The next request is the one that would be
//! done first, so a queue with much work waits for those with little. A request is charged for its
//! execution time while it executes; one that has just begun is charged [`EXPECTED_WORK`]. This is
//! the fair queuing of Kubernetes' API priority and fairness, where a request is charged at its
//! end.

use std::collections::VecDeque;
use std::time::Duration;

use super::shuffle::deal;

/// Seconds that a request is assumed to take while it has not ended.
pub const EXPECTED_WORK: f64 = 0.003;

/// The shape of the queues of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueShape {
    /// 0: requests never wait, and those without a free seat are rejected.
    pub queues: usize,
    /// Queues that one flow may use (`handSize`).
    pub hand: usize,
    /// Requests that may wait in one queue.
    pub length_max: usize,
}

/// A request in the set, waiting or executing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ticket {
    /// Unique within the set.
    pub id: u64,
    /// Seats that the request takes.
    pub seats: u32,
    queue: usize,
    /// Virtual time of its arrival.
    arrived: f64,
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The level does not queue, and all of its seats are taken.
    Seats,
    /// The queue is as long as it may be.
    Queue,
}

#[derive(Default)]
struct FairQueue {
    waiting: VecDeque<Ticket>,
    waiting_seats: u32,
    executing: u32,
    executing_seats: u32,
    /// Sum over the executing requests: seats times the second of their start.
    began: f64,
    /// Virtual time at which the work of requests that have ended is done.
    done_at: f64,
}

impl FairQueue {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.executing == 0
    }

    /// Virtual time at which the work given so far is done, executing requests included.
    fn busy_until(&self, now: f64) -> f64 {
        let seats = f64::from(self.executing_seats);
        self.done_at + (seats * now - self.began).max(seats * EXPECTED_WORK)
    }
}

/// The queues and the seats of one priority level.
pub struct QueueSet {
    shape: QueueShape,
    queues: Vec<FairQueue>,
    seats: u32,
    executing: u32,
    executing_seats: u32,
    waiting: usize,
    waiting_seats: u32,
    /// Queues that wait or execute.
    busy: u32,
    /// Seat-seconds that each busy queue has received since the start.
    virtual_now: f64,
    now: Duration,
    next_id: u64,
    /// Index at which the search for the next request starts. It advances, so that equal queues
    /// alternate.
    search_start: usize,
    /// The queue of the latest arrival.
    newest: usize,
}

impl QueueSet {
    /// Returns an empty set. Its clock starts at [`Duration::ZERO`].
    pub fn new(shape: QueueShape, seats: u32) -> Self {
        let mut queues = Vec::new();
        queues.resize_with(shape.queues.max(1), FairQueue::default);
        Self {
            shape,
            queues,
            seats,
            executing: 0,
            executing_seats: 0,
            waiting: 0,
            waiting_seats: 0,
            busy: 0,
            virtual_now: 0.0,
            now: Duration::ZERO,
            next_id: 0,
            search_start: 0,
            newest: 0,
        }
    }

    /// Requests that execute.
    pub fn executing(&self) -> u32 {
        self.executing
    }

    /// Seats that the executing requests hold.
    pub fn executing_seats(&self) -> u32 {
        self.executing_seats
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Seats that executing and waiting requests could use at this moment.
    pub fn demand(&self) -> u32 {
        self.executing_seats + self.waiting_seats
    }

    /// Seats of the level.
    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// Changes the number of seats. Executing requests continue above a lower number.
    pub fn set_seats(&mut self, now: Duration, seats: u32) {
        self.advance(now);
        self.seats = seats;
    }

    /// Queues a request of the flow with this hash. It executes once [`QueueSet::dispatch`] returns
    /// its ticket.
    ///
    /// # Errors
    /// [`Full`] when there is neither a free seat nor a free queue slot: reject the request.
    pub fn arrive(&mut self, now: Duration, flow: u64, seats: u32) -> Result<Ticket, Full> {
        self.advance(now);
        if self.shape.queues == 0 && !self.has_room(seats) {
            return Err(Full::Seats);
        }
        let index = self.choose(flow);
        let queue = &mut self.queues[index];
        if self.shape.queues > 0 && queue.waiting.len() >= self.shape.length_max {
            return Err(Full::Queue);
        }
        if queue.is_idle() {
            self.busy += 1;
            queue.done_at = self.virtual_now;
        }
        let arrived = self.virtual_now;
        let ticket = Ticket { id: self.next_id, seats, queue: index, arrived };
        self.next_id += 1;
        self.newest = index;
        queue.waiting.push_back(ticket);
        queue.waiting_seats += seats;
        self.waiting += 1;
        self.waiting_seats += seats;
        Ok(ticket)
    }

    /// The request that executes from now on; `None` when no request waits, or there are not enough
    /// free seats for the next one.
    pub fn dispatch(&mut self, now: Duration) -> Option<Ticket> {
        self.advance(now);
        let index = self.next()?;
        let head = *self.queues[index].waiting.front()?;
        // The next request waits for all of its seats, or wide requests would starve.
        if !self.has_room(head.seats) {
            return None;
        }
        let queue = &mut self.queues[index];
        queue.waiting.pop_front();
        queue.waiting_seats -= head.seats;
        queue.executing += 1;
        queue.executing_seats += head.seats;
        queue.began += f64::from(head.seats) * now.as_secs_f64();
        self.waiting -= 1;
        self.waiting_seats -= head.seats;
        self.executing += 1;
        self.executing_seats += head.seats;
        self.search_start = (index + 1) % self.queues.len();
        Some(head)
    }

    /// The queue whose first request would be done first.
    fn next(&self) -> Option<usize> {
        // The usual case: only the latest arrival waits.
        if self.waiting <= 1 && !self.queues[self.newest].waiting.is_empty() {
            return Some(self.newest);
        }
        let now = self.now.as_secs_f64();
        let done_at = |index: usize| {
            let queue = &self.queues[index];
            let head = queue.waiting.front()?;
            // Time that a queue did not use before the request arrived is not credited.
            let begins = queue.busy_until(now).max(head.arrived);
            Some((index, begins + f64::from(head.seats) * EXPECTED_WORK))
        };
        let count = self.queues.len();
        let waiting = (0..count).filter_map(|step| done_at((self.search_start + step) % count));
        let best = waiting.reduce(|best, other| if other.1 < best.1 { other } else { best });
        best.map(|(index, _)| index)
    }

    /// Records that an executing request has ended, after `took`.
    pub fn finish(&mut self, now: Duration, ticket: Ticket, took: Duration) {
        self.advance(now);
        let queue = &mut self.queues[ticket.queue];
        queue.executing -= 1;
        queue.executing_seats -= ticket.seats;
        let (seats, took) = (f64::from(ticket.seats), took.as_secs_f64());
        queue.done_at += seats * took;
        queue.began -= seats * (now.as_secs_f64() - took);
        if queue.executing == 0 {
            // Rounding does not add up.
            queue.began = 0.0;
        }
        if queue.is_idle() {
            self.busy -= 1;
        }
        self.executing -= 1;
        self.executing_seats -= ticket.seats;
    }

    /// Removes a waiting request. `false` when it does not wait.
    pub fn cancel(&mut self, now: Duration, ticket: Ticket) -> bool {
        self.advance(now);
        let queue = &mut self.queues[ticket.queue];
        let Some(position) = queue.waiting.iter().position(|other| other.id == ticket.id) else {
            return false;
        };
        queue.waiting.remove(position);
        queue.waiting_seats -= ticket.seats;
        if queue.is_idle() {
            self.busy -= 1;
        }
        self.waiting -= 1;
        self.waiting_seats -= ticket.seats;
        true
    }

    /// A request that is wider than the level executes alone.
    fn has_room(&self, seats: u32) -> bool {
        if seats > self.seats {
            return self.executing == 0;
        }
        self.executing_seats + seats <= self.seats
    }

    /// The queue with the least work among those of the hand of the flow.
    fn choose(&self, flow: u64) -> usize {
        let work = |index: usize| {
            let queue = &self.queues[index];
            queue.waiting_seats + queue.executing_seats
        };
        deal(flow, self.queues.len(), self.shape.hand.max(1))
            .min_by_key(|index| work(*index))
            .expect("a hand has a card, since there is a queue")
    }

    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        if self.busy > 0 {
            let used = self.demand().min(self.seats.max(1));
            self.virtual_now += passed.as_secs_f64() * f64::from(used) / f64::from(self.busy);
        }
    }
}

#[cfg(test)]
mod tests;
