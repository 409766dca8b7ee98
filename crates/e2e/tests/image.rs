//! The agent image is self-contained: its program runs without other files, and resolves names.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Server, agent_image, eventually};
use serde_json::json;
use testbed::Process;

/// A process with the image's file system as its root, and the image's user.
struct Container {
    folder: tempfile::TempDir,
}

impl Container {
    fn new() -> Self {
        assert!(nix::unistd::geteuid().is_root(), "needs root: a program gets another root folder");
        let folder = tempfile::tempdir().unwrap();
        agent_image::unpack(folder.path()).unwrap();
        // Temporary folders are closed for others, such as the user of the image.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        Self { folder }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.root().join(path), text).unwrap();
    }

    /// The command of the image's configuration.
    fn command(&self, arguments: &[&str]) -> Command {
        let config = agent_image::config().unwrap();
        let user = config["config"]["User"].as_str().unwrap();
        let program = config["config"]["Entrypoint"][0].as_str().unwrap();
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={user}")).arg(self.root()).arg(program).args(arguments);
        command
    }
}

/// A name server that resolves every name, on a loopback address of its own.
struct NameServer {
    address: Ipv4Addr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn start(response: Ipv4Addr) -> Self {
        static NUMBER: AtomicU8 = AtomicU8::new(53);
        // Resolvers query port 53 only; the whole of 127.0.0.0/8 is this machine.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let address = Ipv4Addr::new(127, number, high, low.max(1));
        let socket = UdpSocket::bind((address, 53)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                    let _ = socket.send_to(&reply(&buffer[..length], response), peer);
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The reply to a query with one question (RFC 1035, section 4): one address, or none when the
/// query is not for an A record.
fn reply(query: &[u8], response: Ipv4Addr) -> Vec<u8> {
    let name_end = 12 + query[12..].iter().position(|&length| length == 0).unwrap() + 1;
    let question = &query[12..name_end + 4];
    let asks_for_a = question[question.len() - 4..] == [0, 1, 0, 1];
    let mut reply = query[..2].to_vec();
    // A reply, recursion available, no error; one question, no or one resource record.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(asks_for_a), 0, 0, 0, 0]);
    reply.extend(question);
    if asks_for_a {
        // The name of the question, type A, class IN, one minute, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(response.octets());
    }
    reply
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn the_agent_runs_with_only_its_image_and_without_privileges() {
    let container = Container::new();
    let output = container.command(&["--version"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).starts_with("drover-agent "), "{}", text(&output));
    let refused = container.command(&["cluster"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("no server is configured"), "{}", text(&refused));
    let probed = container.command(&["probe"]).output().unwrap();
    assert_eq!(probed.status.code(), Some(1));
    assert!(text(&probed).contains("no agent responds here"), "{}", text(&probed));
}

#[test]
fn the_image_has_the_name_that_a_server_puts_into_its_manifests() {
    let server = Server::start().unwrap();
    let path = "/apis/management.cattle.io/v3/settings/agent-image";
    let setting = server.admin().unwrap().get(path).unwrap().success().unwrap();
    let default = setting["default"].as_str().unwrap();
    assert_eq!(agent_image::name().unwrap(), format!("docker.io/library/{default}"));
}

/// Whether the agent in the container reaches a listener at `host`, which it must resolve.
fn reaches(container: &Container, host: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
    let kubeconfig = json!({
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {"token": "none"}}],
        "clusters": [{"name": "it", "cluster": {
            "server": format!("https://{host}:{port}"),
            "certificate-authority-data": STANDARD.encode(made.cert.pem()),
        }}],
    });
    container.write("kubeconfig", &kubeconfig.to_string());
    let command = container.command(&[
        "cluster",
        "--server=https://server.invalid",
        "--token=none",
        "--kubeconfig=/kubeconfig",
    ]);
    let log = container.root().join("agent.log");
    let agent = Process::start("agent", &command, &log).unwrap();
    let mut stream = eventually("the agent connects", || match listener.accept() {
        Ok((stream, _)) => Ok(stream),
        Err(error) => Err(format!("{error}; the agent says:\n{}", agent.log_tail())),
    });
    stream.set_nonblocking(false).unwrap();
    let mut hello = [0; 1024];
    let length = stream.read(&mut hello).unwrap();
    // A TLS client sends the server's name in plain text.
    let named = hello[..length].windows(host.len()).any(|part| part == host.as_bytes());
    assert!(named, "the hello does not name {host}");
}

#[test]
fn the_agent_resolves_names_by_the_name_servers_from_the_kubelet() {
    let container = Container::new();
    let names = NameServer::start(Ipv4Addr::LOCALHOST);
    container.write("etc/resolv.conf", &format!("nameserver {}\n", names.address));
    reaches(&container, "server.by-name.test");
}

#[test]
fn the_agent_finds_the_names_that_a_pod_has_in_its_own_list_first() {
    let container = Container::new();
    // A server that replies with an error.
    let names = NameServer::start(Ipv4Addr::new(127, 0, 0, 254));
    container.write("etc/resolv.conf", &format!("nameserver {}\n", names.address));
    container.write("etc/hosts", "127.0.0.1 server.by-list.test\n");
    reaches(&container, "server.by-list.test");
}
