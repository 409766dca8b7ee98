//! The Go clients that controllers are made of, against `drover sim`: the typed one in protobuf
//! alone, dynamic and metadata informers, and managers of controller-runtime.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::process::Command;

use e2e::Sim;
use testbed::{Binaries, Program};

/// Every step that `go-client exercise` reports.
const STEPS: [&str; 12] = [
    "namespace",
    "config map",
    "secret",
    "deployment",
    "informer",
    "watch",
    "lease",
    "service account",
    "reviews",
    "errors",
    "metadata",
    "deletion",
];

/// Every step that `go-client informers` reports.
const INFORMER_STEPS: [&str; 6] =
    ["dynamic start", "metadata start", "streamed lists", "changes", "resync", "deletions"];
/// Every step that `go-client manager` reports.
const MANAGER_STEPS: [&str; 6] =
    ["reconciled", "owned object", "generation", "events", "leadership", "finalizer"];

/// Runs `go-client WHAT` on a cluster of its own and compares the steps that it reports.
fn go_client(what: &str, steps: &[&str]) {
    let sim = Sim::start(&["--nodes", "2"]).unwrap();
    let program = Binaries::locate().path(Program::GoClient).unwrap();
    let output = Command::new(program).arg(what).arg(sim.kubeconfig()).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", sim.log_tail());
    let done: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(done, steps, "{complained}");
}

#[test]
fn a_typed_go_client_works_in_protobuf_alone() {
    go_client("exercise", &STEPS);
}

#[test]
fn dynamic_and_metadata_informers_stream_their_lists() {
    go_client("informers", &INFORMER_STEPS);
}

#[test]
fn managers_of_controller_runtime_elect_reconcile_and_finalize() {
    go_client("manager", &MANAGER_STEPS);
}

#[test]
fn commands_of_kubectl_that_send_protobuf_work() {
    let sim = Sim::start(&["--nodes", "1"]).unwrap();
    let kubectl = sim.kubectl().unwrap();
    let run = |arguments: &str| {
        kubectl.succeed(&arguments.split(' ').collect::<Vec<_>>()).unwrap().trim().to_owned()
    };
    assert_eq!(run("create namespace made"), "namespace/made created");
    assert_eq!(run("create serviceaccount robot -n made"), "serviceaccount/robot created");
    assert_eq!(run("create token robot -n made").split('.').count(), 3, "three parts of a token");
    run("create configmap settings -n made --from-literal=a=b");
    assert_eq!(run("get configmap settings -n made -o jsonpath={.data.a}"), "b");
    run("create secret generic secret -n made --from-literal=a=b");
    run("create deployment web -n made --image=example.invalid/web:1 --replicas=1");
    run("create role reader -n made --verb=get --resource=pods");
    run("create rolebinding readers -n made --role=reader --serviceaccount=made:robot");
    let may = "auth can-i get pods -n made --as=system:serviceaccount:made:robot";
    assert_eq!(run(may), "yes");
    run("scale deployment web -n made --replicas=2");
    run("rollout status deployment/web -n made --timeout=60s");
    assert_eq!(run("get pods -n made --server-print=false -o name").lines().count(), 2);
    run("delete namespace made");
}
