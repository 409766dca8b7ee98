//! Users work in pods, through Drover: `logs -f`, `exec`, `attach`, `cp`, `port-forward`, over
//! WebSockets and over SPDY, on a node that runs pods for real.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::measure::memory;
use e2e::wait::within;
use e2e::{Cli, Guarantee, Interactive, Kubectl, Server, SharedWorld, eventually, no_second_try};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testbed::{RealNode, TOOLBOX_IMAGE};

/// Bytes that must arrive unchanged.
const BULK_BYTES: usize = 100 << 20;
/// Concurrent users, each with a connection of their own from end to end.
const PARALLEL: usize = 50;
/// Most growth of a server or agent while a client does not read, in megabytes. The buffers of one
/// stream from end to end are less than two.
const GROWTH_MAX: f64 = 24.0;
/// Bytes that wait to be read meanwhile: far more than the buffers hold.
const UNREAD_BYTES: u64 = 400 << 20;
/// Longest validity of a revoked token.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

/// An imported cluster with a node, and a pod on it.
struct World {
    folder: tempfile::TempDir,
    imported: Imported,
    admin: Cli,
    server: Server,
    node: RealNode,
    /// Lock of tests that measure or move much data.
    turn: Mutex<()>,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let node = RealNode::start()?;
        let target = ImportTarget::of(node.cluster())?;
        let listening = "mkdir /tmp/www; exec httpd -f -p 80 -h /tmp/www";
        let reading = "while read line; do echo \"heard $line\"; done";
        target.kubectl.apply(&[pod("box", listening), pod("ear", reading)])?;
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let imported = journey::import(&server, &admin, "works", &target)?;
        for pod in ["pod/box", "pod/ear"] {
            target.kubectl.succeed(&["wait", "--for=condition=Ready", "--timeout=60s", pod])?;
        }
        let folder = tempfile::tempdir()?;
        Ok(World { folder, imported, admin, server, node, turn: Mutex::new(()) })
    })
}

fn pod(name: &str, command: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": TOOLBOX_IMAGE, "imagePullPolicy": "Never",
                "command": ["sh", "-c", command], "stdin": true,
            }],
        },
    })
}

/// The transport of `kubectl`'s streams.
#[derive(Clone, Copy, Debug)]
enum Transport {
    WebSocket,
    Spdy,
}

impl Transport {
    const BOTH: [Self; 2] = [Self::WebSocket, Self::Spdy];
}

impl World {
    fn kubectl(&self, transport: Transport) -> Kubectl {
        let enabled = match transport {
            Transport::WebSocket => "true",
            Transport::Spdy => "false",
        };
        let kubectl = self.admin.kubectl(&self.imported.name).unwrap();
        kubectl
            .with_env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", enabled)
            .with_env("KUBECTL_PORT_FORWARD_WEBSOCKETS", enabled)
    }

    fn alone(&self) -> impl Drop + '_ {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of server and agent, in megabytes.
    fn memory(&self) -> [f64; 2] {
        let server = memory(self.server.process_id().unwrap()).unwrap();
        [server, memory(self.imported.agent.process_id()).unwrap()]
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file of [`BULK_BYTES`] random bytes, with its hash.
    fn bulk(&self) -> (PathBuf, String) {
        let path = self.file("bulk");
        if !path.exists() {
            let unfinished = self.file("bulk.part");
            let mut file = File::create(&unfinished).unwrap();
            let mut block = [0; 32];
            for _ in 0..BULK_BYTES / block.len() {
                block = Sha256::digest(block).into();
                file.write_all(&block).unwrap();
            }
            std::fs::rename(unfinished, &path).unwrap();
        }
        let hash = hash_of(File::open(&path).unwrap());
        (path, hash)
    }

    fn hash_in_pod(&self, path: &str) -> String {
        let said =
            self.kubectl(Transport::WebSocket).succeed(&["exec", "box", "--", "sha256sum", path]);
        said.unwrap().split(' ').next().unwrap().to_owned()
    }
}

fn hash_of(mut from: impl Read) -> String {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    while let count @ 1.. = from.read(&mut buffer).unwrap() {
        hash.update(&buffer[..count]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn print_rate(what: &str, transport: Transport, since: Instant) {
    let took = since.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = BULK_BYTES as f64 / f64::from(1 << 20) / took;
    println!("{what} over {transport:?}: {rate:.0} MiB/s");
}

#[test]
fn exec_carries_input_output_errors_and_exit_codes() {
    let world = world();
    for transport in Transport::BOTH {
        // At this verbosity kubectl logs when it falls back to another protocol.
        let script = "tr a-z A-Z; echo wrong >&2; exit 7";
        let arguments = ["-v=4", "exec", "-i", "box", "--", "sh", "-c", script];
        let mut command = world.kubectl(transport).command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"to the pod").unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "TO THE POD", "{errors}");
        assert_eq!(output.status.code(), Some(7), "{transport:?}: {errors}");
        assert!(errors.contains("wrong\n"), "{transport:?}: {errors}");
        assert!(!errors.to_lowercase().contains("fallback"), "{transport:?}: {errors}");
    }
}

#[test]
fn a_terminal_in_a_pod_has_the_size_of_the_users_terminal() {
    let world = world();
    for transport in Transport::BOTH {
        let kubectl = world.kubectl(transport).command(["exec", "-it", "box", "--", "sh"]);
        // `script` gives it a terminal, whose name is needed to change its size from outside.
        let words: Vec<String> = std::iter::once(kubectl.get_program())
            .chain(kubectl.get_args())
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let line = format!("tty; stty rows 33 cols 111; exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"]);
        script.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut terminal = Interactive::start(&mut script).unwrap();
        let name = terminal
            .await_said(|said| {
                let name = said.lines().find(|line| line.starts_with("/dev/pts/"))?;
                said.contains("# ").then(|| name.trim().to_owned())
            })
            .unwrap();
        let mut await_size = |size: &str| {
            within(Duration::from_secs(20), &format!("{transport:?}: size {size}"), || {
                let before = terminal.output().len();
                terminal.write_input("stty size; tty\n")?;
                let response = terminal.await_said(|said| {
                    said.get(before..)?.split("/dev/pts/").nth(1).map(|_| said[before..].to_owned())
                })?;
                ensure!(response.contains(size), "{response:?}");
                Ok(())
            });
        };
        await_size("33 111");
        let resized =
            Command::new("stty").args(["-F", &name, "rows", "44", "cols", "122"]).status();
        assert!(resized.unwrap().success());
        await_size("44 122");
        terminal.write_input("exit 5\n").unwrap();
        let (status, said) = terminal.finish().unwrap();
        assert_eq!(status.code(), Some(5), "{transport:?}: {said:?}");
    }
}

#[test]
fn attach_talks_with_the_process_that_the_pod_runs() {
    let world = world();
    for (round, transport) in Transport::BOTH.into_iter().enumerate() {
        let mut command = world.kubectl(transport).command(["attach", "-i", "ear"]);
        let mut attached = Interactive::start(&mut command).unwrap();
        for word in 0..3 {
            let line = format!("{round}-{word}");
            attached.write_input(&format!("{line}\n")).unwrap();
            let heard = format!("heard {line}\n");
            attached.await_said(|said| said.contains(&heard).then_some(())).unwrap();
        }
    }
}

#[test]
fn followed_logs_end_when_the_pod_is_deleted() {
    let world = world();
    let kubectl = world.kubectl(Transport::WebSocket);
    kubectl
        .apply(&[pod("chatty", "echo first; while read line; do echo \"$line\"; done")])
        .unwrap();
    kubectl.succeed(&["wait", "--for=condition=Ready", "--timeout=60s", "pod/chatty"]).unwrap();
    let mut follow = kubectl.command(["logs", "-f", "chatty"]);
    let follow = Interactive::start(&mut follow).unwrap();
    follow.await_said(|said| (said == "first\n").then_some(())).unwrap();
    let mut expected = "first\n".to_owned();
    for line in ["second\n", "third\n"] {
        let write = format!("printf '{line}' > /proc/1/fd/1");
        kubectl.succeed(&["exec", "chatty", "--", "sh", "-c", &write]).unwrap();
        expected.push_str(line);
        follow.await_said(|said| (said == expected).then_some(())).unwrap();
    }
    kubectl.succeed(&["delete", "pod", "chatty"]).unwrap();
    let (status, said) = follow.finish().unwrap();
    assert!(status.success() && said == expected, "{status}: {said}");
}

#[test]
fn a_hundred_megabytes_are_copied_to_a_pod_and_back_unchanged() {
    let world = world();
    let _alone = world.alone();
    let (path, hash) = world.bulk();
    for transport in Transport::BOTH {
        let kubectl = world.kubectl(transport);
        let back = world.file("back");
        let since = Instant::now();
        kubectl.succeed(&["cp", path.to_str().unwrap(), "box:/tmp/copied"]).unwrap();
        print_rate("cp to a pod", transport, since);
        assert_eq!(world.hash_in_pod("/tmp/copied"), hash, "{transport:?}");
        let since = Instant::now();
        // kube-apiserver may drop the tail (see the test of a stalled reader); then it is requested
        // again.
        let from_pod = ["cp", "--retries=2", "box:/tmp/copied", back.to_str().unwrap()];
        kubectl.succeed(&from_pod).unwrap();
        print_rate("cp from a pod", transport, since);
        assert_eq!(hash_of(File::open(&back).unwrap()), hash, "{transport:?}");
        std::fs::remove_file(back).unwrap();
        kubectl.succeed(&["exec", "box", "--", "rm", "/tmp/copied"]).unwrap();
    }
    println!("memory of server and agent afterwards: {:.0?} MB", world.memory());
    let metrics = world.server.admin().unwrap().get("/metrics").unwrap().text();
    for direction in ["sent", "received"] {
        let name = format!("drover_tunnel_{direction}_bytes_total ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
        assert!(count.parse::<f64>().unwrap() > 2.0 * BULK_BYTES as f64, "{name}{count}");
    }
}

#[test]
fn a_hundred_megabytes_come_through_a_forwarded_port_unchanged() {
    let world = world();
    let _alone = world.alone();
    let make = format!("head -c {BULK_BYTES} /dev/urandom > /tmp/www/bulk");
    world.kubectl(Transport::WebSocket).succeed(&["exec", "box", "--", "sh", "-c", &make]).unwrap();
    let hash = world.hash_in_pod("/tmp/www/bulk");
    for transport in Transport::BOTH {
        let mut command = world.kubectl(transport).command(["-v=4", "port-forward", "box", ":80"]);
        let forward = Interactive::start(&mut command).unwrap();
        let port: u16 = forward
            .await_said(|said| {
                let line = said.split("Forwarding from 127.0.0.1:").nth(1)?;
                line.split_once(" ->")?.0.parse().ok()
            })
            .unwrap();
        // Sequentially over the same forwarding, like a browser.
        for _ in 0..2 {
            let since = Instant::now();
            let stream = fetch(port, "/bulk").unwrap();
            assert_eq!(hash_of(stream), hash, "{transport:?}");
            print_rate("port-forward", transport, since);
        }
        assert!(fetch(port, "/missing").is_err());
        let said = forward.output();
        assert!(!said.to_lowercase().contains("fallback"), "{transport:?}: {said}");
    }
}

/// The body of a page, not yet read.
fn fetch(port: u16, path: &str) -> Result<impl Read + use<>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        ensure!(stream.read(&mut byte)? == 1, "cut off in the head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    ensure!(head.split(' ').nth(1) == Some("200"), "{head}");
    Ok(stream)
}

#[test]
fn fifty_users_work_in_one_pod_at_once() {
    let world = world();
    let _alone = world.alone();
    let before = world.memory();
    let kubectls = Transport::BOTH.map(|transport| world.kubectl(transport));
    let since = Instant::now();
    let children: Vec<_> = (0..PARALLEL)
        .map(|number| {
            let mut command = kubectls[number % 2].command(["exec", "-i", "box", "--", "cat"]);
            (number, Interactive::start(&mut command).unwrap())
        })
        .collect();
    // All are open before the first ends.
    let mut open = Vec::new();
    for (number, mut child) in children {
        child.write_input(&format!("I am {number}.")).unwrap();
        let expected = format!("I am {number}.");
        child.await_said(|said| (said == expected).then_some(())).unwrap();
        open.push((expected, child));
    }
    println!(
        "{PARALLEL} open after {:.1?}, memory {before:.0?} -> {:.0?} MB",
        since.elapsed(),
        world.memory()
    );
    for (expected, mut child) in open {
        child.close_input();
        let (status, said) = child.finish().unwrap();
        assert!(status.success() && said == expected, "{status}: {said}");
    }
}

#[test]
fn a_reader_that_stands_still_costs_no_memory_and_loses_nothing() {
    let world = world();
    let _alone = world.alone();
    for transport in Transport::BOTH {
        let before = world.memory();
        // Ends only when everything was read: kube-apiserver closes after the last byte, and then
        // drops data for a slow reader when a heartbeat of the client arrives.
        let pour = format!("head -c {UNREAD_BYTES} /dev/zero; cat");
        let mut command =
            world.kubectl(transport).command(["exec", "-i", "box", "--", "sh", "-c", &pour]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        // The pod has stopped writing when all buffers are full.
        let poured = || {
            let shown = ["exec", "box", "--", "sh", "-c", "cat /proc/$(pidof head)/io"];
            let said = world.kubectl(Transport::WebSocket).succeed(&shown)?;
            let line = said.lines().find_map(|line| line.strip_prefix("wchar: "));
            line.context("no counter")?.parse::<u64>().context("no number")
        };
        let mut last = 0;
        let stuck_at = eventually("the pod is held back", || {
            let now = poured()?;
            ensure!(now > 0 && now == std::mem::replace(&mut last, now), "{now} poured");
            Ok(now)
        });
        assert!(stuck_at < UNREAD_BYTES / 4, "{transport:?}: {stuck_at} bytes went nowhere");
        let during = world.memory();
        println!(
            "{transport:?}: held back at {stuck_at} bytes, memory {before:.0?} -> {during:.0?} MB"
        );
        for (before, during) in before.iter().zip(during) {
            assert!(during - before < GROWTH_MAX, "{transport:?}: {before:.0} -> {during:.0} MB");
        }
        let mut output = child.stdout.take().unwrap();
        let mut all = output.by_ref().take(UNREAD_BYTES);
        assert_eq!(std::io::copy(&mut all, &mut std::io::sink()).unwrap(), UNREAD_BYTES);
        drop(input);
        assert_eq!(std::io::copy(&mut output, &mut std::io::sink()).unwrap(), 0, "{transport:?}");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_pod_that_reads_nothing_costs_no_memory() {
    let world = world();
    let _alone = world.alone();
    for transport in Transport::BOTH {
        let before = world.memory();
        let wait = "until [ -e /tmp/go ]; do sleep 0.1; done; rm /tmp/go; wc -c";
        let mut command =
            world.kubectl(transport).command(["exec", "-i", "box", "--", "sh", "-c", wait]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let written = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let count = Arc::clone(&written);
        let writer = std::thread::spawn(move || {
            let block = vec![b'x'; 1 << 16];
            for _ in 0..UNREAD_BYTES / block.len() as u64 {
                input.write_all(&block).unwrap();
                count.fetch_add(block.len() as u64, std::sync::atomic::Ordering::Relaxed);
            }
        });
        let mut last = 0;
        let stuck_at = eventually("the writer is held back", || {
            let now = written.load(std::sync::atomic::Ordering::Relaxed);
            // A second measurement, after a time in which much data could have moved.
            world.kubectl(transport).succeed(&["version"])?;
            ensure!(now > 0 && now == std::mem::replace(&mut last, now), "{now} written");
            Ok(now)
        });
        let during = world.memory();
        println!(
            "{transport:?}: held back at {stuck_at} bytes, memory {before:.0?} -> {during:.0?} MB"
        );
        assert!(stuck_at < UNREAD_BYTES / 4, "{transport:?}: {stuck_at} bytes went nowhere");
        for (before, during) in before.iter().zip(during) {
            assert!(during - before < GROWTH_MAX, "{transport:?}: {before:.0} -> {during:.0} MB");
        }
        world.kubectl(transport).succeed(&["exec", "box", "--", "touch", "/tmp/go"]).unwrap();
        writer.join().unwrap();
        let output = child.wait_with_output().unwrap();
        let counted = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(counted, UNREAD_BYTES.to_string(), "{transport:?}");
    }
}

#[test]
fn a_revoked_token_ends_its_open_streams() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    for transport in Transport::BOTH {
        let user = format!("leaver-{transport:?}").to_lowercase();
        let role = Some(("cluster-owner", world.imported.id.as_str()));
        let person = journey::user_with_role(&world.server, &world.admin, &user, role).unwrap();
        let token = world.server.login(&user, &format!("password-of-{user}")).unwrap();
        let kubeconfig = by_hand(&world, person.home(), &token);
        let websockets = matches!(transport, Transport::WebSocket).to_string();
        let kubectl = Kubectl::new(&kubeconfig, person.home())
            .unwrap()
            .with_env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
        let mut command = kubectl.command(["exec", "-i", "box", "--", "cat"]);
        let mut idle = Interactive::start(&mut command).unwrap();
        idle.write_input("here\n").unwrap();
        idle.await_said(|said| said.contains("here").then_some(())).unwrap();
        let mut follow = kubectl.command(["logs", "-f", "ear"]);
        let mut follow = Interactive::start(&mut follow).unwrap();

        let name = token.split(':').next().unwrap();
        let path = format!("{MANAGEMENT}/tokens/{name}");
        world.server.admin().unwrap().delete(&path).unwrap().success().unwrap();
        within(CUT_TIMEOUT, "the exec is cut", || idle.exit_status().map(drop));
        within(CUT_TIMEOUT, "the log is cut", || follow.exit_status().map(drop));
        // Other streams continue.
        world.kubectl(transport).succeed(&["exec", "box", "--", "true"]).unwrap();
    }
}

/// A kubeconfig with only this token.
fn by_hand(world: &World, home: &Path, token: &str) -> PathBuf {
    let path = home.join("by-hand.kubeconfig");
    let url = format!("{}/k8s/clusters/{}", world.server.url(), world.imported.id);
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": url, "certificate-authority": world.server.ca_file(),
        }}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

#[test]
fn the_node_of_the_cluster_is_shown_with_what_it_really_has() {
    let world = world();
    eventually("the node is shown", || -> Result<()> {
        let path = format!("/v3/nodes?clusterId={}", world.imported.id);
        let list = world.server.admin()?.get(&path)?.success()?;
        let node = &list["data"][0];
        ensure!(node["nodeName"] == world.node.name(), "{list}");
        ensure!(node["state"] == "active", "{list}");
        ensure!(node["ipAddress"] == world.node.address().to_string(), "{list}");
        Ok(())
    });
}
