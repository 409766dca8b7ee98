//! Which project each namespace of a cluster is in.
//!
//! A [`NamespaceAssignment`](api_management::NamespaceAssignment) per namespace says it; the
//! annotation and the label of the namespace downstream follow. [`check`] lets a write through
//! Drover change them if the writer may, and notes the change; [`controller`] makes it hold once it
//! is seen, and puts back every other; [`step`] decides. [`members`] says to others what holds.
//! What existed before there were assignments [`migration`] records, once per cluster.

pub mod check;
pub mod controller;
pub mod members;
pub mod migration;
pub mod step;

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
