//! The guarantees of a node of the testbed, each on real components.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testbed::{Image, Process, Program, RealNode, RecordedProcess, TOOLBOX_IMAGE, poll_until};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);
/// Variable with the file to which the child process of
/// [`a_killed_test_process_takes_its_node_along`] writes its report.
const VICTIM_ENV: &str = "DROVER_TESTBED_NODE_VICTIM";
/// Settings of the whole kernel that a kubelet would change.
const KERNEL_SETTINGS: [&str; 3] = ["kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory"];

fn succeed(command: &mut Command) -> String {
    let output: Output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn kubectl(node: &RealNode, arguments: &[&str]) -> String {
    succeed(node.cluster().kubectl().unwrap().args(arguments))
}

fn get(node: &RealNode, arguments: &[&str]) -> Value {
    let text = succeed(node.cluster().kubectl().unwrap().args(arguments).args(["-o", "json"]));
    serde_json::from_str(&text).unwrap()
}

fn apply(node: &RealNode, object: &Value) {
    let mut child =
        node.cluster().kubectl().unwrap().args(["apply", "-f", "-"]).stdin(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn pod(name: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": image, "imagePullPolicy": "Never", "command": command,
            }],
        },
    })
}

fn await_ready(node: &RealNode, name: &str) {
    let name = format!("pod/{name}");
    kubectl(node, &["wait", "--for=condition=Ready", "--timeout=60s", &name]);
}

fn eventually<T>(probe: impl FnMut() -> Result<T, String>) -> T {
    poll_until(SETTLE_TIMEOUT, SETTLE_INTERVAL, probe).unwrap_or_else(|last| panic!("{last}"))
}

#[test]
fn a_pod_runs_connects_listens_and_resolves_services() {
    let node = RealNode::start().unwrap();
    let server = "echo started; echo page > /tmp/index.html; exec httpd -f -p 80 -h /tmp";
    apply(&node, &pod("web", TOOLBOX_IMAGE, &["sh", "-c", server]));
    await_ready(&node, "web");
    assert_eq!(kubectl(&node, &["logs", "web"]), "started\n");

    let exec = ["exec", "-i", "web", "--", "sh", "-c", "tr a-z A-Z; exit 3"];
    let mut child = node.cluster().kubectl().unwrap();
    let child = child.args(exec).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(b"to the pod").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "TO THE POD");
    assert_eq!(output.status.code(), Some(3));

    // From this machine to the pod, and from the pod to this machine.
    let address = get(&node, &["get", "pod", "web"])["status"]["podIP"].clone();
    let address: Ipv4Addr = address.as_str().unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(SocketAddr::from((address, 80))).unwrap();
    stream.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.ends_with("page\n"), "{page}");
    let listener = TcpListener::bind((node.host_address(), 0)).unwrap();
    let (host, port) = (node.host_address().to_string(), listener.local_addr().unwrap().port());
    let call = format!("echo called | nc -w 10 {host} {port}");
    let mut exec = node.cluster().kubectl().unwrap();
    let mut calling = exec.args(["exec", "web", "--", "sh", "-c", &call]).spawn().unwrap();
    let mut heard = [0; 7];
    listener.accept().unwrap().0.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"called\n");
    assert!(calling.wait().unwrap().success());

    // Through Services: to the API server, and to the pod itself.
    kubectl(&node, &["expose", "pod", "web", "--port=8080", "--target-port=80"]);
    let service = get(&node, &["get", "service", "web"])["spec"]["clusterIP"].clone();
    let fetch = format!("wget -q -O - http://{}:8080/index.html", service.as_str().unwrap());
    eventually(|| {
        let mut exec = node.cluster().kubectl().unwrap();
        let output = exec.args(["exec", "web", "--", "sh", "-c", &fetch]).output().unwrap();
        if output.stdout == b"page\n" { Ok(()) } else { Err(format!("{output:?}")) }
    });
    let reach =
        "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo reached";
    assert_eq!(kubectl(&node, &["exec", "web", "--", "sh", "-c", reach]), "reached\n");
}

#[test]
fn a_node_that_loses_power_comes_back_with_its_pods_and_images() {
    let mut node = RealNode::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("own.tar");
    let name = "drover.test/own:1";
    let busybox = node.cluster().binaries().path(Program::Busybox).unwrap();
    let image = Image::new(name).program("busybox", &busybox).unwrap();
    image.entrypoint(&["/busybox", "sleep", "1000"]).write(&archive).unwrap();
    assert_eq!(node.import(&archive).unwrap(), [name]);
    // The command comes from the image.
    let mut own = pod("own", name, &[]);
    own["spec"]["containers"][0].as_object_mut().unwrap().remove("command");
    apply(&node, &own);
    await_ready(&node, "own");

    let restarts = |node: &RealNode| {
        let pod = get(node, &["get", "pod", "own"]);
        pod["status"]["containerStatuses"][0]["restartCount"].as_u64()
    };
    assert_eq!(restarts(&node), Some(0));
    node.power_off();
    kubectl(&node, &["get", "nodes"]);
    node.power_on().unwrap();
    eventually(|| match restarts(&node) {
        Some(1) => Ok(()),
        other => Err(format!("{other:?} restarts")),
    });
    await_ready(&node, "own");
    kubectl(&node, &["exec", "own", "--", "/busybox", "true"]);

    node.remove_image(name).unwrap();
    own["metadata"]["name"] = json!("late");
    apply(&node, &own);
    eventually(|| {
        let late = get(&node, &["get", "pod", "late"]);
        let state = &late["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
        if state == "ErrImageNeverPull" { Ok(()) } else { Err(late.to_string()) }
    });
    node.import(&archive).unwrap();
    await_ready(&node, "late");
    assert_eq!(restarts(&node), Some(1));
}

/// What a node leaves outside of its folder.
fn leftovers(node: &RealNode) -> Vec<PathBuf> {
    let number = node.address().octets()[2];
    let name = format!("drover-n{number}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let groups = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        fields.next()?.starts_with("cgroup").then(|| Path::new(place).join(&name))
    });
    let mut leftovers: Vec<PathBuf> = groups.collect();
    leftovers.push(Path::new("/sys/class/net").join(&name));
    leftovers.push(node.cluster().folder().to_owned());
    assert!(leftovers.iter().all(|trace| trace.exists()), "{leftovers:?}");
    leftovers
}

fn existing(leftovers: &[PathBuf]) -> Vec<&PathBuf> {
    leftovers.iter().filter(|trace| trace.exists()).collect()
}

/// Every control group of pods and node.
fn groups(leftovers: &[PathBuf]) -> Vec<PathBuf> {
    let mut groups: Vec<PathBuf> =
        leftovers.iter().filter(|trace| trace.join("cgroup.procs").exists()).cloned().collect();
    let mut at = 0;
    while let Some(group) = groups.get(at) {
        let inside = std::fs::read_dir(group).unwrap().flatten().map(|entry| entry.path());
        let inside: Vec<PathBuf> = inside.filter(|path| path.is_dir()).collect();
        groups.extend(inside);
        at += 1;
    }
    groups
}

/// Processes of pods and node, with their ids on this machine.
fn members(leftovers: &[PathBuf]) -> Vec<RecordedProcess> {
    let mut members = Vec::new();
    for group in groups(leftovers) {
        let processes = std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
        let processes = processes.lines().filter_map(|line| line.parse().ok());
        members.extend(processes.filter_map(|id| RecordedProcess::of("member", id)));
    }
    members
}

#[test]
fn two_nodes_run_side_by_side_and_nothing_survives_their_end() {
    let settings =
        || KERNEL_SETTINGS.map(|name| std::fs::read(Path::new("/proc/sys").join(name)).unwrap());
    let (kernel, mounts) = (settings(), std::fs::read_to_string("/proc/self/mounts").unwrap());
    let start = || std::thread::spawn(|| RealNode::start().unwrap());
    let (first, second) = (start(), start());
    let (first, second) = (first.join().unwrap(), second.join().unwrap());
    for node in [&first, &second] {
        apply(node, &pod("idle", TOOLBOX_IMAGE, &["sleep", "1000"]));
        await_ready(node, "idle");
    }
    assert_eq!(settings(), kernel);
    assert_eq!(std::fs::read_to_string("/proc/self/mounts").unwrap(), mounts);

    let (leftovers, others) = (leftovers(&first), leftovers(&second));
    let mut processes = members(&leftovers);
    processes.extend(first.records());
    processes.extend(first.cluster().records());
    assert!(processes.len() > 10, "{processes:?}");
    drop(first);
    assert!(!processes.iter().any(RecordedProcess::is_running), "{processes:?}");
    assert_eq!(existing(&leftovers), Vec::<&PathBuf>::new());

    // The other node is unchanged; and it ends as well when its test fails.
    kubectl(&second, &["exec", "idle", "--", "true"]);
    let failing = std::thread::spawn(move || {
        let _node = second;
        panic!("as a failing assertion does");
    });
    assert!(failing.join().is_err());
    assert_eq!(existing(&others), Vec::<&PathBuf>::new());
}

#[test]
fn a_killed_test_process_takes_its_node_along() {
    if let Some(report) = std::env::var_os(VICTIM_ENV) {
        let node = RealNode::start().unwrap();
        apply(&node, &pod("idle", TOOLBOX_IMAGE, &["sleep", "1000"]));
        await_ready(&node, "idle");
        let leftovers = leftovers(&node);
        let mut processes = members(&leftovers);
        processes.extend(node.records());
        processes.extend(node.cluster().records());
        // Another node may take the number; folder and pods belong to this node only.
        let is_of_pod = |group: &PathBuf| group.to_string_lossy().contains("/pod");
        let mut leftovers: Vec<_> = groups(&leftovers).into_iter().filter(is_of_pod).collect();
        leftovers.push(node.cluster().folder().to_owned());
        assert!(leftovers.len() > 1, "{leftovers:?}");
        let unfinished = Path::new(&report).with_extension("part");
        let text = json!({"leftovers": leftovers, "processes": processes}).to_string();
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(&unfinished, &report).unwrap();
        // Runs until it is killed.
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut second_self = Command::new(std::env::current_exe().unwrap());
    second_self
        .args(["--exact", "a_killed_test_process_takes_its_node_along"])
        .env(VICTIM_ENV, &report);
    let log = folder.path().join("victim.log");
    let mut victim = Process::start("victim", &second_self, &log).unwrap();
    let report: Value = eventually(|| {
        let text = std::fs::read(&report).map_err(|_| victim.log_tail())?;
        serde_json::from_slice(&text).map_err(|cause| cause.to_string())
    });
    let processes: Vec<RecordedProcess> =
        serde_json::from_value(report["processes"].clone()).unwrap();
    let leftovers: Vec<PathBuf> = serde_json::from_value(report["leftovers"].clone()).unwrap();
    assert!(processes.len() > 10 && processes.iter().all(RecordedProcess::is_running));

    victim.kill();
    eventually(|| {
        let existing: Vec<_> = processes.iter().filter(|process| process.is_running()).collect();
        if existing.is_empty() { Ok(()) } else { Err(format!("{existing:?}")) }
    });
    // The next node finds the leftovers of the kernel.
    let _next = RealNode::start().unwrap();
    assert_eq!(existing(&leftovers), Vec::<&PathBuf>::new());
}
