//! Cluster drivers as programs: those in Go, the ones that are part of Drover, and files that are
//! none, under `drover driver conformance` and under a client in Go.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use e2e::cluster_provider::FEW;
use e2e::{Cli, ClusterProvider, Kubeconfig, SharedWorld, Sim, eventually, programs};
use serde_json::Value;
use testbed::{Binaries, Program};

static SIM: SharedWorld<Sim> = SharedWorld::new();

fn sim() -> Arc<Sim> {
    SIM.get(|| Sim::start(&["--nodes", "2"]))
}

fn program(program: Program) -> String {
    Binaries::locate().path(program).unwrap().display().to_string()
}

/// The lines of a report that begin with the word.
fn lines<'a>(report: &'a str, word: &str) -> Vec<&'a str> {
    report.lines().filter(|line| line.starts_with(word)).collect()
}

#[test]
fn a_driver_in_go_keeps_to_the_contract_through_the_life_of_a_cluster() {
    let sim = sim();
    let cluster = Kubeconfig::read(&sim.kubeconfig()).unwrap();
    let endpoint = format!("cluster-endpoint={}", cluster.server);
    let ca = format!("cluster-ca={}", BASE64_STANDARD.encode(&cluster.ca_pem));
    let token = format!("access-token={}", cluster.token.unwrap());
    let driver = program(Program::GoDriver);
    let command = ["driver", "conformance", &driver, "--log", "-o", &endpoint, "-o", &ca];
    let command = [&command[..], &["-o", &token, "-o", "labels=a=1,b=2"]].concat();
    let report = Cli::new().unwrap().succeed(&command).unwrap();
    assert!(lines(&report, "FAILED").is_empty(), "{report}");
    for step in ["Create", "PostCheck", "the token is an admin", "Update", "Remove again"] {
        let is_ok = lines(&report, "ok").iter().any(|line| line[2..].trim().starts_with(step));
        assert!(is_ok, "{step} is not ok in: {report}");
    }
    // What it writes to standard output is its log.
    assert!(report.contains("serving at 127.0.0.1:"), "{report}");
}

#[test]
fn the_driver_for_existing_clusters_works_under_a_client_in_go() {
    let sim = sim();
    let option = format!("kubeConfigPath={}", sim.kubeconfig().display());
    let drover = programs::drover().unwrap();
    let output = Command::new(program(Program::DriverClient))
        .args([&option, "--", drover.to_str().unwrap(), "driver-process", "import"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let returned: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(returned["endpoint"], Kubeconfig::read(&sim.kubeconfig()).unwrap().server);
    assert!(returned["version"].as_str().unwrap().starts_with("v1."), "{returned}");
    assert_eq!(returned["flags"]["kubeConfig"]["password"], true);
    let unsupported = returned["setNodeCount"].as_str().unwrap();
    assert!(unsupported.contains("Unimplemented"), "{unsupported}");
    // The token of a service account, and not that of the kubeconfig.
    let token = returned["token"].as_str().unwrap();
    let account = subject(token).unwrap();
    assert_eq!(account, "system:serviceaccount:cattle-system:kontainer-engine");
}

#[test]
fn the_example_makes_changes_and_removes_a_cluster_from_within_a_sandbox() {
    let provided = ClusterProvider::start(FEW, &[]).unwrap();
    let mut command = vec!["driver", "conformance", "example", "--log", "--confined"];
    command.extend(["--may-reach", &provided.ports]);
    let options = provided.flags(2);
    command.extend(options.iter().flat_map(|option| ["-o", option]));
    let report = Cli::new().unwrap().succeed(&command).unwrap();
    assert!(lines(&report, "FAILED").is_empty(), "{report}");
    for step in ["Create", "PostCheck", "the token is an admin", "Update", "Remove again"] {
        let is_ok = lines(&report, "ok").iter().any(|line| line[2..].trim().starts_with(step));
        assert!(is_ok, "{step} is not ok in: {report}");
    }
    // The log of each step, and not only of the first.
    assert!(report.contains("ordering cluster"), "{report}");
    assert_eq!(provided.clusters().unwrap(), [] as [Value; 0]);
}

#[test]
fn the_example_says_which_option_is_wrong() {
    let provided = ClusterProvider::start(FEW, &[]).unwrap();
    let options = provided.flags(2);
    for (wrong, reason) in [
        ("access-token=x", "the provider answered 401: the token is not valid here"),
        ("node-count=0", "the provider answered 400: a cluster has 1 to 1000 nodes"),
        ("provider-ca=!", "provider-ca is no base64"),
        ("provider-url=https://127.0.0.1:1", "the provider at https://127.0.0.1:1/clusters"),
    ] {
        let name = wrong.split_once('=').unwrap().0;
        let mut command = vec!["driver", "conformance", "example"];
        for option in &options {
            let is_same = option.starts_with(&format!("{name}="));
            command.extend(["-o", if is_same { wrong } else { option }]);
        }
        let output = Cli::new().unwrap().run(&command).unwrap();
        let failed = lines(&output.stdout, "FAILED").concat();
        assert!(failed.contains(reason), "{wrong}: {}", output.stdout);
    }
    assert_eq!(provided.clusters().unwrap(), [] as [Value; 0]);
}

#[test]
fn the_example_works_under_a_client_in_go() {
    let provided = ClusterProvider::start(FEW, &[]).unwrap();
    let drover = programs::drover().unwrap();
    let output = Command::new(program(Program::DriverClient))
        // It sends texts only.
        .args(&provided.flags(2)[..3])
        .args(["--", drover.to_str().unwrap(), "driver-process", "example"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let returned: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(returned["version"].as_str().unwrap().starts_with("v1."), "{returned}");
    let account = subject(returned["token"].as_str().unwrap()).unwrap();
    assert_eq!(account, "system:serviceaccount:cattle-system:kontainer-engine");
    assert_eq!(provided.clusters().unwrap(), [] as [Value; 0]);
}

/// The subject of a token that is a JWT.
fn subject(token: &str) -> Result<String> {
    let part = token.split('.').nth(1).context("not a JWT")?;
    let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(part)?;
    let claims: Value = serde_json::from_slice(&bytes)?;
    Ok(claims["sub"].as_str().context("no subject")?.to_owned())
}

#[test]
fn the_driver_for_existing_clusters_is_checked_by_its_name() {
    let sim = sim();
    let option = format!("kubeConfig=@{}", sim.kubeconfig().display());
    let command = ["driver", "conformance", "import", "-o", &option];
    let report = Cli::new().unwrap().succeed(&command).unwrap();
    assert!(lines(&report, "FAILED").is_empty(), "{report}");
    let update = lines(&report, "warning").concat();
    assert!(update.contains("does not support changing a cluster"), "{report}");
}

#[test]
fn an_unknown_option_is_refused_with_those_that_exist() {
    let command = ["driver", "conformance", "import", "-o", "region=west"];
    let output = Cli::new().unwrap().run(&command).unwrap();
    let failed = lines(&output.stdout, "FAILED").concat();
    assert!(failed.contains("it has: kubeConfig, kubeConfigPath"), "{}", output.stdout);
    assert_eq!(output.code, 1);
}

#[test]
fn each_file_that_is_no_driver_fails_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file.display().to_string()
    };
    let complaint = |file: &str| {
        let output = Cli::new().unwrap().run(&["driver", "conformance", file]).unwrap();
        assert_eq!(output.code, 1, "{}", output.stdout);
        lines(&output.stdout, "FAILED").concat()
    };
    assert!(complaint("/nowhere/driver").contains("cannot start \"/nowhere/driver\""));
    assert!(complaint(&write("page", "<html>", 0o644)).contains("Permission denied"));
    let crash = "#!/bin/sh\necho 'flag needs a value' >&2\nexit 3\n";
    let crashed = complaint(&write("crash", crash, 0o755));
    assert!(crashed.contains("exit status: 3"), "{crashed}");
    assert!(crashed.contains("it wrote last: flag needs a value"), "{crashed}");
}

#[test]
fn a_driver_that_floods_its_log_and_will_not_end_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stubborn");
    let (drover, ids) = (programs::drover().unwrap(), folder.path().join("ids"));
    let script = format!(
        "#!/bin/sh\ntrap '' TERM\nyes flood &\necho $! >> '{}'\nexec '{}' driver-process import $1\n",
        ids.display(),
        drover.display()
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = ["driver", "conformance", "--log", file.to_str().unwrap()];
    let report = Cli::new().unwrap().succeed(&command).unwrap();
    assert!(lines(&report, "FAILED").is_empty(), "{report}");
    let flood = lines(&report, "flood").len();
    assert!((1..=500).contains(&flood), "{flood} lines of the log");
    for id in std::fs::read_to_string(&ids).unwrap().lines() {
        eventually("the process that the driver started ends", || -> Result<()> {
            // A zombie has ended, too; who should reap it is not ours to say.
            let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let has_ended = state.is_empty() || state.contains(") Z ");
            ensure!(has_ended, "{state}");
            Ok(())
        });
    }
}
