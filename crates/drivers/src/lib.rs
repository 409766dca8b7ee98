//! The cluster drivers that are part of Drover. Each runs as a process of its own, like any other
//! driver: the program starts itself again ([ADR 32]).
//!
//! | Where | What |
//! | --- | --- |
//! | [`gke`], [`eks`], [`aks`] | clusters of the services of Google, Amazon and Microsoft |
//! | [`example`], [`import`] | to try drivers out, and to check them |
//! | `cloud` | what drivers of clouds share |
//!
//! [ADR 32]: ../../../docs/adr/0032-drivers-as-processes.md

pub mod aks;
mod cloud;
pub mod eks;
pub mod example;
pub mod gke;
pub mod import;

use std::process::ExitCode;

use driver_sdk::types::DriverFlags;
use driver_sdk::{Driver, Options as _};

/// The names of the drivers.
pub const NAMES: [&str; 5] = [example::NAME, import::NAME, gke::NAME, eks::NAME, aks::NAME];

/// The drivers that servers have from the start on, with the options of their clusters.
pub fn clouds() -> [(&'static str, DriverFlags); 3] {
    fn options<D: Driver>(_: D) -> DriverFlags {
        D::CreateOptions::flags()
    }
    [
        (gke::NAME, options(gke::GoogleKubernetesEngine)),
        (eks::NAME, options(eks::AmazonElasticContainerService)),
        (aks::NAME, options(aks::AzureKubernetesService)),
    ]
}

/// Serves the driver of this name at the port that is the only other argument; nothing if there is
/// no such driver.
pub fn run(name: &str, port: u16) -> Option<ExitCode> {
    match name {
        example::NAME => Some(driver_sdk::run_at(example::Example, port)),
        import::NAME => Some(driver_sdk::run_at(import::Import, port)),
        gke::NAME => Some(driver_sdk::run_at(gke::GoogleKubernetesEngine, port)),
        eks::NAME => Some(driver_sdk::run_at(eks::AmazonElasticContainerService, port)),
        aks::NAME => Some(driver_sdk::run_at(aks::AzureKubernetesService, port)),
        _ => None,
    }
}
