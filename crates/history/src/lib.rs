//! Recorded histories of a storage, and the check of what must hold of them.
//!
//! Clients and watchers work on a [`storage::Storage`] at once ([`work`]) and write down what they
//! ask and what they are told ([`record`]). [`check`] decides afterwards whether one order of
//! commits explains all of it. Crashes come from outside: [`power_cut`] takes the files of an
//! embedded storage as a power cut would leave them, the `history-work` program is there to be
//! killed, and members of an etcd can be ended by a test. [`planted`] is the check of the check.
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
