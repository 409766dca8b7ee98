//! Recorded histories of a storage, and the check of the properties that they must satisfy.
//!
//! Clients and watchers work on a [`storage::Storage`] at once ([`work`]) and record their
//! invocations and the responses ([`record`]). [`check`] decides afterwards whether one order of
//! commits explains all of them. Crashes come from outside: [`power_cut`] takes the files of an
//! embedded storage as a power cut would leave them, tests kill the
//! `history-work` program, and stop members of an etcd. [`planted`] tests the check itself.
//!
//! It knows nothing of Kubernetes and never ships. Start reading at [`check::check`].

pub mod check;
pub mod planted;
pub mod power_cut;
pub mod record;
pub mod run;
mod wal;
pub mod watchers;
pub mod work;
