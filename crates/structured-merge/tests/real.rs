//! The same random writes by several managers to a real kube-apiserver and to this crate. Each
//! response must carry the entries that this crate computes, byte for byte, and each conflict must
//! have the same text.
//!
//! The server's own part (defaults, generated names, allocation) is taken from its responses.
//! Ownership, merging and pruning are compared. A failure prints the seed; `DROVER_SEED` repeats
//! it.

#![allow(clippy::unwrap_used)]

#[path = "real/bodies.rs"]
mod bodies;
#[path = "real/random.rs"]
mod random;
#[path = "real/server.rs"]
mod server;
#[path = "real/stream.rs"]
mod stream;
#[path = "real/wait.rs"]
mod wait;

use std::time::{Duration, SystemTime};

use random::Random;
use server::Server;
use stream::Stream;

/// Number of writes to each object. Takes some seconds in all.
const STEPS: usize = 150;
/// Number of these writes that the server must accept, or the test tests nothing.
const TAKEN_MIN: usize = 50;
/// Times of entries have seconds, and order entries: a stream must cross some.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

fn seed() -> u64 {
    match std::env::var("DROVER_SEED") {
        Ok(text) => text.parse().expect("DROVER_SEED is a number"),
        Err(_) => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_equal_those_of_a_real_api_server() {
    let seed = seed();
    println!("seed {seed}");
    let server = Server::start().await;
    server.define(bodies::widget_definition()).await;
    let kinds = bodies::kinds();
    let mut streams = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let random = Random::new(seed.wrapping_add(at as u64));
        let schema = server.schema(kind).await;
        streams.push(Stream::new(kind, schema, random));
    }
    for step in 0..STEPS {
        for stream in &mut streams {
            stream.step(&server, step).await;
        }
        wait::pause(STEP_INTERVAL).await;
    }
    for stream in &streams {
        println!("{}", stream.summary());
        assert!(stream.taken >= TAKEN_MIN, "{}", stream.summary());
    }
    println!("{}", stream::cost(&streams));
}
