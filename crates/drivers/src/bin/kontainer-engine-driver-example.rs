//! The driver `example` as a file of its own, which servers fetch by a URL.

use std::process::ExitCode;

fn main() -> ExitCode {
    driver_sdk::run(drivers::example::Example)
}
