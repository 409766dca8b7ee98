//! Bulk over a long way, without and with loss of packets: the cluster and both agents are in one
//! network, the servers and their clients in another.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::load;
use super::world::World;
use super::{LIST, REVIEW, bulk_rows, fill, in_turns, review};
use crate::link::{Link, PacketCounts};
use crate::measure::{Row, Target};

const ONE_WAY: Duration = Duration::from_millis(150);
/// How many of 1,000 packets are lost, the way's name in the rows, and the target of a list beside
/// `remotedialer`.
const WAYS: [(u32, &str, Target); 2] =
    [(0, "300 ms", Target::AtLeast(3.0)), (10, "300 ms and 1 % packet loss", Target::Context)];
/// A window is full long before.
const TURN: Duration = Duration::from_secs(8);
const ROUNDS: usize = 3;
/// What limits a connection over a long way. Both networks have the kernel's defaults.
const SETTINGS: [&str; 3] = ["tcp_congestion_control", "tcp_rmem", "tcp_wmem"];

/// Moves this process into a network of its own: nothing else can be measured in it. It must not
/// have started threads before.
///
/// # Errors
/// The networks cannot be made, a part does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let link = Link::start(ONE_WAY)?;
    link.near().enter()?;
    let world = World::start(Some(&link))?;
    fill(&world.direct)?;
    let review = review();
    let mut rows = Vec::new();
    for (loss, way, target) in WAYS {
        link.lose(loss);
        let before = link.counts()?;
        let down = in_turns(&world, ROUNDS, |way| load::download(&way.client, LIST, 1, TURN))?;
        rows.extend(bulk_rows(&format!("down over {way}"), 1, &down, target));
        let mut broken = Vec::new();
        let up = in_turns(&world, ROUNDS, |way| {
            // Over a bad way an API server may give up on a request that arrives too slowly.
            let rate = load::upload(&way.client, REVIEW, &review, 1, TURN);
            Ok(rate.unwrap_or_else(|cause| {
                broken.push(format!("{}: {cause:#}", way.name));
                0.0
            }))
        })?;
        rows.extend(bulk_rows(&format!("up over {way}"), 1, &up, Target::Context));
        let row = Row::new(
            format!("uploads that broke off over {way}"),
            broken.len() as f64,
            "",
            Target::Context,
        );
        rows.push(row.note(broken.join("; ")));
        rows.push(packet_row(way, link.counts()?.since(before))?);
    }
    Ok(rows)
}

/// Whether the way was as its name says, and what TCP used on it.
fn packet_row(way: &str, packets: PacketCounts) -> Result<Row> {
    let mut settings = Vec::new();
    for name in SETTINGS {
        let value = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).context(name)?;
        settings.push(format!("{name} {}", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    let PacketCounts { sent, lost, overflowed } = packets;
    let percent = 100.0 * lost as f64 / sent as f64;
    let row = Row::new(format!("packets lost over {way}"), percent, "%", Target::Context);
    Ok(row.note(format!(
        "{lost} of {sent}, and {overflowed} at full queues; {}",
        settings.join(", ")
    )))
}
