//! The API server compared with kube-apiserver and etcd: the same client sends the same requests to
//! both, alternately, on the same machine. Drover serves one cluster of its simulator, whose
//! controllers are off. Beside kube-apiserver only etcd runs, and etcd syncs to the disk, like
//! Drover's storage.

mod lists;
pub(super) mod load;
mod side;
pub(super) mod watches;

use anyhow::Result;

use self::side::{Both, Side};
use super::{Row, Target};

/// The peer needs at least this many times the memory.
const MEMORY_RATIO_MIN: f64 = 5.0;
/// Objects of the large measurements.
const MANY: usize = 100_000;

/// All measurements, from empty servers to [`MANY`] objects and a start with them.
///
/// # Errors
/// A server does not start, or a request fails.
pub fn measure() -> Result<Vec<Row>> {
    let mut both = Both::start()?;
    let mut rows = vec![memory(&both, "memory at rest")?];
    rows.extend(load::writes_and_reads(&both)?);
    rows.extend(watches::fan_out(&both)?);
    rows.extend(watches::informers_at_once(&both)?);
    rows.push(lists::full(&both, load::NAMESPACE, load::OBJECTS)?);
    load::fill(&both, lists::NAMESPACE, MANY)?;
    rows.push(memory(&both, &format!("memory with {MANY} objects of 1 KiB"))?);
    rows.extend(lists::many(&both, MANY)?);
    rows.push(memory(&both, &format!("memory after lists of {MANY} objects"))?);
    rows.push(start(&mut both)?);
    Ok(rows)
}

fn memory(both: &Both, what: &str) -> Result<Row> {
    both.ratio(what, "MB", Target::AtLeast(MEMORY_RATIO_MIN), Side::settled_memory)
}

fn start(both: &mut Both) -> Result<Row> {
    let (drover, peer) = (both.drover.restart()?, both.peer.restart()?);
    let what = format!("start with {MANY} objects after kill -9");
    Ok(Both::row(&what, "ms", Target::Context, drover, peer))
}
