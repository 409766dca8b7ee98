//! Workloads in the flattened representation: the pod's specification lifted to the top, with
//! containers, variables, ports, probes and scheduling in the view's own words.
//!
//! | Where | What |
//! | --- | --- |
//! | `types/` | the fields of every type, and where each is stored |
//! | [`lens`] | the mapping in both directions, driven by those tables; start here |
//! | [`particular`] | what no table can express: containers, variables, ports, probes, scheduling |
//! | [`flat`] | whole objects |
//! | [`creation`] | what a new workload gets |
//! | [`state`], [`pod`] | the states of a workload and its pods |
//! | [`store`], [`actions`], [`view`] | the same, as types of the REST view |
//!
//! Source: workload wire reference (behaviour of the 2.4 to 2.6 lines).

pub mod actions;
pub mod creation;
pub mod flat;
pub mod kind;
pub mod lens;
pub mod particular;
mod path;
pub mod pod;
pub mod state;
pub mod store;
pub mod types;
pub mod view;

#[cfg(test)]
mod tests;
