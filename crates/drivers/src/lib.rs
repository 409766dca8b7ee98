//! The cluster drivers that are part of Drover. Each runs as a process of its own, like any other
//! driver: the program starts itself again ([ADR 32]).
//!
//! [ADR 32]: ../../../docs/adr/0032-drivers-as-processes.md

pub mod example;
pub mod import;

use std::process::ExitCode;

/// The names of the drivers.
pub const NAMES: [&str; 2] = [example::NAME, import::NAME];

/// Serves the driver of this name at the port that is the only other argument; nothing if there is
/// no such driver.
pub fn run(name: &str, port: u16) -> Option<ExitCode> {
    match name {
        example::NAME => Some(driver_sdk::run_at(example::Example, port)),
        import::NAME => Some(driver_sdk::run_at(import::Import, port)),
        _ => None,
    }
}
