//! Fairness in virtual time: a server with some seats, flows that send, and how much each gets.

use super::*;

const QUEUES: QueueShape = QueueShape { queues: 64, hand: 6, length_max: 50 };

/// Requests that execute, with the time of their end.
struct Server {
    set: QueueSet,
    now: Duration,
    running: Vec<(Duration, Duration, Ticket)>,
    took: Duration,
}

impl Server {
    fn new(shape: QueueShape, seats: u32, took: Duration) -> Self {
        Self { set: QueueSet::new(shape, seats), now: Duration::ZERO, running: Vec::new(), took }
    }

    fn arrive(&mut self, flow: u64) -> Result<Ticket, Full> {
        self.set.arrive(self.now, hash(flow), 1)
    }

    /// Starts every request that can start, and returns them.
    fn begin(&mut self) -> Vec<Ticket> {
        let mut begun = Vec::new();
        while let Some(ticket) = self.set.dispatch(self.now) {
            self.running.push((self.now + self.took, self.now, ticket));
            begun.push(ticket);
        }
        begun
    }

    /// Moves on to the next end of a request.
    fn step(&mut self) {
        self.running.sort_by_key(|(end, _, _)| *end);
        if self.running.is_empty() {
            return;
        }
        let (end, begun, ticket) = self.running.remove(0);
        self.now = end;
        self.set.finish(end, ticket, end - begun);
    }
}

fn hash(flow: u64) -> u64 {
    (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (flow << 29)
}

#[test]
fn requests_execute_up_to_the_seats_and_wait_above() {
    let mut server = Server::new(QUEUES, 3, Duration::from_millis(10));
    for flow in 0..5 {
        server.arrive(flow).unwrap();
    }
    assert_eq!(server.begin().len(), 3);
    assert_eq!((server.set.executing(), server.set.waiting()), (3, 2));
    server.step();
    assert_eq!(server.begin().len(), 1);
    assert_eq!(server.set.executing_seats(), 3);
}

#[test]
fn a_flood_does_not_delay_a_flow_that_sends_seldom() {
    let mut server = Server::new(QUEUES, 2, Duration::from_millis(5));
    let mut refused = 0;
    let mut waits = Vec::new();
    for round in 0..400_u64 {
        // The flood keeps its queues full.
        while refused < round + 1 {
            match server.arrive(0) {
                Ok(_) => {}
                Err(Full::Queue) => refused += 1,
                Err(Full::Seats) => unreachable!("the level queues"),
            }
        }
        server.begin();
        if round % 20 == 19 {
            let sent_at = server.now;
            let ticket = server.arrive(1 + round / 20).unwrap();
            while !server.running.iter().any(|(_, _, running)| running.id == ticket.id) {
                server.step();
                server.begin();
            }
            waits.push(server.now - sent_at);
        }
        server.step();
        server.begin();
    }
    // The flood has up to 6 queues with 50 requests each before it: 750 ms of work. One that is
    // alone in a queue waits for the seats of those that are executing, and for a few others.
    let longest = waits.iter().max().unwrap();
    assert!(*longest <= Duration::from_millis(40), "{waits:?}");
}

#[test]
fn flows_that_always_wait_get_even_shares() {
    let shape = QueueShape { queues: 256, hand: 1, length_max: 50 };
    let mut server = Server::new(shape, 4, Duration::from_millis(3));
    let flows: Vec<u64> = (0..8).collect();
    let mut owners = std::collections::BTreeMap::new();
    let mut served = [0_u32; 8];
    for _ in 0..4_000 {
        for flow in &flows {
            // Flow 0 sends ten times as much as the others.
            for _ in 0..if *flow == 0 { 10 } else { 1 } {
                if let Ok(ticket) = server.arrive(*flow) {
                    owners.insert(ticket.id, *flow);
                }
            }
        }
        for ticket in server.begin() {
            served[owners[&ticket.id] as usize] += 1;
        }
        server.step();
    }
    let even = 4_000 / 8;
    for (flow, count) in served.iter().enumerate() {
        assert!((even - 60..even + 60).contains(count), "flow {flow}: {count} of {served:?}");
    }
}

#[test]
fn long_requests_are_charged_for_what_they_took() {
    let shape = QueueShape { queues: 256, hand: 1, length_max: 1_000 };
    let mut set = QueueSet::new(shape, 1);
    let (long, short) = (hash(1), hash(2));
    let mut of = std::collections::BTreeMap::new();
    for _ in 0..400 {
        of.insert(set.arrive(Duration::ZERO, long, 1).unwrap().id, 0);
        of.insert(set.arrive(Duration::ZERO, short, 1).unwrap().id, 1);
    }
    let (mut now, mut time) = (Duration::ZERO, [Duration::ZERO; 2]);
    while now < Duration::from_secs(4) {
        let ticket = set.dispatch(now).unwrap();
        let owner = of[&ticket.id];
        let took = Duration::from_millis(if owner == 0 { 100 } else { 10 });
        now += took;
        time[owner] += took;
        set.finish(now, ticket, took);
    }
    let (long, short) = (time[0].as_secs_f64(), time[1].as_secs_f64());
    assert!((0.8..1.25).contains(&(long / short)), "{time:?}");
}

#[test]
fn wide_requests_wait_for_their_seats_and_do_not_starve() {
    let mut server = Server::new(QUEUES, 4, Duration::from_millis(1));
    for flow in 0..4 {
        server.arrive(flow).unwrap();
    }
    server.begin();
    let wide = server.set.arrive(server.now, hash(9), 10).unwrap();
    let mut steps = 0;
    loop {
        for flow in 20..24 {
            let _ = server.arrive(flow);
        }
        if server.begin().contains(&wide) {
            break;
        }
        server.step();
        steps += 1;
        // Ten seats are charged as 30 ms of work, and up to 25 queues share 4 ms in each one.
        assert!(steps < 1500, "the wide request starves");
    }
    assert_eq!(server.set.executing(), 1, "what is wider than the level executes alone");
}

#[test]
fn full_queues_and_levels_without_queues_reject() {
    let mut set = QueueSet::new(QueueShape { queues: 1, hand: 1, length_max: 2 }, 1);
    let now = Duration::ZERO;
    set.arrive(now, 1, 1).unwrap();
    set.dispatch(now).unwrap();
    set.arrive(now, 1, 1).unwrap();
    set.arrive(now, 2, 1).unwrap();
    assert_eq!(set.arrive(now, 3, 1), Err(Full::Queue));

    let mut set = QueueSet::new(QueueShape { queues: 0, hand: 0, length_max: 0 }, 2);
    let first = set.arrive(now, 1, 1).unwrap();
    assert_eq!(set.dispatch(now), Some(first));
    let second = set.arrive(now, 1, 1).unwrap();
    assert_eq!(set.dispatch(now), Some(second));
    assert_eq!(set.arrive(now, 1, 1), Err(Full::Seats));
    set.finish(now, first, Duration::ZERO);
    assert!(set.arrive(now, 1, 1).is_ok());
}

#[test]
fn a_cancelled_request_leaves_nothing_behind() {
    let mut set = QueueSet::new(QUEUES, 1);
    let first = set.arrive(Duration::ZERO, 1, 1).unwrap();
    let second = set.arrive(Duration::ZERO, 1, 3).unwrap();
    assert_eq!(set.dispatch(Duration::ZERO), Some(first));
    assert!(set.cancel(Duration::ZERO, second));
    assert!(!set.cancel(Duration::ZERO, second));
    assert!(!set.cancel(Duration::ZERO, first), "it executes");
    set.finish(Duration::from_millis(1), first, Duration::from_millis(1));
    assert_eq!((set.demand(), set.waiting(), set.busy), (0, 0, 0));
}
