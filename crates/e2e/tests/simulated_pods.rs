//! Pods of a simulated cluster with kubectl, directly and through Drover: logs, `exec`, `attach`
//! and `port-forward`, over WebSockets and over SPDY. Nothing is executed, and the output says so.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{Cli, Interactive, Kubectl, ProgramOutput, Server, SharedWorld, Sim};
use serde_json::{Value, json};

const NOT_FOUND: i32 = 127;
/// Echoed bytes that must arrive unchanged.
const BULK_BYTES: usize = 4 << 20;
const ECHO_TIMEOUT: Duration = Duration::from_secs(60);

struct World {
    _server: Server,
    admin: Cli,
    sim: Sim,
    import: ProgramOutput,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let sim = Sim::start(&["--nodes", "1"])?;
        let file = sim.kubeconfig();
        let file = file.to_str().context("the path is no text")?;
        let import = admin.run(&["cluster", "import", "north", "--kubeconfig", file])?;
        import.clone().succeeded()?;
        let kubectl = sim.kubectl()?;
        let container = json!({
            "name": "web", "image": "example.invalid/web:1", "ports": [{"containerPort": 80}],
            "env": [{"name": "COLOUR", "value": "blue"}],
        });
        let side = json!({"name": "side", "image": "example.invalid/side:1"});
        let reading = json!({"name": "c", "image": "example.invalid/c:1", "stdin": true});
        kubectl.apply(&[
            pod("web", &[container.clone(), side]),
            pod("ear", &[reading]),
            pod("brief", std::slice::from_ref(&container)),
            pod("watched", &[container]),
        ])?;
        ready(&kubectl, &["web", "ear", "brief", "watched"])?;
        Ok(World { _server: server, admin, sim, import })
    })
}

fn pod(name: &str, containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers},
    })
}

fn ready(kubectl: &Kubectl, pods: &[&str]) -> Result<()> {
    for pod in pods {
        let pod = format!("pod/{pod}");
        kubectl.succeed(&["wait", "--for=condition=Ready", "--timeout=60s", &pod])?;
    }
    Ok(())
}

/// The path from kubectl to the pods.
#[derive(Clone, Copy, Debug)]
enum Route {
    Direct,
    ThroughDrover,
}

/// The transport of kubectl's streams.
#[derive(Clone, Copy, Debug)]
enum Transport {
    WebSocket,
    Spdy,
}

const WAYS: [(Route, Transport); 4] = [
    (Route::Direct, Transport::WebSocket),
    (Route::Direct, Transport::Spdy),
    (Route::ThroughDrover, Transport::WebSocket),
    (Route::ThroughDrover, Transport::Spdy),
];

impl World {
    fn kubectl(&self, (route, transport): (Route, Transport)) -> Kubectl {
        let enabled = match transport {
            Transport::WebSocket => "true",
            Transport::Spdy => "false",
        };
        let kubectl = match route {
            Route::Direct => self.sim.kubectl().unwrap(),
            Route::ThroughDrover => self.admin.kubectl("north").unwrap(),
        };
        kubectl
            .with_env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", enabled)
            .with_env("KUBECTL_PORT_FORWARD_WEBSOCKETS", enabled)
    }
}

/// Runs kubectl with `text` on stdin; kubectl logs when it falls back to another protocol.
fn with_input(kubectl: &Kubectl, arguments: &[&str], text: &str) -> ProgramOutput {
    let arguments = [&["-v=4"], arguments].concat();
    let mut command = kubectl.command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have ended before it read everything.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let outcome = ProgramOutput {
        command: format!("kubectl {}", arguments.join(" ")),
        success: output.status.success(),
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!outcome.stderr.to_lowercase().contains("fallback"), "{outcome:?}");
    outcome
}

#[test]
fn a_simulated_cluster_reaches_the_server_of_its_machine_without_a_warning() {
    let import = &world().import;
    assert!(!import.stderr.contains("warning"), "{import:?}");
}

#[test]
fn logs_of_a_simulated_pod_say_what_it_is_and_take_kubectls_options() {
    let world = world();
    for route in [Route::Direct, Route::ThroughDrover] {
        let kubectl = world.kubectl((route, Transport::WebSocket));
        let log = kubectl.succeed(&["logs", "web", "-c", "web"]).unwrap();
        let first = "container \"web\" of image example.invalid/web:1 started on node";
        assert!(log.starts_with(first) && log.contains("(simulated"), "{log}");
        assert!(log.contains("listening on 80/tcp"), "{log}");
        // kubectl selects the first container, and reports it.
        let defaulted = kubectl.run(&["logs", "web", "--tail=1"]).unwrap();
        assert!(defaulted.stderr.contains("Defaulted container \"web\""), "{defaulted:?}");
        assert_eq!(defaulted.stdout.lines().count(), 1, "{defaulted:?}");
        let side = kubectl.succeed(&["logs", "web", "-c", "side", "--timestamps"]).unwrap();
        let (time, line) = side.split_once(' ').unwrap();
        assert!(line.starts_with("container \"side\""), "{side}");
        assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 30, "{side}");

        let refused = kubectl.refuse(&["logs", "web", "-c", "nothing"]).unwrap();
        assert!(refused.contains("container nothing is not valid for pod web"), "{refused}");
        let refused = kubectl.refuse(&["logs", "web", "-c", "web", "--previous"]).unwrap();
        let said = "previous terminated container \"web\" in pod \"web\" not found";
        assert!(refused.contains(said), "{refused}");
        kubectl.refuse(&["logs", "missing"]).unwrap();
    }
}

#[test]
fn followed_logs_end_with_their_pod() {
    let world = world();
    let (direct, through) = (WAYS[0], WAYS[2]);
    let following: Vec<Interactive> = [direct, through]
        .map(|way| {
            let mut command = world.kubectl(way).command(["logs", "-f", "brief"]);
            Interactive::start(&mut command).unwrap()
        })
        .into();
    for log in &following {
        log.await_said(|said| said.contains("(simulated").then_some(())).unwrap();
    }
    world.kubectl(through).succeed(&["delete", "pod", "brief"]).unwrap();
    for log in following {
        let (status, said) = log.finish().unwrap();
        assert!(status.success(), "{status}: {said}");
    }
}

#[test]
fn a_log_that_is_followed_goes_on() {
    let world = world();
    let mut command = world.kubectl(WAYS[2]).command(["logs", "-f", "--tail=0", "watched"]);
    let log = Interactive::start(&mut command).unwrap();
    log.await_said(|said| said.contains("still running, up").then_some(())).unwrap();
}

#[test]
fn logs_of_the_agent_are_what_it_really_says() {
    let world = world();
    let agent = ["logs", "-n", "cattle-system", "deploy/cattle-cluster-agent"];
    let log = world.kubectl(WAYS[2]).succeed(&agent).unwrap();
    assert!(!log.is_empty() && !log.contains("(simulated"), "{log}");
    let shown = world.kubectl(WAYS[2]).succeed(&[&agent[..], &["--tail=1"]].concat()).unwrap();
    assert_eq!(shown.lines().count(), 1, "{shown}");
}

#[test]
fn exec_carries_input_output_errors_and_exit_codes() {
    let world = world();
    for way in WAYS {
        let kubectl = world.kubectl(way);
        let exec = |arguments: &[&str], text: &str| {
            let before = ["exec", "-i", "web", "-c", "web", "--"];
            with_input(&kubectl, &[&before[..], arguments].concat(), text)
        };
        let echoed = exec(&["sh", "-c", "cat; echo wrong >&2; exit 7"], "to the pod");
        assert_eq!((echoed.stdout.as_str(), echoed.code), ("to the pod", 7), "{way:?} {echoed:?}");
        assert!(echoed.stderr.contains("wrong\n"), "{way:?} {echoed:?}");
        let script = exec(&["/bin/bash"], "hostname\necho $COLOUR\n");
        assert_eq!(script.stdout, "web\nblue\n", "{way:?} {script:?}");
        assert!(script.success, "{way:?} {script:?}");

        let unknown = exec(&["curl", "example.com"], "");
        assert_eq!(unknown.code, NOT_FOUND, "{way:?} {unknown:?}");
        let said = "curl: not found: container \"web\" is simulated and executes nothing";
        assert!(unknown.stderr.contains(said), "{way:?} {unknown:?}");

        let plain = kubectl.succeed(&["exec", "web", "-c", "side", "--", "ls", "/etc"]).unwrap();
        assert_eq!(plain, "hostname\nhosts\nos-release\n", "{way:?}");
    }
}

#[test]
fn much_input_comes_back_unchanged() {
    let world = world();
    let text = "0123456789abcde\n".repeat(BULK_BYTES / 16);
    for way in WAYS {
        let cat = ["exec", "-i", "web", "-c", "web", "--", "cat"];
        // Read and written concurrently: more data than the buffers hold.
        let mut command = world.kubectl(way).command(cat);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let all = text.clone();
        let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        writer.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success(), "{way:?}");
        assert!(output == text, "{way:?}: {} of {} bytes", output.len(), text.len());
    }
}

/// kubectl in a terminal, which `script` provides.
fn in_terminal(kubectl: &Command) -> Interactive {
    let words: Vec<String> = std::iter::once(kubectl.get_program())
        .chain(kubectl.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let line = format!("exec {}", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"]);
    script.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Interactive::start(&mut script).unwrap()
}

#[test]
fn a_terminal_has_a_shell_that_says_it_is_simulated() {
    let world = world();
    for way in WAYS {
        let exec = ["exec", "-it", "web", "-c", "web", "--", "sh"];
        let mut terminal = in_terminal(&world.kubectl(way).command(exec));
        let await_said = |terminal: &Interactive, text: &str| {
            terminal.await_said(|said| said.contains(text).then_some(())).unwrap();
        };
        await_said(&terminal, "This container is simulated: no command is executed.");
        await_said(&terminal, "/ # ");
        // A line is echoed and edited; errors appear in the same output.
        terminal.write_input("ecko\x7f\x7fho $COLOUR\r").unwrap();
        await_said(&terminal, "\r\nblue\r\n");
        terminal.write_input("vi\r").unwrap();
        await_said(&terminal, "vi: not found");
        terminal.write_input("exit 5\r").unwrap();
        let (status, said) = terminal.finish().unwrap();
        assert_eq!(status.code(), Some(5), "{way:?}: {said:?}");
    }
}

#[test]
fn attach_talks_with_a_container_that_reads_and_follows_one_that_does_not() {
    let world = world();
    for way in WAYS {
        let mut command = world.kubectl(way).command(["attach", "-i", "ear"]);
        let mut attached = Interactive::start(&mut command).unwrap();
        attached.write_input("echo heard $HOSTNAME\n").unwrap();
        attached.await_said(|said| said.contains("heard ear\n").then_some(())).unwrap();
        attached.close_input();
        let (status, said) = attached.finish().unwrap();
        assert!(status.success(), "{way:?}: {status} {said}");
    }
    let mut command = world.kubectl(WAYS[2]).command(["attach", "watched"]);
    let attached = Interactive::start(&mut command).unwrap();
    attached.await_said(|said| said.contains("still running, up").then_some(())).unwrap();
}

/// A forwarded port, and the kubectl that forwards it.
fn forward(kubectl: &Kubectl) -> (Interactive, u16) {
    let mut command = kubectl.command(["-v=4", "port-forward", "pod/web", ":80"]);
    let forward = Interactive::start(&mut command).unwrap();
    let port = forward.await_said(|said| {
        let line = said.split("Forwarding from 127.0.0.1:").nth(1)?;
        line.split_once(" ->")?.0.parse().ok()
    });
    (forward, port.unwrap())
}

fn send(port: u16, text: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(ECHO_TIMEOUT)).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let all = text.to_vec();
    let writer = std::thread::spawn(move || {
        writing.write_all(&all)?;
        writing.shutdown(Shutdown::Write)
    });
    let mut echoed = Vec::new();
    stream.read_to_end(&mut echoed).unwrap();
    // An HTTP server need not wait for the end of the request.
    let _ = writer.join().unwrap();
    echoed
}

#[test]
fn a_forwarded_port_is_an_echo() {
    let world = world();
    let bulk: Vec<u8> = (0..BULK_BYTES).map(|index| index.to_le_bytes()[index % 3]).collect();
    for way in WAYS {
        let (forward, port) = forward(&world.kubectl(way));
        assert_eq!(send(port, b"hello"), b"hello", "{way:?}");
        assert!(send(port, &bulk) == bulk, "{way:?}");
        let page = send(port, b"GET /page HTTP/1.1\r\nHost: web\r\n\r\n");
        let page = String::from_utf8(page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{way:?}: {page}");
        let said = "\r\n\r\nPort 80 of pod default/web is simulated: an echo. It was sent:\n\n\
                    GET /page HTTP/1.1\nHost: web\n";
        assert!(page.ends_with(said), "{way:?}: {page}");
        let said = forward.output();
        assert!(!said.to_lowercase().contains("fallback"), "{way:?}: {said}");
    }
}

#[test]
fn the_right_to_get_pods_exec_runs_no_command() {
    let world = world();
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    let rules = [rule(&["pods", "pods/exec", "pods/log"], &["get"])];
    let metadata = json!({"name": "reader", "namespace": "default"});
    let group = "rbac.authorization.k8s.io";
    let kubectl = world.kubectl(WAYS[0]);
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role",
                      "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    });
    kubectl.apply(&[role, binding]).unwrap();
    kubectl.succeed(&["logs", "web", "-c", "web", "--as=reader"]).unwrap();
    for way in &WAYS[..2] {
        let exec = ["exec", "web", "-c", "web", "--as=reader", "--", "date"];
        let refused = world.kubectl(*way).refuse(&exec).unwrap();
        assert!(refused.contains("cannot create resource \"pods/exec\""), "{way:?}: {refused}");
    }
}
