//! Clusters that a driver makes, from `spec.genericEngineConfig` to a cluster with an agent, and
//! back to nothing.
//!
//! | Where | What |
//! | --- | --- |
//! | [`controller`] | decides what is to be done for a cluster, and reports how that went |
//! | [`removal`] | the way out: the driver removes what it made |
//! | [`work`] | one run of a driver: its calls, with deadlines, cancellation and log |
//! | [`record`] | what is known of a cluster, stored before and after each call |
//! | [`options`] | the options of a cluster as drivers get them |
//! | [`access`] | the API of a new cluster: without the agent, and for the agent |
//! | [`report`] | what clusters say of it |
//! | [`log`] | the provisioning log |
//! | [`snapshots`] | snapshots of etcd, as actions of clusters |
//! | [`view`] | the log under `/v3` |
//!
//! What drives all this is the difference between the options of the cluster and those that the
//! record says were applied. A server that dies at any point finds in the record what was begun,
//! and begins the same call again; drivers find what exists by the name of the cluster.

pub mod access;
pub mod controller;
pub mod log;
pub mod options;
pub mod record;
pub mod removal;
pub mod report;
pub mod snapshots;
pub mod view;
pub mod work;

#[cfg(test)]
mod tests;
