//! A server under load, its metrics, and its end: priority and fairness, metrics, the audit log,
//! time limits, graceful stop.

#![allow(clippy::unwrap_used)]

#[path = "overload/audit.rs"]
mod audit;
#[path = "overload/ending.rs"]
mod ending;
#[path = "overload/fairness.rs"]
mod fairness;
#[path = "overload/metrics.rs"]
mod metrics;
#[path = "overload/time_limits.rs"]
mod time_limits;
#[path = "overload/wait.rs"]
mod wait;
#[path = "overload/world.rs"]
mod world;
