//! The guarantees of the testbed, each on real components.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Binaries, Error, Options, Process, Program, RealCluster, RecordedProcess, evidence, poll_until,
};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

/// Variable with the file to which the child process of
/// [`a_killed_test_process_takes_its_cluster_along`] writes its records.
const VICTIM_ENV: &str = "DROVER_TESTBED_VICTIM";

fn run(command: &mut Command) -> Output {
    command.output().expect("kubectl runs")
}

fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("kubectl writes UTF-8")
}

fn get(cluster: &RealCluster, arguments: &[&str]) -> Value {
    let text = succeed(cluster.kubectl().unwrap().args(arguments).args(["-o", "json"]));
    serde_json::from_str(&text).expect("kubectl -o json writes JSON")
}

#[test]
fn a_deployment_becomes_a_replica_set_and_a_pending_pod() {
    let cluster = RealCluster::start().unwrap();
    let names = succeed(cluster.kubectl().unwrap().args(["get", "ns", "-o", "name"]));
    for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        assert!(names.contains(&format!("namespace/{namespace}\n")), "{names}");
    }

    let manifest = cluster.folder().join("web.json");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.invalid/web:1"}]},
            },
        },
    });
    std::fs::write(&manifest, deployment.to_string()).unwrap();
    // Validation reads the served OpenAPI document, which some builds of the API server break.
    succeed(cluster.kubectl().unwrap().args(["apply", "--validate=strict", "-f"]).arg(&manifest));

    let pod = poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || {
        let pods = get(&cluster, &["get", "pods", "-l", "app=web"]);
        let pod = pods["items"][0].clone();
        // The scheduler has processed it too: there is no node for it.
        let unscheduled = pod["status"]["conditions"][0]["reason"] == "Unschedulable";
        if unscheduled { Ok(pod) } else { Err(pods) }
    })
    .unwrap();
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
    let replica_sets = get(&cluster, &["get", "replicasets", "-l", "app=web"]);
    assert_eq!(replica_sets["items"][0]["metadata"]["ownerReferences"][0]["name"], "web");
}

#[test]
fn the_version_is_the_one_of_the_modules() {
    let cluster = RealCluster::start().unwrap();
    let modules = include_str!("../../../testbed/kubernetes/go.mod");
    let line = modules.lines().find(|line| line.trim().starts_with("k8s.io/kubernetes v"));
    let version = line.unwrap().trim().rsplit(' ').next().unwrap();
    let seen = get(&cluster, &["version"]);
    assert_eq!(seen["serverVersion"]["gitVersion"], version);
    assert_eq!(seen["clientVersion"]["gitVersion"], version);
    assert_eq!(seen["serverVersion"]["major"], "1");
}

#[test]
fn a_minted_user_has_exactly_the_groups_it_was_given() {
    let cluster = RealCluster::start().unwrap();
    let groups = ["drover:cluster:c-1:cluster-owner", "two", "a group, \"quoted\"", "ü"];
    let kubeconfig = cluster.kubeconfig_file_for("u-1: it", &groups).unwrap();
    let mut command = cluster.kubectl_with(&kubeconfig).unwrap();
    let text = succeed(command.args(["auth", "whoami", "-o", "json"]));
    let review: Value = serde_json::from_str(&text).unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "u-1: it");
    let mut expected: Vec<&str> = groups.to_vec();
    expected.push("system:authenticated");
    assert_eq!(user["groups"], json!(expected));

    let refused = run(cluster.kubectl_with(&kubeconfig).unwrap().args(["get", "pods"]));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("User \"u-1: it\" cannot list resource \"pods\""), "{message}");

    succeed(cluster.kubectl().unwrap().args([
        "create",
        "clusterrolebinding",
        "readers",
        "--clusterrole=view",
        "--group=two",
    ]));
    poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || {
        let seen = run(cluster.kubectl_with(&kubeconfig).unwrap().args(["get", "pods"]));
        if seen.status.success() { Ok(()) } else { Err(seen) }
    })
    .unwrap();
}

#[test]
fn two_clusters_run_side_by_side_and_nothing_survives_their_drop() {
    let start = || std::thread::spawn(|| RealCluster::start().unwrap());
    let (first, second) = (start(), start());
    let (first, second) = (first.join().unwrap(), second.join().unwrap());
    assert_ne!(first.server_url(), second.server_url());
    succeed(first.kubectl().unwrap().args(["create", "namespace", "only-in-first"]));
    let seen = succeed(second.kubectl().unwrap().args(["get", "ns", "-o", "name"]));
    assert!(!seen.contains("only-in-first"), "{seen}");

    let folder = first.folder().to_owned();
    let records = first.records();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(RecordedProcess::is_running));
    drop(first);
    assert!(!records.iter().any(RecordedProcess::is_running), "{records:?}");
    assert!(!folder.exists());
    succeed(second.kubectl().unwrap().args(["get", "ns"]));
}

#[test]
fn a_panicking_test_ends_its_cluster() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let cluster = RealCluster::start().unwrap();
        sender.send(cluster.records()).unwrap();
        panic!("as a failing assertion does");
    });
    let records = receiver.recv().unwrap();
    assert!(test.join().is_err());
    assert_eq!(records.len(), 4);
    assert!(!records.iter().any(RecordedProcess::is_running), "{records:?}");
}

#[test]
fn a_killed_test_process_takes_its_cluster_along() {
    if let Some(report) = std::env::var_os(VICTIM_ENV) {
        let cluster = RealCluster::start().unwrap();
        let unfinished = Path::new(&report).with_extension("part");
        std::fs::write(&unfinished, serde_json::to_vec(&cluster.records()).unwrap()).unwrap();
        std::fs::rename(&unfinished, &report).unwrap();
        // Runs until it is killed.
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("records.json");
    let mut second_self = Command::new(std::env::current_exe().unwrap());
    second_self
        .args(["--exact", "tests::a_killed_test_process_takes_its_cluster_along"])
        .env(VICTIM_ENV, &report)
        // Removes what the killed process could not remove.
        .env("TMPDIR", folder.path());
    let mut victim =
        Process::start("victim", &second_self, &folder.path().join("victim.log")).unwrap();
    let records: Vec<RecordedProcess> = poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || {
        let text = std::fs::read(&report).map_err(|_| victim.log_tail())?;
        serde_json::from_slice(&text).map_err(|cause| cause.to_string())
    })
    .unwrap();
    assert!(records.len() == 4 && records.iter().all(RecordedProcess::is_running));

    victim.kill();
    poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || {
        let left: Vec<_> = records.iter().filter(|record| record.is_running()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .unwrap();
}

#[test]
fn a_crashed_api_server_comes_back_with_its_objects() {
    let mut cluster = RealCluster::start().unwrap();
    succeed(cluster.kubectl().unwrap().args(["create", "namespace", "kept"]));
    cluster.crash(Program::KubeApiserver);
    assert!(!run(cluster.kubectl().unwrap().args(["get", "ns"])).status.success());
    cluster.revive(Program::KubeApiserver).unwrap();
    let names = succeed(cluster.kubectl().unwrap().args(["get", "ns", "-o", "name"]));
    assert!(names.contains("namespace/kept"), "{names}");
}

#[test]
fn a_missing_program_names_the_command_that_builds_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { binaries: Binaries::in_folder(folder.path()), ..Options::default() };
    let error = RealCluster::start_with(&options).unwrap_err();
    assert!(matches!(error, Error::MissingProgram { program: "etcd", .. }));
    assert!(error.to_string().contains("`cargo xtask deps`"), "{error}");
}

#[test]
fn a_component_that_ends_early_fails_the_start_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("etcd");
    std::fs::write(&broken, "#!/bin/sh\necho 'no room on this disk'\nexit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&broken, mode).unwrap();
    let options = Options { binaries: Binaries::in_folder(folder.path()), ..Options::default() };
    let text = RealCluster::start_with(&options).unwrap_err().to_string();
    assert!(text.contains("'etcd' ended while the cluster started"), "{text}");
    assert!(text.contains("no room on this disk"), "{text}");
}

#[test]
fn a_recorded_process_is_ended_and_a_reused_id_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut waiting = Command::new("tail");
    waiting.args(["-f", "/dev/null"]);
    let mut process = Process::start("tail", &waiting, &folder.path().join("tail.log")).unwrap();
    let record = process.record().unwrap();
    let earlier = RecordedProcess { started_ticks: record.started_ticks - 1, ..record.clone() };
    earlier.end().unwrap();
    assert!(record.is_running(), "a process of another start time was ended");
    record.end().unwrap();
    assert!(!record.is_running());
    let status =
        poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || process.exit_status().ok_or(())).unwrap();
    assert_eq!(status.signal(), Some(9));
}

#[test]
fn a_failed_test_leaves_its_logs_calls_reports_of_witnesses_and_the_load() {
    if std::env::var_os(VICTIM_ENV).is_some() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("echo.log");
        let mut process =
            Process::start("echo", Command::new("echo").arg("started"), &log).unwrap();
        poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, || process.exit_status().ok_or("it runs"))
            .unwrap();
        evidence::record_call("kubectl get pods", "1: no such server");
        evidence::record_call("kubectl get pods", "1: no such server");
        let _witness = evidence::witness(|folder| {
            std::fs::write(folder.join("objects.json"), "{}").unwrap();
        });
        panic!("on purpose");
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "tests::a_failed_test_leaves_its_logs_calls_reports_of_witnesses_and_the_load";
    let mut second_self = Command::new(std::env::current_exe().unwrap());
    second_self.args(["--exact", name]).env(VICTIM_ENV, "1");
    let prefix = format!("{}/testbed::", folder.path().display());
    let output = run(second_self.env(evidence::EVIDENCE_ENV, &prefix));
    assert!(!output.status.success());

    let read = |file: &str| {
        let path = format!("{prefix}{name}/{file}");
        std::fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{path}: {cause}"))
    };
    assert_eq!(read("00-echo.log"), "started\n");
    let calls = read(evidence::CALLS_FILE);
    assert_eq!(calls.matches("kubectl get pods\n1: no such server").count(), 1, "{calls}");
    assert!(calls.contains(name), "{calls}");
    assert_eq!(read("objects.json"), "{}");
    assert!(read(evidence::MACHINE_FILE).contains("/proc/loadavg"));
}
