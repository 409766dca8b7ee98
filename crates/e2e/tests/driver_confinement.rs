//! A driver that tries to get out of its sandbox, in both kinds of sandboxes: those that root
//! makes, and those of a server without rights.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use driver_contract::types::{CreateRequest, DriverOptions};
use driver_host::{Confinement, DriverProgram, EgressException, RunningDriver};
use e2e::programs;
use landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
use tempfile::TempDir;
use testbed::{Binaries, Program};

/// Names of the environment that a sandbox has.
const VARIABLES: [&str; 7] =
    ["HOME", "HTTPS_PROXY", "HTTP_PROXY", "PATH", "TMPDIR", "http_proxy", "https_proxy"];
/// What the root of a sandbox has, but for libraries.
const ROOT: [&str; 7] = ["dev", "driver", "etc", "proc", "run", "tmp", "usr"];
const CANARY: &str = "canary-of-the-server";

/// A sandbox with the hostile driver.
struct Jail {
    driver: RunningDriver,
    _folder: TempDir,
}

impl Jail {
    /// Made by a server that is root.
    async fn by_root(exceptions: &[EgressException]) -> Self {
        Self::by(programs::drover().unwrap(), exceptions).await
    }

    /// Made by a server that has no capability but the one that root needs to be root in a
    /// namespace.
    async fn without_rights(exceptions: &[EgressException]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("launcher");
        let script = format!(
            "#!/bin/sh\nexec setpriv --bounding-set=-all,+setfcap --inh-caps=-all '{}' \"$@\"\n",
            programs::drover().unwrap().display()
        );
        std::fs::write(&launcher, script).unwrap();
        std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { _folder: folder, ..Self::by(launcher, exceptions).await }
    }

    async fn by(launcher: PathBuf, exceptions: &[EgressException]) -> Self {
        let program = DriverProgram {
            file: Binaries::locate().path(Program::HostileDriver).unwrap(),
            arguments: Vec::new(),
            environment: Vec::new(),
            confinement: Some(Confinement::by(launcher, exceptions)),
        };
        let driver = RunningDriver::start(&program).await.unwrap();
        Self { driver, _folder: tempfile::tempdir().unwrap() }
    }

    /// What an attempt got, or why it was refused.
    async fn attempt(&self, name: &str, argument: &str) -> Result<String, String> {
        let texts = [("attempt", name), ("argument", argument)];
        let string_options = texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let options = DriverOptions { string_options, ..DriverOptions::default() };
        let request = CreateRequest { driver_options: Some(options), cluster_info: None };
        let response = self.driver.client().create(request).await.unwrap();
        let mut said: HashMap<String, String> = response.into_inner().metadata;
        match (said.remove("done"), said.remove("refused")) {
            (Some(done), _) => Ok(done),
            (None, refused) => Err(refused.unwrap()),
        }
    }

    async fn refused(&self, name: &str, argument: &str, reason: &str) {
        let outcome = self.attempt(name, argument).await;
        let refused = outcome.as_ref().is_err_and(|said| said.contains(reason));
        assert!(refused, "{name} {argument} is not refused with \"{reason}\": {outcome:?}");
    }
}

/// The files of the machine are not there, and what is there cannot be changed.
async fn files_are_out_of_reach(jail: &Jail) {
    let data = tempfile::tempdir().unwrap();
    let secret = data.path().join("encryption.keys");
    std::fs::write(&secret, CANARY).unwrap();
    let socket = data.path().join("server.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let missing = "no such file or directory";
    for path in [&secret, Path::new("/etc/shadow"), Path::new("/etc/ssl/private")] {
        jail.refused("read", path.to_str().unwrap(), missing).await;
    }
    let through = format!("/proc/1/root{}", secret.display());
    assert!(jail.attempt("read", &through).await.is_err());
    for path in ["/usr/lib/drover-canary", "/etc/passwd", "/driver/hostile-driver", "/new"] {
        let outcome = jail.attempt("write", path).await;
        assert!(outcome.is_err(), "{path}: {outcome:?}");
    }
    assert_eq!(jail.attempt("write", "/tmp/own").await.unwrap(), "/tmp/own");
    let found = jail.attempt("list", "/").await.unwrap();
    let own = found.split(' ').filter(|name| !name.starts_with("lib"));
    assert_eq!(own.collect::<Vec<_>>(), ROOT);
    jail.refused("run", "/usr/bin/id", missing).await;
}

/// It has no rights, whoever it runs as, and gets none.
async fn it_has_no_rights(jail: &Jail) {
    let status = jail.attempt("identity", "").await.unwrap();
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line} is missing in:\n{status}");
    }
    for line in ["CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line} is missing in:\n{status}");
    }
    let missing = "function not implemented";
    jail.refused("mount", "/tmp", missing).await;
    jail.refused("namespace", "", missing).await;
    jail.refused("trace", "", missing).await;
    jail.refused("leave", "", missing).await;
    jail.refused("device", "/tmp/disk", missing).await;
    jail.refused("host-name", "x", missing).await;
    jail.refused("packets", "", missing).await;
    assert!(jail.attempt("setuid", "").await.is_err());
}

/// It sees no process but its own, and nothing of the server's environment.
async fn processes_are_out_of_reach(jail: &Jail, as_another_user: bool) {
    let found = jail.attempt("processes", "").await.unwrap();
    let names = found.split(' ').filter(|name| *name != "hostile-driver");
    assert_eq!(names.collect::<Vec<_>>(), ["exe"], "{found}");
    jail.refused("kill", &std::process::id().to_string(), "no such process").await;
    // Process 1 ignores signals of its sandbox. Landlock refuses them, if the machine has it.
    let outcome = jail.attempt("kill", "1").await;
    assert_eq!(outcome.is_err(), as_another_user || landlock_scopes_signals(), "{outcome:?}");
    let found = jail.attempt("environment", "").await.unwrap();
    let names = found.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, VARIABLES);
}

fn landlock_scopes_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).is_ok_and(|ruleset| ruleset.create().is_ok())
}

/// It reaches neither the machine nor its link, whatever they are called.
async fn the_machine_is_out_of_reach(jail: &Jail) {
    let server = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    jail.refused("connect", &format!("127.0.0.1:{port}"), "connection refused").await;
    jail.refused("connect", "169.254.169.254:80", "network is unreachable").await;
    let loopback = "it is a loopback address";
    for host in ["127.0.0.1", "127.8.8.8", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        jail.refused("proxy", &format!("{host}:{port}"), loopback).await;
    }
    // Other ways to write 127.0.0.1, which the resolver knows.
    for host in ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"] {
        jail.refused("proxy", &format!("{host}:{port}"), "HTTP/1.1 403").await;
    }
    jail.refused("proxy", &format!("0.0.0.0:{port}"), "it is no address of a host").await;
    for host in ["169.254.169.254:80", "[fd00:ec2::254]:80", "[fe80::1]:80"] {
        jail.refused("proxy", host, "it is an address of the link").await;
    }
    jail.refused("http", &format!("http://localhost:{port}/v3"), loopback).await;
    jail.refused("http", "http://169.254.169.254/latest", "it is an address of the link").await;
    // What was refused stands in the log of the driver, for who wonders.
    let log = jail.driver.log().lines().join("\n");
    assert!(log.contains(&format!("drivers do not reach localhost:{port}")), "{log}");
    let name = format!("drover-confinement-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
    jail.refused("abstract", &name, "connection refused").await;
}

/// It cannot use up the machine.
async fn the_machine_is_not_used_up(jail: &Jail) {
    jail.refused("fill", "", "no space left on device").await;
    jail.refused("memory", "", "cannot allocate memory").await;
    jail.refused("descriptors", "", "too many open files").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_driver_stays_in_the_sandbox_of_root() {
    let jail = Jail::by_root(&[]).await;
    files_are_out_of_reach(&jail).await;
    it_has_no_rights(&jail).await;
    processes_are_out_of_reach(&jail, true).await;
    the_machine_is_out_of_reach(&jail).await;
    the_machine_is_not_used_up(&jail).await;
    let status = jail.attempt("identity", "").await.unwrap();
    assert!(status.contains("Uid:\t61"), "it has no user of its own:\n{status}");
    jail.refused("fork", "", "resource temporarily unavailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_driver_stays_in_the_sandbox_of_a_server_without_rights() {
    let jail = Jail::without_rights(&[]).await;
    files_are_out_of_reach(&jail).await;
    it_has_no_rights(&jail).await;
    processes_are_out_of_reach(&jail, false).await;
    the_machine_is_out_of_reach(&jail).await;
    the_machine_is_not_used_up(&jail).await;
}

/// Answers each connection with a page.
fn web_site() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
            );
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_reaches_what_an_administrator_allows() {
    let (allowed, other) = (web_site(), web_site());
    let exception = format!("127.0.0.1:{allowed}").parse().unwrap();
    let jail = Jail::by_root(&[exception]).await;
    // By the proxy, and by programs that know of no proxy.
    let page = jail.attempt("http", &format!("http://127.0.0.1:{allowed}/")).await;
    assert_eq!(page.unwrap(), "hello");
    jail.attempt("proxy", &format!("127.0.0.1:{allowed}")).await.unwrap();
    jail.attempt("connect", &format!("127.0.0.1:{allowed}")).await.unwrap();
    jail.refused("proxy", &format!("127.0.0.1:{other}"), "it is a loopback address").await;
    jail.refused("connect", &format!("127.0.0.1:{other}"), "connection refused").await;
}

#[test]
fn the_folder_of_a_sandbox_whose_server_was_killed_is_removed_and_others_stay() {
    let folder = |name: &str| {
        let path =
            std::env::temp_dir().join(format!("drover-driver-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (abandoned, used, empty) = (folder("abandoned"), folder("used"), folder("empty"));
    drop(UnixListener::bind(abandoned.join("egress.sock")).unwrap());
    let _listener = UnixListener::bind(used.join("egress.sock")).unwrap();
    driver_host::remove_abandoned();
    assert!(!abandoned.exists());
    // One that is being made has no socket yet.
    assert!(used.exists() && empty.exists());
    std::fs::remove_dir_all(used).unwrap();
    std::fs::remove_dir_all(empty).unwrap();
}

/// Whether a process with this argument runs.
fn runs(argument: &str) -> bool {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    let mut arguments = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    arguments.any(|line| line.split('\0').any(|found| found == argument))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_driver_started_outlives_it() {
    for is_ended in [true, false] {
        let jail = Jail::by_root(&[]).await;
        let mark = format!("drover-orphan-{}-{is_ended}", std::process::id());
        jail.attempt("orphan", &mark).await.unwrap();
        assert!(runs(&mark));
        if is_ended {
            jail.driver.end().await;
        } else {
            drop(jail);
        }
        e2e::eventually("no process of the driver runs", || {
            anyhow::ensure!(!runs(&mark), "one still runs");
            Ok(())
        });
    }
}
