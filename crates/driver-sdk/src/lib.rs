//! Write a cluster driver: implement [`Driver`], declare its options with `#[derive(Options)]`, and
//! call [`run`] in `main`.
//!
//! The rest helps with what every driver does: [`state`] remembers in the cluster's metadata what
//! the driver needs later, [`service_account`] makes the token by which the manager reaches the
//! cluster.
//!
//! `docs/guide/write-a-driver.md` goes through a driver step by step.

mod driver;
mod options;
mod serve;
pub mod service_account;
pub mod state;

pub use driver::{ClusterRequest, Driver, NotSupported};
pub use driver_contract::{Capability, types};
pub use driver_sdk_derive::Options;
pub use options::{Declaration, InvalidOption, OptionValue, Options};
pub use serve::{run, run_at, serve};

// What the derive macro writes names this crate, also in its own tests.
extern crate self as driver_sdk;
