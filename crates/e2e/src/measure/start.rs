//! The time until a server is ready, and its memory without requests.

use anyhow::Result;

use super::{Row, Samples, Target, settled_memory};
use crate::Server;

const ROUNDS: usize = 7;
const READY_MAX_MILLIS: f64 = 300.0;
const AGAIN_MAX_MILLIS: f64 = 1000.0;
const IDLE_MAX_MEGABYTES: f64 = 50.0;

/// First starts and later ones.
///
/// # Errors
/// A server does not start.
pub fn times() -> Result<Vec<Row>> {
    let (mut first, mut again) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        let mut server = Server::start()?;
        first.push(server.ready_after());
        again.push(server.restart()?);
    }
    let note = |samples: &Samples| {
        format!(
            "median of {ROUNDS}, worst {:.0} ms; process to /readyz 200",
            samples.percentile(100)
        )
    };
    Ok(vec![
        Row::new(
            "cold start with key generation",
            first.median(),
            "ms",
            Target::AtMost(READY_MAX_MILLIS),
        )
        .note(note(&first)),
        Row::new(
            "start with kept data, after kill -9",
            again.median(),
            "ms",
            Target::AtMost(AGAIN_MAX_MILLIS),
        )
        .note(note(&again)),
    ])
}

/// Memory of a server that was just started, without connections.
///
/// # Errors
/// The server does not start.
pub fn idle_memory() -> Result<Vec<Row>> {
    let server = Server::start()?;
    server.login("admin", crate::server::ADMIN_PASSWORD)?;
    let megabytes = settled_memory(server.process_id().unwrap_or_default())?;
    Ok(vec![
        Row::new("server memory, idle", megabytes, "MB", Target::AtMost(IDLE_MAX_MEGABYTES))
            .note("resident, settled, after one login"),
    ])
}
