//! The published Python client against `drover sim`: lists, watches, YAML, patches, dry runs, and
//! the dynamic client on a custom resource.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::process::Command;

use e2e::Sim;
use testbed::{Binaries, Program};

/// Every step that `python-client` reports.
const STEPS: [&str; 7] = ["yaml", "lists", "watches", "patches", "dry run", "dynamic", "deletion"];

#[test]
fn the_python_client_works() {
    let sim = Sim::start(&["--nodes", "2"]).unwrap();
    let program = Binaries::locate().path(Program::PythonClient).unwrap();
    let output = Command::new(program).arg(sim.kubeconfig()).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", sim.log_tail());
    let done: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(done, STEPS, "{complained}");
}
